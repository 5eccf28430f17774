"""How far two values of one tensor are apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Difference", "difference"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Difference:
    """What separates a tensor's values from those that are wanted.

    Attributes:
        passed: whether every value is within `atol + rtol * |wanted|`, and shapes and types are equal.
        why: a shape or type that differs; "" if there is none.
        values: how many values were compared.
        differing: how many of them are not equal.
        max_abs: the largest absolute error; of integers the largest step, exactly. Here and below NaN and infinities
            are left out.
        mean_abs: the mean absolute error.
        max_rel: the largest error relative to the value wanted, of values wanted that are not 0.
        nonfinite: how many values are NaN or infinite on either side.
        nonfinite_differing: how many of those are not the same on the other; each fails.
    """

    passed: bool = True
    why: str = ""
    values: int = 0
    differing: int = 0
    max_abs: float = 0.0
    mean_abs: float = 0.0
    max_rel: float = 0.0
    nonfinite: int = 0
    nonfinite_differing: int = 0

    def __add__(self, other: Difference) -> Difference:
        """The two of them as one."""
        finite, others = self.values - self.nonfinite, other.values - other.nonfinite
        return Difference(
            self.passed and other.passed,
            self.why or other.why,
            self.values + other.values,
            self.differing + other.differing,
            max(self.max_abs, other.max_abs),
            (self.mean_abs * finite + other.mean_abs * others) / (finite + others) if finite + others else 0.0,
            max(self.max_rel, other.max_rel),
            self.nonfinite + other.nonfinite,
            self.nonfinite_differing + other.nonfinite_differing,
        )


def difference(got: Array, wanted: Array, rtol: float, atol: float) -> Difference:
    """Compare two values of one tensor.

    Args:
        rtol: relative tolerance. Text and truth values must be equal.
        atol: absolute tolerance, of integers in steps.
    """
    got, wanted = np.asarray(got), np.asarray(wanted)
    if _kind(got) != _kind(wanted):
        return Difference(False, f"the type is {_kind(got)}, not {_kind(wanted)}")
    if got.shape != wanted.shape:
        return Difference(False, f"the shape is {list(got.shape)}, not {list(wanted.shape)}")
    if got.dtype.kind in "OSUb":
        differing = int(np.count_nonzero(got != wanted))
        return Difference(not differing, values=got.size, differing=differing)
    if got.dtype.kind in "iu":
        # The larger less the smaller fits the unsigned type, whatever wraps around on the way.
        steps = np.maximum(got, wanted).astype(np.uint64) - np.minimum(got, wanted).astype(np.uint64)
        return _summary(steps, np.abs(wanted.astype(np.float64)), rtol, atol)
    wide: Any = np.complex128 if got.dtype.kind == "c" else np.float64
    got, wanted = got.astype(wide), wanted.astype(wide)
    finite = np.isfinite(got) & np.isfinite(wanted)
    odd = (got != wanted) & ~(np.isnan(got) & np.isnan(wanted)) & ~finite
    with np.errstate(over="ignore"):
        part = _summary(np.abs(got[finite] - wanted[finite]), np.abs(wanted[finite]), rtol, atol)
    unlike = int(np.count_nonzero(odd))
    beyond = Difference(not unlike, values=int(np.count_nonzero(~finite)), differing=unlike)
    return part + Difference(**{**vars(beyond), "nonfinite": beyond.values, "nonfinite_differing": unlike})


def _kind(array: Array) -> str:
    return "string" if array.dtype.kind in "OSU" else array.dtype.name


def _summary(errors: Array, sizes: Array, rtol: float, atol: float) -> Difference:
    if not errors.size:
        return Difference()
    with np.errstate(over="ignore"):
        relative = errors[sizes > 0] / sizes[sizes > 0]
        return Difference(
            bool(np.all(errors <= atol + rtol * sizes)),
            values=errors.size,
            differing=int(np.count_nonzero(errors)),
            max_abs=errors.max().item(),
            mean_abs=_finite(errors.mean(dtype=np.float64)),
            max_rel=_finite(relative.max(initial=0)),
        )


def _finite(value: Any) -> float:
    return min(float(value), math.nextafter(math.inf, 0))
