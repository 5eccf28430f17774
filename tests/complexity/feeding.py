"""What is written into the inputs of a model: written in place, so that it takes no memory of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = ["FILLS", "Feed", "feed"]

#: How inputs are filled; the first that a seed's node takes is its own.
FILLS = ("zeros", "ones", "ramp", "twos", "random", "most", "falling")

_BLOCK = 1 << 16


@dataclass(frozen=True)
class Feed:
    """What a model is given.

    Attributes:
        fill: one of FILLS, for all inputs.
        given: by input and position, single numbers.
        words: by input, the words in the first string.
    """

    fill: str = "zeros"
    given: Mapping[int, Mapping[int, int]] = field(default_factory=dict)
    words: Mapping[int, int] = field(default_factory=dict)


def feed(interpreter: Any, values: Feed) -> None:
    """Fill all inputs of an interpreter whose tensors are allocated."""
    for position, detail in enumerate(interpreter.get_input_details()):
        if detail["dtype"] in (np.object_, np.bytes_, np.str_):
            interpreter.set_tensor(detail["index"], _strings(tuple(detail["shape"]), values, position))
            continue
        view = interpreter.tensor(detail["index"])()
        if not view.flags.writeable:
            continue
        flat = view.reshape(-1)
        _fill(flat, values.fill)
        for place, number in values.given.get(position, {}).items():
            if place < flat.size and flat.dtype.kind in "iu":
                flat[place] = min(max(number, np.iinfo(flat.dtype).min), np.iinfo(flat.dtype).max)
        del view, flat


def _fill(flat: Any, how: str) -> None:
    dtype = flat.dtype
    if how in ("zeros", "ones", "twos"):
        flat[...] = ("zeros", "ones", "twos").index(how)
    elif how == "most":
        flat[...] = True if dtype.kind == "b" else np.iinfo(dtype).max if dtype.kind in "iu" else np.finfo(dtype).max
    elif dtype.kind == "b":
        flat[...] = True
    elif how == "random":
        rng = np.random.default_rng(flat.size)
        block = rng.integers(0, 8, _BLOCK) if dtype.kind in "iu" else rng.standard_normal(_BLOCK)
        for start in range(0, flat.size, _BLOCK):
            flat[start : start + _BLOCK] = block[: flat.size - start].astype(dtype)
    else:
        for start in range(0, flat.size, _BLOCK):
            part = flat[start : start + _BLOCK]
            values = np.arange(start, start + part.size)
            with np.errstate(all="ignore"):
                part[...] = (flat.size - values if how == "falling" else values).astype(dtype)


def _strings(shape: tuple[int, ...], values: Feed, position: int) -> Any:
    strings = np.empty(shape, object)
    strings[...] = b"a b"
    words = values.words.get(position)
    if words is not None and strings.size:
        strings.reshape(-1)[0] = b"w " * min(words, 1 << 22)
    return strings
