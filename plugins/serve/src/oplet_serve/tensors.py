"""Conversion between the protocol's tensors and arrays: JSON values, gRPC's typed contents, raw bytes."""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.errors import ModelError, TensorError

__all__ = ["TensorSpec", "as_json", "as_raw", "datatype_of", "read_tensor"]

Array = NDArray[Any]

_DATATYPES = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "bfloat16": "BF16",
    "float32": "FP32",
    "float64": "FP64",
    "object": "BYTES",
}
#: Dimensions of an array of numpy 1.
_MOST_DIMENSIONS = 32
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class TensorSpec:
    """Name, type and shape of an input or output, as the server offers it.

    Attributes:
        name: its name in the model.
        dtype: its numpy dtype; object for text.
        shape: its shape, -1 where any size is taken.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def datatype(self) -> str:
        """The protocol's name of its type."""
        return datatype_of(self)


def datatype_of(spec: TensorSpec) -> str:
    """Return the protocol's datatype name of a tensor; raise if there is none.

    Raises:
        ModelError: it has none.
    """
    found = _DATATYPES.get(spec.dtype.name)
    if found is None:
        raise ModelError(
            f"The tensor '{spec.name}' is {spec.dtype}, for which the Open Inference Protocol has no datatype; put a CAST in front of it."
        )
    return found


def read_tensor(spec: TensorSpec, datatype: object, shape: object, data: object, base64_text: bool = False) -> Array:
    """Convert a request's tensor to an array, checked against the spec.

    Args:
        spec: the input.
        datatype: the type that the request says.
        shape: the shape that it says.
        data: bytes, as the protocol packs them; or a list of elements, nested or flat.
        base64_text: whether elements of text are in base64.

    Raises:
        TensorError: any of them does not fit the input or the others.
    """
    where = f"input '{spec.name}'"
    if datatype != spec.datatype:
        raise TensorError(f"{where}: the datatype is {datatype!r:.40}, but it takes {spec.datatype}.")
    sizes = _sizes(where, spec, shape)
    count = math.prod(sizes)
    if isinstance(data, (bytes, memoryview)):
        array = _from_bytes(where, spec, bytes(data) if spec.dtype == object else data, count)
    elif isinstance(data, Sequence) and not isinstance(data, str):
        array = _texts(where, data, base64_text) if spec.dtype == object else _numbers(where, spec, data, sizes)
    else:
        raise TensorError(f"{where}: 'data' is missing or no list of elements.")
    if array.size != count:
        raise TensorError(f"{where}: {array.size} elements were given, but the shape {list(sizes)} has {count}.")
    return array.reshape(sizes)


def _sizes(where: str, spec: TensorSpec, shape: object) -> tuple[int, ...]:
    if not isinstance(shape, Sequence) or isinstance(shape, (str, bytes)) or len(shape) > _MOST_DIMENSIONS:
        raise TensorError(f"{where}: 'shape' is no list of at most {_MOST_DIMENSIONS} sizes.")
    if not all(isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 1 << 63 for size in shape):
        raise TensorError(f"{where}: the shape {list(shape)!r:.200} has something else than sizes of 0 and more.")
    if len(shape) != len(spec.shape) or any(mine not in (-1, its) for mine, its in zip(spec.shape, shape)):
        free = ", where -1 may be any size" if -1 in spec.shape else ""
        raise TensorError(f"{where}: the shape is {list(shape)}, but it takes {list(spec.shape)}{free}.")
    return tuple(shape)


def _from_bytes(where: str, spec: TensorSpec, data: bytes | memoryview, count: int) -> Array:
    if spec.dtype == object:
        return _object_array(_unpacked(where, bytes(data)))
    if len(data) != count * spec.dtype.itemsize:
        raise TensorError(
            f"{where}: {len(data)} bytes were given, but {count} elements of {spec.datatype} have {count * spec.dtype.itemsize}."
        )
    if spec.dtype == bool:
        return np.frombuffer(data, np.uint8).astype(bool)
    return np.frombuffer(data, spec.dtype.newbyteorder("<") if spec.dtype.isnative else spec.dtype).astype(spec.dtype, copy=False)


def _unpacked(where: str, data: bytes) -> list[bytes]:
    """Split packed BYTES elements, each of which is preceded by its length in four bytes."""
    found: list[bytes] = []
    place = 0
    while place < len(data):
        if place + 4 > len(data):
            raise TensorError(f"{where}: the last element has less than the four bytes of its length.")
        [length] = _LENGTH.unpack_from(data, place)
        place += 4
        if place + length > len(data):
            raise TensorError(f"{where}: element {len(found)} has {length} bytes, but only {len(data) - place} are left.")
        found.append(data[place : place + length])
        place += length
    return found


def _numbers(where: str, spec: TensorSpec, data: Sequence[object], sizes: tuple[int, ...]) -> Array:
    if not len(data):
        return np.empty(0, spec.dtype)
    try:
        given = np.array(data)
        if (
            spec.dtype.name == "uint64" and given.dtype.kind == "f"
        ):  # numpy takes small and large whole numbers together for floats
            given = _whole(np.array(data, object), given)
    except (ValueError, OverflowError, RecursionError):
        raise TensorError(f"{where}: the elements form no array; give them flat, in row-major order.") from None
    wanted = "a truth value" if spec.dtype == bool else "a whole number" if spec.dtype.kind in "iu" else "a number"
    kinds = "b" if spec.dtype == bool else "iu" if spec.dtype.kind in "iu" else "iuf"
    if given.dtype.kind not in kinds and given.size:
        raise TensorError(f"{where}: an element is not {wanted}, which {spec.datatype} takes.")
    if given.ndim > 1 and given.shape != sizes:
        raise TensorError(f"{where}: the elements are nested as {list(given.shape)}, but the shape is {list(sizes)}.")
    flat = given.reshape(-1)
    if spec.dtype.kind in "iu" and flat.size:
        info = np.iinfo(spec.dtype)
        low, high = int(flat.min()), int(flat.max())
        if low < info.min or high > info.max:
            raise TensorError(f"{where}: {low if low < info.min else high} is beyond {spec.datatype}.")
    with np.errstate(over="ignore"):
        array = flat.astype(spec.dtype)
    if kinds == "iuf":
        beyond = np.isinf(array.astype(np.float64)) & np.isfinite(flat)
        if beyond.any():
            raise TensorError(f"{where}: {flat[beyond][0]} is beyond {spec.datatype}.")
    return array


def _whole(elements: Array, otherwise: Array) -> Array:
    """Return the elements as uint64 if they are all non-negative integers of 64 bits; else `otherwise`, numpy's conversion."""
    fits = all(isinstance(each, int) and not isinstance(each, bool) and 0 <= each < 1 << 64 for each in elements.reshape(-1))
    return elements.astype(np.uint64) if fits else otherwise


def _texts(where: str, data: Sequence[object], base64_text: bool) -> Array:
    flat: list[object] = list(data)
    for _ in range(_MOST_DIMENSIONS):
        if not any(isinstance(element, list) for element in flat):
            break
        if not all(isinstance(element, list) for element in flat):
            raise TensorError(f"{where}: the elements form no array; give them flat, in row-major order.")
        flat = [inner for element in flat if isinstance(element, list) for inner in element]
    found = []
    for element in flat:
        if not isinstance(element, (str, bytes)):
            raise TensorError(f"{where}: an element is no text, which BYTES takes.")
        try:
            text = element.encode() if isinstance(element, str) else element
            found.append(base64.b64decode(text, validate=True) if base64_text else text)
        except (UnicodeEncodeError, binascii.Error):
            raise TensorError(f"{where}: an element is no {'base64' if base64_text else 'text in UTF-8'}.") from None
    return _object_array(found)


def _object_array(elements: Sequence[bytes]) -> Array:
    array = np.empty(len(elements), object)
    array[:] = elements
    return array


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
    return (flat.astype(np.float32) if datatype_is_half(flat.dtype) else flat), False


def datatype_is_half(dtype: np.dtype[Any]) -> bool:
    """Return whether the dtype is a 16-bit float, which gRPC carries only as raw bytes."""
    return _DATATYPES.get(dtype.name) in ("FP16", "BF16")


def as_raw(array: Array) -> bytes:
    """Return an output's raw bytes as the protocol packs them: little-endian, row-major, strings preceded by their length."""
    if array.dtype == object:
        return b"".join(_LENGTH.pack(len(element)) + bytes(element) for element in array.reshape(-1))
    little = array.dtype.newbyteorder("<")
    return array.astype(little, copy=False).tobytes()
