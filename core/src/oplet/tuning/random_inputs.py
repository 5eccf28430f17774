"""Random values for a model's inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["random_input"]


def random_input(details: Mapping[str, Any], random: np.random.Generator) -> NDArray[Any]:
    """A random value: real numbers in 0..1, the whole range of a quantized type, small whole numbers otherwise.

    Args:
        details: the input's dictionary of `Interpreter.get_input_details`.
    """
    dtype = np.dtype(details["dtype"])
    shape = tuple(map(int, details["shape"]))
    if dtype.kind == "S":
        return np.full(shape, b"text", object)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        if details["quantization"][0]:
            limits = np.iinfo(details["dtype"])
            return random.integers(limits.min, limits.max, shape, details["dtype"], endpoint=True)
        return random.integers(0, 10, shape).astype(dtype)
    if dtype.kind == "c":
        return (random.random(shape) + 1j * random.random(shape)).astype(dtype)
    return np.asarray(random.random(shape)).astype(dtype)
