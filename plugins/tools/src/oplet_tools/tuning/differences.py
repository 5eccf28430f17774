"""The difference between two values of one tensor, and whether it is within a tolerance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet_tools.tuning.tolerances import ModelKind, Tolerance, tolerance_for

__all__ = ["Difference", "Worst", "difference", "largest_error", "output_differences", "scale_of"]

Array = NDArray[Any]
#: Values above this, and above this many times the median of the nonzero ones, are left out of a tensor's scale.
_HUGE = 1e4
#: The smallest normal float32; engines may flush smaller values to zero.
_TINY = float(np.finfo(np.float32).tiny)
#: A gain counts from so many standard errors on.
_CERTAIN = 4.0


@dataclass(frozen=True)
class Worst:
    """The value with the largest error relative to the error that is allowed for it."""

    index: tuple[int, ...]  #: Its position in the tensor.
    got: Any  #: The compared value; for quantized tensors the stored integer.
    wanted: Any  #: The value that was expected.
    units: float  #: Its error: steps for integers; for real numbers a fraction of the tensor's largest magnitude (`scale_of`).
    run: int = 0  #: The number of the run that it is from.


@dataclass(frozen=True)
class Difference:
    """The difference between a tensor's values and the expected ones, of one run or of several."""

    passed: bool = True  #: Whether it is within the tolerance.
    why: str = ""  #: The reason of a failure that is not one value's error: a shape or type that differs, a gain; else "".
    values: int = 0  #: The number of values that were compared.
    differing: int = 0  #: The number of values that are not equal.
    #: The largest absolute error, for integers in steps; NaN and infinities are left out, as in the other errors.
    max_abs: float = 0.0
    mean_abs: float = 0.0  #: The mean absolute error.
    max_part: float = 0.0  #: The largest error as a fraction of the tensor's largest magnitude, `scale`.
    #: The largest error that passes, in the unit of `worst.units`; None where it differs from value to value.
    allowed: float | None = None
    scale: float = 0.0  #: The largest magnitude of the expected values (`scale_of`), not a quantization scale; over all runs.
    nonfinite: int = 0  #: The number of values that are NaN or infinite on either side.
    nonfinite_differing: int = 0  #: The number of non-finite values that differ from the other side; each of them fails.
    worst: Worst | None = None  #: The value with the largest error, None if all are equal.
    #: The sums of wanted * wanted, wanted * error and error * error, from which the gain follows.
    sums: tuple[float, float, float] = (0.0, 0.0, 0.0)
    tolerance: str = ""  #: The name of the tolerance.
    steps: bool = False  #: Whether errors are counted in integer steps.

    @property
    def gain(self) -> float:
        """The relative gain error by least squares: 0.01 where the values are wanted * 1.01."""
        ww, we, _ = self.sums
        return we / ww if ww else 0.0

    @property
    def gain_scatter(self) -> float:
        """The standard error of the relative gain error `gain`, if the values' rounding errors are independent of one another."""
        ww, we, ee = self.sums
        count = max(self.values - self.nonfinite - 1, 1)
        return math.sqrt(max(ee - (we * we / ww), 0.0) / count / ww) if ww else 0.0

    def __add__(self, other: Difference) -> Difference:
        """Combine the differences of two sets of values."""
        finite, others = self.values - self.nonfinite, other.values - other.nonfinite
        worsts = [worst for worst in (self.worst, other.worst) if worst is not None]
        alloweds = [allowed for allowed in (self.allowed, other.allowed) if allowed is not None]
        return Difference(
            self.passed and other.passed,
            self.why or other.why,
            self.values + other.values,
            self.differing + other.differing,
            max(self.max_abs, other.max_abs),
            (self.mean_abs * finite + other.mean_abs * others) / (finite + others) if finite + others else 0.0,
            max(self.max_part, other.max_part),
            max(alloweds, default=None),
            max(self.scale, other.scale),
            self.nonfinite + other.nonfinite,
            self.nonfinite_differing + other.nonfinite_differing,
            max(worsts, key=lambda worst: (math.isnan(worst.units), worst.units), default=None),
            (self.sums[0] + other.sums[0], self.sums[1] + other.sums[1], self.sums[2] + other.sums[2]),
            self.tolerance or other.tolerance,
            self.steps or other.steps,
        )

    def judged_as_whole(self, tolerance: Tolerance) -> Difference:
        """Return a copy that fails also if `gain` is beyond the tolerance by more than its standard error explains."""
        if tolerance.gain is None or abs(self.gain) <= tolerance.gain + _CERTAIN * self.gain_scatter:
            return self
        more = "larger" if self.gain > 0 else "smaller"
        return replace(self, passed=False, why=self.why or f"the values are {more} by {abs(self.gain):.2%} as a whole")


def scale_of(wanted: Array) -> float:
    """Return the "scale" by which a tensor's errors are measured: the largest magnitude among its finite values.

    Outliers, like the -1e9 of a mask, are left out: values above 10,000 that are also more than 10,000 times the median.
    """
    sizes = np.abs(wanted[np.isfinite(wanted)])
    if not sizes.size:
        return 0.0
    largest = float(sizes.max())
    if largest > _HUGE:
        there = sizes[sizes > 0]
        limit = _HUGE * max(1.0, float(np.median(there)))
        if largest > limit:
            largest = float(there[there <= limit].max(initial=0.0))
    return largest


def difference(
    got: Array,
    wanted: Array,
    tolerance: Tolerance,
    quantization: tuple[float, int] = (0.0, 0),
    *,
    sensitivity: float = 0.0,
    run: int = 0,
) -> Difference:
    """Compare two values of one tensor.

    Strings and booleans must be equal, and so must integers that are not quantized unless the tolerance has `atol` or `rtol`. NaN and
    infinities must be in the same places with every tolerance.

    Args:
        got: the value.
        wanted: the expected value.
        tolerance: the errors that pass.
        quantization: the tensor's quantization scale and zero point; (0, 0) where it is not quantized.
        sensitivity: an error that passes regardless of the tolerance, as a fraction of the largest magnitude (`scale_of`).
        run: the number of the run, for `Worst.run`.
    """
    got, wanted = np.asarray(got), np.asarray(wanted)
    name = str(tolerance)
    if _kind(got) != _kind(wanted):
        return Difference(False, f"the type is {_kind(got)}, not {_kind(wanted)}", tolerance=name)
    if got.shape != wanted.shape:
        return Difference(False, f"the shape is {list(got.shape)}, not {list(wanted.shape)}", tolerance=name)
    if got.dtype.kind in "OSUb":
        unlike = np.asarray(got != wanted)
        differing = int(np.count_nonzero(unlike))
        return Difference(
            not differing, values=got.size, differing=differing, worst=_first(unlike, got, wanted, run), tolerance=name
        )
    if got.dtype.kind in "iu":
        return _of_integers(got, wanted, tolerance, quantization, sensitivity, run)
    return _of_reals(got, wanted, tolerance, sensitivity, run)


def _of_integers(
    got: Array, wanted: Array, tolerance: Tolerance, quantization: tuple[float, int], sensitivity: float, run: int
) -> Difference:
    # The difference modulo 2**64 of the larger and the smaller value is exact for int64 and uint64.
    steps = np.maximum(got, wanted).astype(np.uint64) - np.minimum(got, wanted).astype(np.uint64)
    by_value = tolerance.rtol is not None
    scaled = bool(quantization[0])
    centred = wanted.astype(np.float64) - (quantization[1] if scaled and not by_value else 0)
    scale = scale_of(centred)
    allowed: Array | float
    if by_value:
        allowed = (tolerance.atol or 0.0) + (tolerance.rtol or 0.0) * np.abs(centred)
    elif not scaled:
        allowed = sensitivity * scale
    else:
        own = tolerance.part * scale if tolerance.steps is None else tolerance.steps
        allowed = max(own, sensitivity * scale)
    found = _summary(steps, steps.astype(np.float64), centred, allowed, scale, 1.0, got, wanted, run)
    if scaled:
        errors = got.astype(np.float64) - wanted.astype(np.float64)
        found = replace(found, sums=_sums(centred, errors))
    return replace(found, tolerance=str(tolerance), steps=True)


def _of_reals(got: Array, wanted: Array, tolerance: Tolerance, sensitivity: float, run: int) -> Difference:
    wide: Any = np.complex128 if got.dtype.kind == "c" else np.float64
    left, right = got.astype(wide), wanted.astype(wide)
    finite = np.isfinite(left) & np.isfinite(right)
    odd = (left != right) & ~(np.isnan(left) & np.isnan(right)) & ~finite
    scale = scale_of(right)
    with np.errstate(over="ignore", invalid="ignore"):
        errors = np.where(finite, np.abs(left - right), 0.0)
        sizes = np.where(finite, np.abs(right), 0.0)
        allowed: Array | float
        if tolerance.rtol is not None:
            allowed = (tolerance.atol or 0.0) + tolerance.rtol * sizes
        else:
            part = max(tolerance.part, sensitivity)
            # An outlier's error is measured by its own magnitude.
            allowed = np.maximum(part * np.maximum(sizes, scale), _TINY if part else 0.0)
        unit = scale or 1.0
        found = _summary(errors, errors, right, allowed, scale, unit, got, wanted, run, finite)
        if got.dtype.kind != "c":
            small = finite & (sizes <= scale)
            found = replace(found, sums=_sums(np.real(right[small]), np.real(left[small] - right[small])))
    unlike = int(np.count_nonzero(odd))
    if unlike:
        worst = _first(odd, got, wanted, run)
        found = replace(found, passed=False, worst=worst, differing=found.differing + unlike)
    count = int(np.count_nonzero(~finite))
    return replace(found, values=got.size, nonfinite=count, nonfinite_differing=unlike, tolerance=str(tolerance))


def _summary(
    exact: Array,
    errors: Array,
    wanted: Array,
    allowed: Array | float,
    scale: float,
    unit: float,
    got: Array,
    stored: Array,
    run: int,
    finite: Array | None = None,
) -> Difference:
    limit = float(np.max(allowed)) / unit if np.ndim(allowed) == 0 else None
    if np.ndim(allowed):
        flat = np.asarray(allowed)
        limit = float(flat.flat[0]) / unit if flat.size and bool((flat == flat.flat[0]).all()) else None
    if not errors.size:
        return Difference(allowed=limit, scale=scale)
    worst = None
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if errors.any():
            shares = np.where(errors > 0, errors / np.asarray(allowed), 0.0)
            # Several values may share the largest ratio (all are infinite where nothing is allowed): take the largest error of these.
            most = np.where(shares == shares.max(), errors, -1.0)
            index = np.unravel_index(int(np.argmax(most)), errors.shape)
            place = tuple(map(int, index))
            worst = Worst(place, _item(got[place]), _item(stored[place]), float(errors[place] / unit), run)
        counted = errors if finite is None else errors[finite]
        return Difference(
            bool(np.all(errors <= allowed)),
            values=errors.size,
            differing=int(np.count_nonzero(errors)),
            max_abs=exact.max().item(),
            mean_abs=_finite(counted.mean(dtype=np.float64)) if counted.size else 0.0,
            max_part=_finite(errors.max() / scale) if scale else (math.inf if errors.any() else 0.0),
            allowed=limit,
            scale=scale,
            worst=worst,
        )


def _sums(wanted: Array, errors: Array) -> tuple[float, float, float]:
    with np.errstate(over="ignore"):
        found = [float(np.sum(product)) for product in (wanted * wanted, wanted * errors, errors * errors)]
    return (found[0], found[1], found[2]) if all(map(math.isfinite, found)) else (0.0, 0.0, 0.0)


def _first(unlike: Array, got: Array, wanted: Array, run: int) -> Worst | None:
    if not unlike.any():
        return None
    place = tuple(map(int, np.unravel_index(int(np.argmax(unlike)), unlike.shape)))
    return Worst(place, _item(got[place]), _item(wanted[place]), math.inf, run)


def _item(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, bytes):
        return plain.decode(errors="backslashreplace")
    return plain if isinstance(plain, bool | int | str) else (float(plain) if isinstance(plain, float) else str(value))


def _kind(array: Array) -> str:
    return "string" if array.dtype.kind in "OSU" else array.dtype.name


def _finite(value: Any) -> float:
    return min(float(value), math.nextafter(math.inf, 0))


def output_differences(
    got: Sequence[Array],
    wanted: Sequence[Array],
    details: Sequence[Mapping[str, Any]],
    choose: Callable[[np.dtype[Any], bool], Tolerance] | ModelKind,
    sensitivities: Sequence[float] = (),
) -> list[Difference]:
    """Return the difference of each output of a model.

    Args:
        got: one array per output.
        wanted: the expected arrays.
        details: each output's dictionary of `Interpreter.get_output_details`.
        choose: a function from dtype and whether it is quantized to a tolerance; or the model's kind, for its presets.
        sensitivities: for each output the error that passes in any case, as a fraction of its largest magnitude (`scale_of`).
    """
    found = []
    for number, (left, right, entry) in enumerate(zip(got, wanted, details)):
        right = np.asarray(right)
        quantized = bool(entry["quantization"][0])
        tolerance = (
            tolerance_for(right.dtype, quantized, choose) if isinstance(choose, ModelKind) else choose(right.dtype, quantized)
        )
        found.append(
            difference(left, right, tolerance, entry["quantization"], sensitivity=sensitivities[number] if sensitivities else 0.0)
        )
    return found


def largest_error(differences: Sequence[Difference]) -> float:
    """Return the largest error as a fraction of its tensor's largest magnitude; infinity where types, shapes, strings or the
    places of NaN differ.
    """
    return max((_error(found) for found in differences), default=0.0)


def _error(found: Difference) -> float:
    if found.nonfinite_differing or (found.worst is None and not found.passed) or (found.worst and math.isinf(found.worst.units)):
        return math.inf
    return found.max_part
