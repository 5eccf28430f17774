"""Conversion of values to an input's type and shape; a value that the input cannot hold is refused, never changed silently.

A quantized input takes real values, which are quantized as the op QUANTIZE does it. Arrays of integers are ambiguous (real values or the
tensor's own) and refused without `raw`. JSON does not tell integers from floats, so that its integers are real values, with a notice.

Nested lists of numbers, as JSON has them, with every digit kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.errors import TensorError
from oplet_tools.running.values.notices import Notice, NoticeCallback, warn
from oplet_tools.running.values.quantization import Quantization, integer_limits, quantization_of

__all__ = ["check_type", "convert_input", "shape_for"]

_DEEPEST = 32
_NUMBERS = frozenset((int, float, bool))


class NestedListError(ValueError):
    """Nested lists are not an array of numbers; the message says why, as the end of a sentence."""


class NestedNumbers:
    """Numbers in nested lists, before they have a type.

    Attributes:
        shape: the lengths of the lists, the outermost first.
        flat: the numbers in order.
        kinds: the Python types that occur.

    Raises:
        NestedListError: rows differ in length, or an element is not a number.
    """

    def __init__(self, value: Any) -> None:
        shape: list[int] = []
        level: list[Any] = [value]
        while level and all(isinstance(row, list) for row in level):
            if len(shape) == _DEEPEST:
                raise NestedListError(f"it has more than {_DEEPEST} dimensions")
            shape.append(len(level[0]))
            for number, row in enumerate(level):
                if len(row) != shape[-1]:
                    at = self._place(number, shape[:-1])
                    raise NestedListError(f"its rows differ in length: {at} has {len(row)} entries, and the first {shape[-1]}")
            level = list(chain.from_iterable(level))
        self.shape, self.flat, self.kinds = tuple(shape), level, frozenset(map(type, level))
        if self.kinds - _NUMBERS:
            if list in self.kinds:
                raise NestedListError("its rows differ in length: lists stand beside numbers")
            wrong = next(i for i, entry in enumerate(level) if type(entry) not in _NUMBERS)
            raise NestedListError(f"it has {_json(level[wrong])} at {self.place(wrong)}")
        if bool in self.kinds and len(self.kinds) > 1:
            mixed = next(i for i, entry in enumerate(level) if (type(entry) is bool) != (type(level[0]) is bool))
            raise NestedListError(f"it mixes true and false with numbers, at {self.place(mixed)}")

    @property
    def are_whole(self) -> bool:
        """Whether every number is written as an integer."""
        return self.kinds == {int}

    def place(self, position: int) -> list[int]:
        """Return the indices, in the nested lists, of the number at a position of `flat`."""
        return self._place(position, self.shape)

    def as_reals(self) -> NDArray[Any]:
        """Return the numbers as float64, or as booleans if all are true or false.

        Raises:
            NestedListError: an integer exceeds the range of float64.
        """
        if self.kinds == {bool}:
            return np.array(self.flat, np.bool_).reshape(self.shape)
        try:
            return np.array(self.flat, np.float64).reshape(self.shape)
        except OverflowError:
            wrong = next(i for i, number in enumerate(self.flat) if type(number) is int and number.bit_length() > 1023)
            raise NestedListError(f"the number at {self.place(wrong)} is beyond float64") from None

    def as_integers(self, dtype: np.dtype[Any], low: int, high: int) -> NDArray[Any]:
        """Return the numbers as integers of a dtype, without loss.

        Raises:
            NestedListError: a number has a fraction, or is not between `low` and `high`.
        """
        numbers = self.flat
        if self.kinds - {int}:
            wrong = next((i for i, n in enumerate(numbers) if type(n) is float and not n.is_integer()), -1)
            if wrong >= 0:
                raise NestedListError(f"{numbers[wrong]} at {self.place(wrong)} is no integer")
            numbers = list(map(int, numbers))
        if numbers and not (low <= min(numbers) and max(numbers) <= high):
            wrong = next(i for i, n in enumerate(numbers) if not low <= n <= high)
            raise NestedListError(f"{_json(numbers[wrong])} at {self.place(wrong)} is not in {low} to {high}")
        return np.array(numbers, dtype).reshape(self.shape)

    def _place(self, position: int, shape: Any) -> list[int]:
        return [int(i) for i in np.unravel_index(position, shape)] if len(shape) else []


def _json(value: Any) -> str:
    """Format a value in JSON notation, shortened."""
    if value is None:
        return "null"
    if isinstance(value, str):
        return "text"
    if isinstance(value, dict):
        return "an object"
    return str(value) if not isinstance(value, int) or value.bit_length() < 200 else f"a number of {value.bit_length()} bits"


Array = NDArray[Any]
Details = Mapping[str, Any]

#: Number of values that are converted at a time.
_BLOCK = 1 << 20


def convert_input(
    value: Any, details: Details, name: str, source: str, *, raw: bool = False, notify: NoticeCallback = warn
) -> Array:
    """Convert a value to the type and shape of an input.

    Dimensions of 1 may be missing or extra, and free dimensions (-1 in the shape signature) take any size.

    Args:
        value: an array, or nested lists of numbers or strings.
        details: the input's dictionary of `Interpreter.get_input_details`; an entry "limits" is the range of 2- or 4-bit
            integers.
        name: the input's name in messages.
        source: the value's name in messages.
        raw: the value holds a quantized input's integers, not real values.
        notify: called with a notice if real values were clamped, or JSON integers were taken as real values.

    Raises:
        TensorError: the value does not fit.
    """
    dtype = np.dtype(details["dtype"])
    if dtype.kind == "S":
        array = _strings(value, name, source)
    elif isinstance(value, list | int | float | str | dict | None) and not isinstance(value, np.generic):
        array = _from_json(value, details, dtype, name, source, raw, notify)
    else:
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise TensorError(f"The value of input '{name}' in '{source}' is no array of numbers; it takes {dtype.name}.")
        check_type(array.dtype, dtype, name, source)
        array = _from_array(array, details, dtype, name, source, raw, notify)
    return array.reshape(shape_for(array.shape, details, name, source))


def _from_json(
    value: Any, details: Details, dtype: np.dtype[Any], name: str, source: str, raw: bool, notify: NoticeCallback
) -> Array:
    quantization = None if raw else quantization_of(details)
    try:
        nested = NestedNumbers(value)
        if quantization is not None:
            if nested.are_whole:
                notify(_whole_numbers_notice(nested, quantization, name, source))
            return _quantized(nested.as_reals(), quantization, name, source, notify)
        if dtype.kind in "iu":
            return nested.as_integers(dtype, *integer_limits(details))
        reals = nested.as_reals()
    except NestedListError as error:
        raise TensorError(f"'{source}' has no value that fits, input '{name}' takes {dtype.name}: {error}.") from error
    if dtype.kind == "c" and reals.ndim == len(details["shape"]) + 1 and reals.shape[-1:] == (2,):
        reals = np.ascontiguousarray(reals).view(np.complex128)[..., 0]
    return _from_array(reals, details, dtype, name, source, raw, notify)


def _from_array(
    array: Array, details: Details, dtype: np.dtype[Any], name: str, source: str, raw: bool, notify: NoticeCallback
) -> Array:
    quantization = None if raw else quantization_of(details)
    if quantization is not None:
        if array.dtype.kind in "iu":
            raise TensorError(
                f"'{source}' holds {array.dtype.name} integers, and input '{name}' is quantized ({quantization}): give --raw if they are its "
                "own integers, or floats if they are the real values that these stand for."
            )
        return _quantized(array, quantization, name, source, notify)
    if dtype.kind in "iub":
        low, high = (0, 1) if dtype.kind == "b" else integer_limits(details)

        def unlike(cast: Array, block: Array) -> Array:
            return np.asarray((cast != block) | (dtype.kind != "b" and (cast < low) | (cast > high)))

        return _cast(array, dtype, unlike, f"is no {dtype.name} of {low} to {high}", name, source)
    if np.can_cast(array.dtype, dtype):
        return array.astype(dtype, copy=False)

    def lost(cast: Array, block: Array) -> Array:
        return np.asarray(~_finite(cast) & np.isfinite(block))

    return _cast(array, dtype, lost, f"is beyond {dtype.name}", name, source)


def _cast(array: Array, dtype: np.dtype[Any], wrong: Callable[[Array, Array], Array], why: str, name: str, source: str) -> Array:
    cast = np.empty(array.shape, dtype)
    with np.errstate(all="ignore"):
        for start, block, into in _blocks(array, cast):
            into[...] = block.astype(dtype)
            refused = wrong(into, block)
            if refused.any():
                at = start + int(np.flatnonzero(refused)[0])
                place = [int(i) for i in np.unravel_index(at, array.shape)] if array.shape else []
                raise TensorError(
                    f"'{source}' holds {array.reshape(-1)[at]} at {place}, which {why}, which input '{name}' takes."
                )
    return cast


def _blocks(array: Array, into: Array) -> Iterator[tuple[int, Array, Array]]:
    flat, target = array.reshape(-1), into.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        yield start, flat[start : start + _BLOCK], target[start : start + _BLOCK]


def _finite(values: Array) -> Array:
    """Return a mask of the finite values; it handles the dtypes of ml_dtypes too."""
    return np.asarray(np.isfinite(values if values.dtype.kind in "fc" else values.astype(np.float32)))


def _quantized(real: Array, quantization: Quantization, name: str, source: str, notify: NoticeCallback) -> Array:
    integers, clamped = quantization.quantize(real, name, source)
    if clamped is not None:
        held = "of {:.6g} to {:.6g}".format(*quantization.range()) if len(quantization.scales) == 1 else "of its slices"
        text = (
            f"{clamped.number} of {real.size} values of '{source}' were clamped to its range {held}, the first at {clamped.place}: "
            f"{clamped.value:.6g}"
        )
        facts = {"values": real.size, "clamped": clamped.number, "first": clamped.place}
        notify(Notice("clamped", name, text, facts))
    return integers


def _whole_numbers_notice(nested: NestedNumbers, quantization: Quantization, name: str, source: str) -> Notice:
    text = f"the whole numbers of '{source}' are taken as real values and quantized ({quantization}); --raw takes them as its integers"
    return Notice("whole numbers", name, text, {"values": len(nested.flat)})


def check_type(given: np.dtype[Any], dtype: np.dtype[Any], name: str, source: str) -> None:
    """Check that an array's dtype suits an input.

    Raises:
        TensorError: no value of that dtype could be a value of the input.
    """
    if dtype.kind == "S":
        if given.kind not in "SUO":
            raise TensorError(f"'{source}' holds {given} values where input '{name}' takes text.")
    elif given.kind not in "biufcV" or (given.kind == "V" and given != dtype):
        raise TensorError(f"'{source}' holds {given} values, input '{name}' takes {dtype.name}.")
    elif given.kind == "c" and dtype.kind != "c":
        raise TensorError(f"'{source}' holds complex values, input '{name}' takes {dtype.name}.")


def shape_for(given: tuple[int, ...], details: Details, name: str, source: str) -> tuple[int, ...]:
    """Return the shape that a value is reshaped to for an input; the number of elements stays the same.

    Raises:
        TensorError: the shape does not fit the input.
    """
    shape = tuple(map(int, details["shape"]))
    signature = tuple(map(int, details["shape_signature"])) or shape
    if len(signature) != len(shape):
        signature = shape
    if _matches(given, signature):
        return given
    # Dimensions other than 1 must agree. With free dimensions only leading ones may be missing, as others would be ambiguous.
    if -1 not in signature:
        if [d for d in given if d != 1] == [d for d in shape if d != 1]:
            return shape
    else:
        padded = (1,) * (len(signature) - len(given)) + given
        if _matches(padded, signature):
            return padded
    raise TensorError(f"'{source}' has the shape {_shown(given)}, input '{name}' takes {_shown(signature)}.")


def _matches(shape: Sequence[int], signature: Sequence[int]) -> bool:
    return len(shape) == len(signature) and all(s in (-1, d) for d, s in zip(shape, signature))


def _shown(shape: Sequence[int]) -> str:
    return "[" + ", ".join("any" if dim == -1 else str(dim) for dim in shape) + "]"


def _strings(value: Any, name: str, source: str) -> Array:
    try:
        array = np.asarray(value, object)
        flat = np.empty(array.size, object)
        for i, item in enumerate(array.ravel().tolist()):
            if not isinstance(item, str | bytes):
                what = repr(item)[:40] if isinstance(item, int | float | bool | None) else f"a {type(item).__name__}"
                raise TensorError(f"'{source}' holds {what} where input '{name}' takes text.")
            # `oplet_tools.running.outputs` writes bytes that are not UTF-8 as surrogate escapes.
            flat[i] = item.encode("utf-8", "surrogateescape") if isinstance(item, str) else item
    except TensorError:
        raise
    except (ValueError, OverflowError) as error:  # uneven rows, or surrogates that are not escapes
        raise TensorError(
            f"'{source}' holds text for input '{name}' that has no form in UTF-8, or uneven rows: {error}."
        ) from error
    return flat.reshape(array.shape)
