"""Random values for a model's inputs, and given values perturbed by the least that their type allows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["perturbed_input", "random_input"]

#: One quantized value in so many is perturbed: LiteRT's own kernels differ by a step in about as many.
_ONE_IN = 8


def random_input(details: Mapping[str, Any], random: np.random.Generator) -> NDArray[Any]:
    """Return a random value for an input, in its shape and dtype: real numbers in [0, 1), quantized integers of the whole range,
    others in 0..9.

    Args:
        details: the input's dictionary of `Interpreter.get_input_details`; an optional entry "limits" gives the least and the largest
            integer.
    """
    dtype = np.dtype(details["dtype"])
    shape = tuple(map(int, details["shape"]))
    if dtype.kind == "S":
        return np.full(shape, b"text", object)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        limits = np.iinfo(details["dtype"])
        low, high = details.get("limits", (limits.min, limits.max))
        if _is_quantized(details):
            return random.integers(low, high, shape, details["dtype"], endpoint=True)
        return random.integers(0, min(9, high), shape, endpoint=True).astype(dtype)
    if dtype.kind == "c":
        return (random.random(shape) + 1j * random.random(shape)).astype(dtype)
    return np.asarray(random.random(shape)).astype(dtype)


def perturbed_input(value: NDArray[Any], details: Mapping[str, Any], random: np.random.Generator) -> NDArray[Any]:
    """Return a value changed by about an engine's rounding error; the resulting change of a model's outputs is its sensitivity.

    Every real number becomes one of its two neighbours, and one in eight quantized integers changes by 1. Other values are unchanged.

    Args:
        details: its dictionary of `Interpreter.get_input_details`.
        random: the generator that decides each direction.
    """
    if value.dtype.kind == "f":
        toward = np.where(random.random(value.shape) < 0.5, -np.inf, np.inf).astype(value.dtype)
        return np.asarray(np.nextafter(value, toward), value.dtype)
    if value.dtype.kind in "iu" and _is_quantized(details):
        limits = np.iinfo(value.dtype)
        steps = random.choice([-1, 1], value.shape) * (random.integers(0, _ONE_IN, value.shape) == 0)
        moved: NDArray[Any] = np.clip(value.astype(np.int64) + steps, limits.min, limits.max).astype(value.dtype)
        return moved
    return value


def _is_quantized(details: Mapping[str, Any]) -> bool:
    """Return whether the tensor has a scale, or one for each channel."""
    parameters = details.get("quantization_parameters", {"scales": details["quantization"][:1]})
    return bool(np.any(parameters["scales"]))
