"""Random values for the inputs of a model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzz.choices import Choices
from oplet.ops.tensor import Tensor

__all__ = ["value_for"]

_WORDS = (b"", b"a", b"word", b"\xff\x00", b"seven words of text in one string", "\u20ac".encode())


def value_for(tensor: Tensor, choices: Choices) -> Any:
    """Values for a tensor of known shape: any bits, ones, or numbers that may be sizes, axes and indices."""
    dtype, shape, size = tensor.dtype, tensor.shape, tensor.size
    if dtype.hasobject:
        words = np.empty(16, object)
        words[:] = [choices.choice(_WORDS) for _ in range(16)]
        return np.resize(words, size).reshape(shape)
    kind = choices.below(4)
    block: NDArray[Any]
    if dtype.kind == "b":
        block = np.frombuffer(choices.raw(64), np.uint8) & 1
    elif kind == 0:  # any bits: NaN, infinities, the largest integers
        block = np.frombuffer(choices.raw(64 * dtype.itemsize), dtype.newbyteorder("="))
    elif kind == 1:
        block = np.full(64, choices.below(2))
    else:
        block = np.frombuffer(choices.raw(64), np.uint8) % (5 if kind == 2 else 40)
        block = block.astype(np.int16) - (choices.below(3) if dtype.kind != "u" else 0)
    return np.resize(block.astype(dtype), size).reshape(shape)
