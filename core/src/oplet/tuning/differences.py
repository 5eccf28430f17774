"""How far two values of one tensor are apart, and whether that is the same answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.tuning.tolerances import ModelKind, Tolerance, tolerance_for

__all__ = ["Difference", "Worst", "difference", "largest_error", "output_differences", "scale_of"]

Array = NDArray[Any]
#: A value is huge, and no measure for the others, above so many times the middle one of those that are not 0, and above this itself.
_HUGE = 1e4
#: What is smaller than the smallest normal float32 may be flushed to zero.
_TINY = float(np.finfo(np.float32).tiny)
#: A gain counts if it is so many times what the scatter of the errors explains.
_CERTAIN = 4.0


@dataclass(frozen=True)
class Worst:
    """The value that is furthest off, as a part of what it may be.

    Attributes:
        index: its place in the tensor.
        got: the value, of quantized integers as it is stored.
        wanted: what it should be.
        units: its error in the tensor's unit: steps of integers, parts of the scale of real numbers.
        run: the number of the run that it is from.
    """

    index: tuple[int, ...]
    got: Any
    wanted: Any
    units: float
    run: int = 0


@dataclass(frozen=True)
class Difference:
    """What separates a tensor's values from those that are wanted.

    Attributes:
        passed: whether they count as the same answer.
        why: what is wrong where it is not a single value's error: a shape or type that differs, a gain; "" if there is nothing.
        values: how many values were compared.
        differing: how many of them are not equal.
        max_abs: the largest absolute error; of integers the largest step, exactly. Here and below NaN and infinities
            are left out.
        mean_abs: the mean absolute error.
        max_part: the largest error as a part of the tensor's scale.
        allowed: the largest error that passes, in the unit of `worst.units`; None where each value has its own.
        scale: the tensor's scale, of several runs the largest, see `scale_of`.
        nonfinite: how many values are NaN or infinite on either side.
        nonfinite_differing: how many of those are not the same on the other; each fails.
        worst: the value that is furthest off, None if all are equal.
        sums: of wanted * wanted, wanted * error and error * error, which give the gain.
        tolerance: the name of the tolerance.
        steps: whether errors are counted in steps of integers.
    """

    passed: bool = True
    why: str = ""
    values: int = 0
    differing: int = 0
    max_abs: float = 0.0
    mean_abs: float = 0.0
    max_part: float = 0.0
    allowed: float | None = None
    scale: float = 0.0
    nonfinite: int = 0
    nonfinite_differing: int = 0
    worst: Worst | None = None
    sums: tuple[float, float, float] = (0.0, 0.0, 0.0)
    tolerance: str = ""
    steps: bool = False

    @property
    def gain(self) -> float:
        """By which part the values are larger than wanted as a whole: 0.01 where they are wanted * 1.01."""
        ww, we, _ = self.sums
        return we / ww if ww else 0.0

    @property
    def gain_scatter(self) -> float:
        """By how much the gain would be off if the errors were without any order."""
        ww, we, ee = self.sums
        count = max(self.values - self.nonfinite - 1, 1)
        return math.sqrt(max(ee - (we * we / ww), 0.0) / count / ww) if ww else 0.0

    def __add__(self, other: Difference) -> Difference:
        """The two of them as one."""
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
        """The same, failed where the values of all runs together are larger or smaller than wanted by more than the tolerance."""
        if tolerance.gain is None or abs(self.gain) <= tolerance.gain + _CERTAIN * self.gain_scatter:
            return self
        more = "larger" if self.gain > 0 else "smaller"
        return replace(self, passed=False, why=self.why or f"the values are {more} by {abs(self.gain):.2%} as a whole")


def scale_of(wanted: Array) -> float:
    """What errors of a tensor are measured by: the largest magnitude among its finite values.

    Values above 10,000 that are also more than 10,000 times the middle one, like the -1e9 of a mask, are no measure for the others.
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

    Text and truth values must be equal, and so must whole numbers that no scale makes real ones, but for a tolerance by `atol`
    and `rtol`; NaN and infinities must stand in the same places with every tolerance.

    Args:
        got: the value.
        wanted: what it should be.
        tolerance: what passes.
        quantization: the tensor's scale and zero point; (0, 0) where it is not quantized.
        sensitivity: the part of its scale by which the values may be off whatever the tolerance says.
        run: the number of the run.
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
    # The larger less the smaller fits the unsigned type, whatever wraps around on the way.
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
            # A huge value is measured by itself.
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
            # Of those that are as far off as may be, the largest error: where nothing may be off, every share is infinite.
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
    """The difference of each output of a model.

    Args:
        got: an array per output.
        wanted: what they should be.
        details: each output's dictionary of `Interpreter.get_output_details`.
        choose: gives the tolerance for a type and whether it is quantized; or the model's kind, whose presets count.
        sensitivities: how far the model itself moves each output, as a part of its scale.
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
    """The largest error of all as a part of its tensor's scale; infinite where types, shapes, texts or places of NaN differ."""
    return max((_error(found) for found in differences), default=0.0)


def _error(found: Difference) -> float:
    if found.nonfinite_differing or (found.worst is None and not found.passed) or (found.worst and math.isinf(found.worst.units)):
        return math.inf
    return found.max_part
