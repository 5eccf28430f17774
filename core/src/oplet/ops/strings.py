"""Strings as values: objects of type bytes, whose trailing NULs count, which numpy's own string types do not keep."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["held_nbytes", "string_array", "strings_nbytes"]

#: Bytes that Python takes for an object of type bytes besides its characters, and that an array takes to refer to it.
_OBJECT, _REFERENCE = 33, 8
#: Strings of so many bytes together are looked at more closely.
_MANY = 1 << 20
_KINDS = {bytes, str}


def string_array(value: Any) -> NDArray[Any]:
    """The value as an array of objects if it has strings, else as the array that it is.

    Of an array of dtype S without dimensions all bytes are taken, as LiteRT takes them: `np.array(b"ab\\0")` is three bytes. With
    dimensions numpy pads what is shorter, so that NULs at the end do not count; in arrays of objects, and in bytes, str and
    lists of them, they do.

    Args:
        value: bytes, str, an array, or lists of these.

    Raises:
        ValueError: lists of different lengths.
    """
    if isinstance(value, (bytes, str)):
        result = np.empty((), object)
        result[()] = value if isinstance(value, str) else bytes(value)
        return result
    if isinstance(value, (list, tuple)):
        array = np.asarray(value, object)
        return array if not array.size or isinstance(array.reshape(-1)[0], (bytes, str)) else np.asarray(value)
    array = np.asarray(value)
    if array.dtype.kind == "S" and not array.ndim:
        return string_array(array.tobytes())
    return array.astype(object) if array.dtype.kind in "SU" else array


def strings_nbytes(count: int, characters: int) -> int:
    """The memory that so many strings take which have so many bytes together, with the array that holds them."""
    return count * (_OBJECT + _REFERENCE) + characters


def held_nbytes(array: NDArray[Any]) -> int:
    """The memory of the strings that an array of objects holds; of many, each counts once however often it is there."""
    values = array.ravel().tolist()
    if not set(map(type, values)) <= _KINDS:
        values = [value for value in values if isinstance(value, (bytes, str))]
    nbytes = strings_nbytes(len(values), sum(map(len, values)))
    if nbytes > _MANY:
        different = dict(zip(map(id, values), values))
        nbytes = strings_nbytes(len(different), sum(map(len, different.values())))
    return nbytes
