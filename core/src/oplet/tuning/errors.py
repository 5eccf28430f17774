"""How far the outputs of two runs are apart, as one number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["output_error"]

Array = NDArray[Any]


def output_error(got: Sequence[Array], wanted: Sequence[Array], details: Sequence[Mapping[str, Any]]) -> float:
    """The largest error of any output, as a part of that output's largest value.

    Of values below 1 it is the error itself. Quantized outputs count as the real numbers that they stand for. What differs
    in shape, in text, or in where it is not finite, is infinitely far off.

    Args:
        got: an array per output.
        wanted: what they should be.
        details: each output's dictionary of `Interpreter.get_output_details`.
    """
    return max((_error(np.asarray(g), np.asarray(w), d) for g, w, d in zip(got, wanted, details)), default=0.0)


def _error(got: Array, wanted: Array, details: Mapping[str, Any]) -> float:
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return float("inf")
    if got.dtype.kind in "OSU":
        return 0.0 if np.array_equal(got, wanted) else float("inf")
    scale = float(details["quantization"][0]) if got.dtype.kind in "iu" else 0.0
    wide: Any = np.complex128 if got.dtype.kind == "c" else np.float64
    unit = scale or 1.0
    left, right = got.astype(wide) * unit, wanted.astype(wide) * unit
    finite = np.isfinite(right)
    if not np.array_equal(left[~finite], right[~finite], equal_nan=True) or not np.isfinite(left[finite]).all():
        return float("inf")
    if not finite.any():
        return 0.0
    zero = details["quantization"][1] * unit if scale else 0.0
    largest = np.abs(right[finite] - zero).max()
    return float(np.abs(left[finite] - right[finite]).max() / max(1.0, largest))
