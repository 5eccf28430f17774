"""Conversion between the protocol's tensors and arrays: JSON values, gRPC's typed contents, raw bytes."""

from __future__ import annotations

import base64
import binascii
import itertools
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.errors import LimitError, ModelError, TensorError
from oplet_serve.values.elements import JsonElements, flattened
from oplet_serve.values.slices import ELEMENTS, SMALL, slice_starts

__all__ = [
    "HALVES",
    "MOST_DIMENSIONS",
    "Scalars",
    "TensorSpec",
    "as_json",
    "as_raw",
    "nbytes_of",
    "read_tensor",
    "stated_sizes",
    "weight_of",
]

Array = NDArray[Any]

_DATATYPES = {name: name.upper() for name in ("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")}
_DATATYPES |= {"float16": "FP16", "bfloat16": "BF16", "float32": "FP32", "float64": "FP64", "object": "BYTES"}
#: 16-bit floats, which gRPC carries only as raw bytes.
HALVES = ("FP16", "BF16")
#: Dimensions of an array of numpy 1.
MOST_DIMENSIONS = 32
#: Bytes of an array, where nothing is said: numpy makes no larger ones.
_MOST_BYTES = (1 << 63) - 1
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Scalars:
    """The elements of a typed field of gRPC's InferTensorContents, read without a Python object for each."""

    values: Sequence[Any]  #: The elements.
    dtype: str  #: The elements' numpy dtype.


@dataclass(frozen=True)
class TensorSpec:
    """Name, type and shape of an input or output in the protocol."""

    name: str  #: Its name in the model.
    dtype: np.dtype[Any]  #: Its numpy dtype; object for text.
    shape: tuple[int, ...]  #: Its shape, -1 where any size is accepted.

    @property
    def datatype(self) -> str:
        """The protocol's name of the tensor's type, such as "FP32".

        Raises:
            ModelError: the protocol has no such type.
        """
        found = _DATATYPES.get(self.dtype.name)
        if found is None:
            raise ModelError(
                f"The tensor '{self.name}' is {self.dtype}, for which the Open Inference Protocol has no datatype; put a CAST in front of it."
            )
        return found


def read_tensor(
    spec: TensorSpec, datatype: object, shape: object, data: object, base64_text: bool = False, most_bytes: int = _MOST_BYTES
) -> Array:
    """Convert a tensor of a request to an array; type, shape and size are checked before anything is allocated.

    Args:
        spec: the input.
        datatype: the datatype in the request.
        shape: the shape in the request.
        data: raw bytes in the protocol's packing; or elements, nested or flat: a sequence, or the text of a JSON list.
        base64_text: whether strings are encoded in base64.
        most_bytes: the most bytes that the array may have.

    Raises:
        TensorError: datatype, shape or data does not fit the input or one another.
        LimitError: the array would be larger than is allowed.
    """
    where, sizes = f"input '{spec.name}'", stated_sizes(spec, datatype, shape)
    count = math.prod(sizes)
    if isinstance(data, (bytes, memoryview)):
        array = _from_bytes(where, spec, data, count)
    elif isinstance(data, JsonElements):
        portions = data.portions(where, sizes, count)  # which has compared the numbers
        _check_size(where, spec, sizes, count, most_bytes)
        array = np.empty(count, spec.dtype)
        place = 0
        for portion in portions:
            array[place : place + len(portion)] = _read(where, spec, portion, base64_text)
            place += len(portion)
    elif isinstance(data, Scalars):
        if len(data.values) != count:
            raise TensorError(f"{where}: {len(data.values)} elements were given, but the shape {list(sizes)} has {count}.")
        values = iter(data.values)
        given = np.empty(count, data.dtype)
        for start in slice_starts(count, ELEMENTS):
            size = min(ELEMENTS, count - start)
            given[start : start + size] = np.fromiter(itertools.islice(values, size), data.dtype, size)
        array = _cast(where, spec, given)
    elif isinstance(data, Sequence) and not isinstance(data, str):
        array = _read(where, spec, flattened(where, data, sizes, count), base64_text)
    else:
        raise TensorError(f"{where}: 'data' is missing or no list of elements.")
    if array.size != count:
        raise TensorError(f"{where}: {array.size} elements were given, but the shape {list(sizes)} has {count}.")
    _check_size(where, spec, sizes, count, most_bytes)
    return array.reshape(sizes)


def stated_sizes(spec: TensorSpec, datatype: object, shape: object) -> tuple[int, ...]:
    """Check the type and shape in a request against an input, as `read_tensor` does; return the shape.

    Raises:
        TensorError: the type or shape does not fit the input.
    """
    where = f"input '{spec.name}'"
    if datatype != spec.datatype:
        raise TensorError(f"{where}: the datatype is {_told(datatype, 40)}, but it takes {spec.datatype}.")
    return _sizes(where, spec, shape)


def _check_size(where: str, spec: TensorSpec, sizes: tuple[int, ...], count: int, most_bytes: int) -> None:
    """Raise if so many elements, or such a shape of none, are too large."""
    nbytes = max(count, math.prod(max(size, 1) for size in sizes) if not count else 0) * spec.dtype.itemsize
    if nbytes > most_bytes:
        raise LimitError(f"{where}: the shape {list(sizes)} of {spec.datatype} is {nbytes} bytes, and one may have {most_bytes}.")


def _told(value: object, length: int) -> str:
    """Return what a request has, cut before it is written out."""
    return repr(value[:length] if isinstance(value, str) else value)[:length]


def _sizes(where: str, spec: TensorSpec, shape: object) -> tuple[int, ...]:
    if not isinstance(shape, Sequence) or isinstance(shape, (str, bytes)) or len(shape) > MOST_DIMENSIONS:
        raise TensorError(f"{where}: 'shape' is no list of at most {MOST_DIMENSIONS} sizes.")
    if not all(isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 1 << 63 for size in shape):
        raise TensorError(f"{where}: the shape {list(shape)!r:.200} has something else than sizes of 0 and more.")
    if len(shape) != len(spec.shape) or any(mine not in (-1, its) for mine, its in zip(spec.shape, shape)):
        free = ", where -1 may be any size" if -1 in spec.shape else ""
        raise TensorError(f"{where}: the shape is {list(shape)}, but it takes {list(spec.shape)}{free}.")
    return tuple(shape)


def _from_bytes(where: str, spec: TensorSpec, data: bytes | memoryview, count: int) -> Array:
    if spec.dtype == object:
        return _object_array(_unpacked(where, bytes(data), count))
    if len(data) != count * spec.dtype.itemsize:
        raise TensorError(
            f"{where}: {len(data)} bytes were given, but {count} elements of {spec.datatype} have {count * spec.dtype.itemsize}."
        )
    if spec.dtype == bool:
        return np.frombuffer(data, np.uint8).astype(bool)
    return np.frombuffer(data, spec.dtype.newbyteorder("<") if spec.dtype.isnative else spec.dtype).astype(spec.dtype, copy=False)


def _unpacked(where: str, data: bytes, count: int) -> list[bytes]:
    """Split packed BYTES elements, each of which is preceded by its length in four bytes."""
    found: list[bytes] = []
    place = 0
    while place < len(data):
        if len(found) == count:
            raise TensorError(f"{where}: {len(data) - place} bytes are left behind the {count} elements of its shape.")
        if place + 4 > len(data):
            raise TensorError(f"{where}: the last element has less than the four bytes of its length.")
        [length] = _LENGTH.unpack_from(data, place)
        place += 4
        if place + length > len(data):
            raise TensorError(f"{where}: element {len(found)} has {length} bytes, but only {len(data) - place} are left.")
        found.append(data[place : place + length])
        place += length
    return found


def _read(where: str, spec: TensorSpec, flat: Sequence[Any], base64_text: bool) -> Array:
    """Convert elements, of which none is a list, after their kinds were looked at: numpy would make them all as long as the longest text."""
    return _object_array(_texts(where, flat, base64_text)) if spec.dtype == object else _numbers(where, spec, flat)


def _numbers(where: str, spec: TensorSpec, flat: Sequence[Any]) -> Array:
    whole = spec.dtype.kind in "iu"
    kinds = {bool} if spec.dtype == bool else {int} if whole else {int, float}
    if set(map(type, flat)) - kinds:
        wanted = "a truth value" if spec.dtype == bool else "a whole number" if whole else "a number"
        raise TensorError(f"{where}: an element is not {wanted}, which {spec.datatype} takes.")
    if not len(flat):
        return np.empty(0, spec.dtype)
    if spec.dtype == bool:
        return np.array(flat, bool)
    if not whole:
        try:
            return _cast(where, spec, np.array(flat, np.float64))
        except OverflowError:
            raise TensorError(f"{where}: an element is beyond {spec.datatype}.") from None
    _check_range(where, spec, min(flat), max(flat))
    return np.array(flat, spec.dtype)


def _check_range(where: str, spec: TensorSpec, low: int, high: int) -> None:
    info = np.iinfo(spec.dtype)
    if low < info.min or high > info.max:
        raise TensorError(f"{where}: {_told(low if low < info.min else high, 80)} is beyond {spec.datatype}.")


def _cast(where: str, spec: TensorSpec, given: Array) -> Array:
    """Return numbers in the input's type; raise for what is beyond it."""
    if spec.dtype.kind in "iu":
        if given.size:
            _check_range(where, spec, int(given.min()), int(given.max()))
        return given.astype(spec.dtype, copy=False)
    with np.errstate(over="ignore"):
        array = given.astype(spec.dtype, copy=False)
    if array is not given:
        beyond = np.isinf(array) & np.isfinite(given)
        if beyond.any():
            raise TensorError(f"{where}: {given[beyond][0]} is beyond {spec.datatype}.")
    return array


def _texts(where: str, flat: Sequence[Any], base64_text: bool) -> list[bytes]:
    if set(map(type, flat)) - {str, bytes}:
        raise TensorError(f"{where}: an element is no text, which BYTES takes.")
    try:
        found = [element.encode() if isinstance(element, str) else element for element in flat]
        return [base64.b64decode(element, validate=True) for element in found] if base64_text else found
    except (UnicodeEncodeError, binascii.Error):
        raise TensorError(f"{where}: an element is no {'base64' if base64_text else 'text in UTF-8'}.") from None


def _object_array(elements: Sequence[bytes]) -> Array:
    array = np.empty(len(elements), object)
    array[:] = elements
    return array


def weight_of(data: object) -> int:
    """Return the approximate size in bytes of a tensor's data in a request, in any form that `read_tensor` takes."""
    if isinstance(data, JsonElements):
        return len(data.text)
    if isinstance(data, Scalars):
        return 4 * len(data.values)
    if isinstance(data, (str, bytes, memoryview)) or (isinstance(data, Sequence) and len(data) > SMALL):
        return len(data)
    if not isinstance(data, Sequence):
        return 1
    return len(data) if {list, str, bytes}.isdisjoint(map(type, data)) else sum(map(weight_of, data))


def nbytes_of(array: Array) -> int:
    """Return the size in bytes of an output, including its strings if they are not so many that it is large anyway."""
    return sum(map(len, array.reshape(-1).tolist())) if array.dtype == object and array.size < SMALL else array.nbytes


def as_json(array: Array) -> tuple[Any, bool]:
    """Return an output's elements in row-major order for JSON, and whether they are base64, needed for bytes that are not UTF-8.

    Returns:
        an array of numbers that JSON writers take (16-bit floats as 32-bit ones), or a list of strings; and the flag.
    """
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype == object:
        texts = [bytes(element) for element in flat]
        try:
            return [text.decode() for text in texts], False
        except UnicodeDecodeError:
            return [base64.b64encode(text).decode("ascii") for text in texts], True
    return (flat.astype(np.float32) if _DATATYPES.get(flat.dtype.name) in HALVES else flat), False


def as_raw(array: Array) -> bytes:
    """Return an output's raw bytes as the protocol packs them: little-endian, row-major, strings preceded by their length."""
    if array.dtype == object:
        return b"".join(_LENGTH.pack(len(element)) + bytes(element) for element in array.reshape(-1))
    little = array.dtype.newbyteorder("<")
    return array.astype(little, copy=False).tobytes()
