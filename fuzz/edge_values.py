"""Edge values: the limits of every type, and values just beyond them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuzz.choices import Choices
from oplet.schema.table import Field

__all__ = ["fill_array", "float_value", "int_value", "scalar_value", "small_int", "text", "vector_value"]

_SMALL = (0, 1, 2, 3, 4, 5, 8)
_NEGATIVE = (-1, -2, -3, -4, -8, -128)
_EDGES = (
    7, 9, 16, 31, 32, 33, 63, 64, 99, 127, 128, 255, 256, 1000, 4096, 32767, 32768, 46341, 65535, 65536, 10**6, 2**24, 2**30,
    2**31 - 1, -(2**31), -(2**31) + 1, -129, -32768, -65536, 2**32 - 1, 2**32, 2**62, 2**63 - 1, -(2**63), 2**64 - 1,
)  # fmt: skip
_FLOATS = (
    0.0, -0.0, 1.0, -1.0, 0.5, 1e-3, -1e-3, 1e-20, 1e-38, 1e-45, 3e38, -3e38, 1e10, 255.0, 127.5, float("inf"), float("-inf"),
    float("nan"),
)  # fmt: skip
_TEXTS = ("", "a", "x" * 300, "a\0b", "\udc80\udcff", "../../etc/passwd", "name\n", "ADD", "TFL3", "\u20ac\U0001f600", "%s%n{0}")


def small_int(choices: Choices) -> int:
    """A plausible small number: a size, an axis, an index."""
    return choices.choice(_SMALL) if choices.chance(85) else choices.choice(_NEGATIVE)


def int_value(choices: Choices, low: int, high: int) -> int:
    """An integer of a range, mostly an edge value."""
    kind = choices.below(10)
    if kind < 5:
        value = small_int(choices)
    elif kind < 9:
        value = choices.choice(_EDGES)
    else:
        value = low + choices.below(high - low + 1)
    return min(max(value, low), high)


def float_value(choices: Choices) -> float:
    """A float at an edge: zero, infinity, NaN, or very large or small."""
    return choices.choice(_FLOATS)


def text(choices: Choices) -> str | None:
    """A string, or None."""
    return None if choices.chance(15) else choices.choice(_TEXTS)


def scalar_value(choices: Choices, field: Field, value: Any) -> Any:
    """A new value for a scalar field of a table."""
    if field.number == "bool":
        return not value
    if field.number == "float32":
        return float_value(choices)
    if field.enum is not None and choices.chance(75):
        return choices.choice(list(field.enum))
    low, high = int(np.iinfo(field.dtype).min), int(np.iinfo(field.dtype).max)
    if choices.chance(25):
        return min(max(int(value) + choices.choice((1, -1, 2)), low), high)
    return int_value(choices, low, high)


def vector_value(choices: Choices, dtype: np.dtype[Any], value: Any) -> Any:
    """A new value for a vector of numbers."""
    kind = choices.below(12)
    if kind == 0:
        return None
    if kind == 1:
        return np.zeros(0, dtype)
    array = np.zeros(0, dtype) if value is None else np.array(value, dtype)
    if kind == 2:
        return array[:-1]
    if kind == 3:
        return array[1:]
    if kind == 4 and array.size < 4096:
        return np.concatenate([array, array[: 1 + choices.below(4)]])
    if kind == 5 and array.size < 4096:
        extra = np.zeros(1 + choices.below(choices.choice((2, 8, 100))), dtype)
        fill_array(choices, extra)
        return np.concatenate([array, extra])
    if kind == 6 and array.size > 1:
        i, j = choices.below(array.size), choices.below(array.size)
        array[[i, j]] = array[[j, i]]
        return array
    if not array.size:
        array = np.zeros(1 + choices.below(4), dtype)
    if kind == 7:
        array[choices.below(array.size)] = array[choices.below(array.size)]
    else:
        for _ in range(1 if choices.chance(80) else 3):
            at = choices.below(array.size)
            fill_array(choices, array[at : at + 1])
    return array


def fill_array(choices: Choices, array: Any) -> None:
    """Fill an array with edge values."""
    kind = array.dtype.kind
    for i in range(array.size):
        if kind == "b":
            array[i] = choices.chance(50)
        elif kind in "fc":
            array[i] = float_value(choices)
        elif kind in "iu":
            info = np.iinfo(array.dtype)
            array[i] = int_value(choices, int(info.min), int(info.max))
