"""Arrays of strings: of dtype object with bytes, as numpy's own string types drop trailing NULs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["held_nbytes", "string_array", "strings_nbytes"]

#: Bytes of a bytes object besides its characters, and of the reference to it in an array.
_OBJECT, _REFERENCE = 33, 8
_KINDS = {bytes, str}


def string_array(value: Any) -> NDArray[Any]:
    """Convert the value to an array, of dtype object if it has strings.

    Trailing NULs are kept in bytes, str, lists of them and arrays of objects. In an array of dtype S they are kept if it has no
    dimensions, as in LiteRT (`np.array(b"ab\\0")` has three bytes); with dimensions they are dropped, as numpy pads with NULs.

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
    """Return the memory in bytes of `count` strings with `characters` bytes in total, including the array that refers to them."""
    return count * (_OBJECT + _REFERENCE) + characters


def held_nbytes(array: NDArray[Any], much: float) -> int:
    """Return the memory in bytes of the strings in an array of objects.

    Args:
        array: the array.
        much: the total in bytes above which strings that occur several times are counted once each, which takes longer.
    """
    values = array.ravel().tolist()
    if not set(map(type, values)) <= _KINDS:
        values = [value for value in values if isinstance(value, (bytes, str))]
    nbytes = strings_nbytes(len(values), sum(map(len, values)))
    if nbytes > much:
        # By arrays, as a dict of many takes more than the strings.
        _, firsts = np.unique(np.fromiter(map(id, values), np.int64, len(values)), return_index=True)
        nbytes = strings_nbytes(len(firsts), int(np.fromiter(map(len, values), np.int64, len(values))[firsts].sum()))
    return nbytes
