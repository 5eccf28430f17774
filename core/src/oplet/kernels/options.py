"""Readers of custom options, FlexBuffers maps.

They take a map, as `Node.custom_map()` returns it, and refuse values that are missing, of another type or out of bounds:

    >>> integer({"size": 3}, "size", least=1)
    3
    >>> integers({"size": [3, 4]}, "size", least=1, count=2)
    [3, 4]
    >>> number({}, "scale", default=1.0)
    1.0
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from oplet.ops.context import Node, ensure
from oplet.schema.flexbuffers import read_flexbuffer

__all__ = ["flag", "integer", "integers", "number", "tensorflow_node"]

#: C++ kernels keep integers as int32.
_LARGEST = 2**31 - 1


def integer(options: Mapping[str, Any], key: str, *, least: int = 0, most: int = _LARGEST, default: int | None = None) -> int:
    """Read the integer under `key`, which may be written as a float without a fraction.

    Raises:
        EnsureError: the value is missing without a default, is not an integer, or is not within `least` to `most`.
    """
    value: Any = options.get(key, default)
    ensure(
        _is_whole(value) and least <= value <= most,
        lambda: f"the option '{key}' is {_shown(value)}; it must be an integer from {least} to {most}.",
    )
    return int(value)


def integers(options: Mapping[str, Any], key: str, *, least: int = 0, most: int = _LARGEST, count: int = 0) -> list[int]:
    """Read the list of integers under `key`: `count` of them, or at least one where `count` is 0.

    Raises:
        EnsureError: there is no such list, or a value is not an integer or lies outside of `least` to `most`.
    """
    value: Any = options.get(key)
    ensure(
        isinstance(value, list) and (len(value) == count if count else bool(value)),
        lambda: f"the option '{key}' is {_shown(value)}; it must be a list of {count or 'one or more'} integers.",
    )
    for item in value:
        if not (_is_whole(item) and least <= item <= most):
            ensure(False, f"the option '{key}' holds {_shown(item)}; its values must be integers from {least} to {most}.")
    return [int(item) for item in value]


def number(options: Mapping[str, Any], key: str, *, default: float | None = None) -> float:
    """Read the finite number under `key`.

    Raises:
        EnsureError: the value is missing without a default, is not a number, or is infinite or NaN.
    """
    value: Any = options.get(key, default)
    ensure(
        isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value),
        lambda: f"the option '{key}' is {_shown(value)}; it must be a finite number.",
    )
    return float(value)


def flag(options: Mapping[str, Any], key: str) -> bool:
    """Read the Boolean under `key`, which may be written as an integer.

    Raises:
        EnsureError: the value is missing, or neither a Boolean nor an integer.
    """
    value: Any = options.get(key)
    ensure(isinstance(value, int), lambda: f"the option '{key}' is {_shown(value)}; it must be true or false.")
    return bool(value)


def tensorflow_node(node: Node) -> tuple[str, bytes]:
    """Return the TensorFlow operator's name and its serialized NodeDef from the custom options of a Flex node, a FlexBuffers
    vector of both.

    Format: WriteCustomOptions in tensorflow/compiler/mlir/lite/flatbuffer_export.cc.

    Raises:
        EnsureError: the custom options have another form.
    """
    try:
        value = read_flexbuffer(node.custom_options, text=False)
    except ValueError as error:
        ensure(False, f"the {len(node.custom_options)} bytes of its custom options are not a FlexBuffer ({error}).")
    ensure(
        isinstance(value, list) and len(value) == 2 and all(isinstance(part, bytes) for part in value),
        lambda: f"its custom options hold {_shown(value)}; a TensorFlow operator has its name and its NodeDef there.",
    )
    return value[0].decode("utf-8", "replace"), value[1]


def _is_whole(value: Any) -> bool:
    return value.is_integer() if isinstance(value, float) else isinstance(value, int) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    return "missing" if value is None else f"{value!r:.60}"
