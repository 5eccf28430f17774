"""Readers of custom options: FlexBuffers maps, and NodeDefs, which are TensorFlow's operators with their attributes.

Those of maps take one, as `Node.custom_map()` returns it, and refuse values that are missing, of another type or out of bounds:

    >>> integer({"size": 3}, "size", least=1)
    3
    >>> integers({"size": [3, 4]}, "size", least=1, count=2)
    [3, 4]
    >>> number({}, "scale", default=1.0)
    1.0
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from oplet.ops.context import Node, ensure
from oplet.schema.flexbuffers import read_flexbuffer
from oplet.schema.protobuf import fields, signed, varints

__all__ = ["NodeDef", "Shape", "Type", "flag", "integer", "integers", "number", "read_node_def", "tensorflow_node"]

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


#: A shape of a NodeDef: sizes, -1 where one is unknown; None for an unknown rank.
Shape = tuple[int, ...] | None


class Type(int):
    """A TensorFlow DataType number; a type of its own because integer attributes are plain `int`."""


class NodeDef(NamedTuple):
    """A parsed NodeDef: operator, node name and attributes.

    Attributes:
        op: the operator's name.
        name: the node's name.
        attributes: values by name: bytes, int, float, bool, `Type`, `Shape`, or lists of these; a tensor or function stays
            serialized, as a pair ("tensor", bytes) or ("func", bytes).
    """

    op: str
    name: str
    attributes: dict[str, Any]


def read_node_def(data: bytes) -> NodeDef:
    """Parse a serialized NodeDef, the protobuf message with a TensorFlow operator's name and attributes.

    Format: tensorflow/core/framework/{node_def,attr_value,tensor_shape}.proto. The work is bounded by the number of bytes.

    Raises:
        ValueError: the bytes are no NodeDef; the message names the byte position, without a full stop, to stand within a
            sentence.
    """
    op = name = ""
    attributes: dict[str, Any] = {}
    for number, value in fields(data):
        if number == 1:
            name = _text(value)
        elif number == 2:
            op = _text(value)
        elif number == 5:
            entry = dict(fields(_bytes(value)))
            attributes[_text(entry.get(1, b""))] = _attribute(_bytes(entry.get(2, b"")))
    return NodeDef(op, name, attributes)


def _attribute(data: bytes) -> Any:
    """Parse a serialized AttrValue; as in protobuf the last field wins, and an empty message is None."""
    found: Any = None
    for number, value in fields(data):
        if number == 1:
            found = _list(_bytes(value))
        elif number in _SINGLE:
            found = _SINGLE[number](value)
    return found


def _list(data: bytes) -> list[Any]:
    found: list[Any] = []
    for number, value in fields(data):
        if number in _PACKED and isinstance(value, bytes):
            found += _PACKED[number](value)
        elif (read := _SINGLE.get(10 if number == 9 else number)) is not None:
            found.append(read(value))
    return found


def _shape(value: Any) -> Shape:
    sizes = []
    for number, part in fields(_bytes(value)):
        if number == 3 and part:
            return None
        if number == 2:
            sizes.append(_integer(dict(fields(_bytes(part))).get(1, 0)))
    return tuple(sizes)


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError(f"the number {value} stands where a message belongs")
    return value


def _text(value: int | bytes) -> str:
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError:
        raise ValueError("a name is not UTF-8") from None


def _integer(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ValueError("bytes stand where a number belongs")
    return signed(value)


def _float(value: int | bytes) -> float:
    if isinstance(value, int) or len(value) != 4:
        raise ValueError("a float has 4 bytes")
    number: float = struct.unpack("<f", value)[0]
    return number


def _floats(data: bytes) -> list[float]:
    if len(data) % 4:
        raise ValueError(f"{len(data)} bytes of floats are not a multiple of 4")
    return list(struct.unpack(f"<{len(data) // 4}f", data))


#: How a value is read, by its field in AttrValue.
_SINGLE: Final[dict[int, Any]] = {
    2: _bytes,
    3: _integer,
    4: _float,
    5: lambda value: bool(_integer(value)),
    6: lambda value: Type(_integer(value)),
    7: _shape,
    8: lambda value: ("tensor", _bytes(value)),
    10: lambda value: ("func", _bytes(value)),
}

#: How a packed list of values is read, by its field in ListValue.
_PACKED: Final[dict[int, Any]] = {
    3: lambda data: map(_integer, varints(data)),
    4: _floats,
    5: lambda data: map(bool, varints(data)),
    6: lambda data: map(Type, varints(data)),
}
