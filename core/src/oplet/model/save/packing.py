"""Encoding of constants and custom options as the bytes in a file."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.errors import ModelError, text_of
from oplet.model.builders.arguments import one_of, takes
from oplet.ops.strings import PACKED_BITS, bytes_needed, string_array
from oplet.ops.tensor import numpy_dtype
from oplet.schema.enums import TensorType
from oplet.texts import plain, shown

__all__ = ["pack_constant", "pack_flexbuffer", "pack_strings", "pack_values"]


def pack_strings(values: Any) -> bytes:
    """Encode the values of a string tensor: the count and the offsets, int32, then the bytes of the strings.

    Args:
        values: bytes, str, or lists or an array of them; str is encoded in UTF-8.

    Raises:
        ModelError: a value is not a string, or the strings take 2 GB or more.

    Examples:
        >>> pack_strings(["a", b"bc"]).hex(" ", -4)
        '02000000 10000000 11000000 13000000 616263'
    """
    try:
        flat = np.asarray(string_array(values), object).ravel().tolist()
    except (TypeError, ValueError) as error:
        raise ModelError(f"A string tensor cannot hold its data: {text_of(error)}.") from error
    for value in flat:
        if not isinstance(value, (str, bytes, bytearray, memoryview)):
            raise ModelError(f"A string tensor cannot hold its data: {shown(repr(value))} is neither text nor bytes.")
    flat = [v.encode() if isinstance(v, str) else bytes(v) for v in flat]
    offsets = np.cumsum([4 * (len(flat) + 2), *map(len, flat)], dtype=np.int64)
    if offsets[-1] > np.iinfo(np.int32).max:
        raise ModelError(f"{len(flat)} strings take {offsets[-1]} bytes; a string tensor holds less than 2 GB.")
    return np.array([len(flat), *offsets], "<i4").tobytes() + b"".join(flat)


@takes(type=one_of(TensorType))
def pack_values(values: Any, type: TensorType) -> bytes:
    """Encode the values of a constant: little-endian; of int4 two to a byte and of int2 four, low bits first.

    Args:
        values: an array, or numbers in lists.
        type: the tensor's type.

    Raises:
        ModelError: the type cannot hold one of the values.

    Examples:
        >>> pack_values([1, 2, -1], TensorType.INT4).hex()
        '210f'
    """
    if type is TensorType.STRING:
        return pack_strings(values)
    if type in (TensorType.RESOURCE, TensorType.VARIANT):
        raise ModelError(f"A tensor of type {type.name} cannot be a constant.")
    array = _converted(values, type)
    bits = PACKED_BITS.get(type)
    if bits is None:
        return array.tobytes()
    per_byte = 8 // bits
    flat = array.ravel().astype(np.uint8) & ((1 << bits) - 1)
    flat = np.concatenate([flat, np.zeros(-flat.size % per_byte, np.uint8)]).reshape(-1, per_byte)
    packed = np.zeros(len(flat), np.uint8)
    for position in range(per_byte):
        packed |= flat[:, position] << (bits * position)
    return packed.tobytes()


def _converted(values: Any, type: TensorType) -> NDArray[Any]:
    """Convert the values to the type's numpy dtype; floats may lose precision, others must not change."""
    try:
        given, dtype = np.asarray(values), numpy_dtype(type)
    except (TypeError, ValueError) as error:
        raise ModelError(f"A constant of {type.name} cannot hold its data: {text_of(error)}.") from error
    if given is not values and given.dtype == np.float64 and dtype == np.uint64:
        # Numpy converts integers to floats if only some of them exceed int64.
        exact = np.asarray(values, object)
        if all(isinstance(value, int) and 0 <= value < 2**64 for value in exact.reshape(-1)):
            given = exact.astype(np.uint64)
    if given.dtype == object:
        raise ModelError(f"A constant of {type.name} cannot be made of Python objects or of rows of different lengths.")
    if given.dtype.kind in "SUM" or (given.dtype.kind == "c" and dtype.kind != "c"):
        raise ModelError(f"Values of numpy's {given.dtype} do not fit into {type.name}.")
    with np.errstate(all="ignore"):
        array = np.ascontiguousarray(given.astype(dtype, copy=False)).reshape(given.shape)
    # "V" is numpy's kind for the types of ml_dtypes.
    if dtype.kind not in "fcV" and not np.can_cast(given.dtype, dtype) and not np.array_equal(array, given):
        changed = given[array != given].ravel()[0]
        raise ModelError(f"The value {changed} does not fit into {type.name}.")
    if type in PACKED_BITS and array.size:
        bits = PACKED_BITS[type]
        low, high = (0, (1 << bits) - 1) if type is TensorType.UINT4 else (-(1 << bits - 1), (1 << bits - 1) - 1)
        if array.min() < low or array.max() > high:
            wrong = array[(array < low) | (array > high)].ravel()[0]
            raise ModelError(f"The value {wrong} does not fit into {type.name}, which holds {low} to {high}.")
    return array


def pack_constant(data: Any, type: TensorType, shape: Iterable[int], what: str, *, stored: int | None = None) -> bytes:
    """Encode the constant of a tensor, and check its size against the shape.

    Args:
        data: values, or encoded bytes.
        type: the tensor's type.
        shape: the tensor's shape.
        what: the tensor's name in messages.
        stored: the number of stored values of a sparse tensor, in place of the size of the shape.

    Raises:
        ModelError: there are too many or too few values, or the type cannot hold one of them.
    """
    shape = tuple(shape)
    count = int(np.prod(shape, dtype=object)) if stored is None else stored
    held = "stored values" if stored is not None else f"values for the shape {list(shape)}"
    if isinstance(data, (bytes, bytearray, memoryview)):
        raw = bytes(data)
        if type is TensorType.STRING:
            strings = struct.unpack_from("<i", raw)[0] if len(raw) >= 4 else 0
            if strings != count:
                raise ModelError(f"{what} takes {count} {held}, its bytes hold {strings} strings.")
        elif (needed := bytes_needed((count,), type)) is not None and len(raw) != needed:
            raise ModelError(f"{what} takes {needed} bytes ({count} {held}, {type.name}), its data have {len(raw)}.")
        return raw
    try:
        size = np.asarray(data, object if type is TensorType.STRING else None).size
        if size != count:
            raise ModelError(f"{what} takes {count} {held}, its data have {size}.")
        return pack_values(data, type)
    except ModelError as error:
        raise error if str(error).startswith(plain(what)) else ModelError(f"{what}: {error}") from None
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{what} cannot hold its data: {text_of(error)}.") from error


def pack_flexbuffer(value: Any) -> bytes:
    """Encode custom options as FlexBuffers, the form that TensorFlow's converter writes.

    Args:
        value: None, numbers, strings, bytes, and lists and dicts (with str keys) of these; numpy's numbers and arrays, too.

    Raises:
        ModelError: the value has another type.

    Examples:
        >>> pack_flexbuffer({"axis": 1}).hex()
        '617869730001060101010104022401'
    """
    from flatbuffers import flexbuffers

    try:
        return bytes(flexbuffers.Dumps(_plain(value)))
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"The options {value!r} cannot be written as FlexBuffers: {text_of(error)}.") from error


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is not a string")
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if value is not None and not isinstance(value, (bool, int, float, str, bytes, bytearray)):
        raise TypeError(f"a {type(value).__name__} has no place there")
    return value
