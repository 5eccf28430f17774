"""Strings as values: objects of type bytes, whose trailing NULs count, which numpy's own string types do not keep."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["string_array"]


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
        return array if not array.size or isinstance(array.flat[0], (bytes, str)) else np.asarray(value)
    array = np.asarray(value)
    if array.dtype.kind == "S" and not array.ndim:
        return string_array(array.tobytes())
    return array.astype(object) if array.dtype.kind in "SU" else array
