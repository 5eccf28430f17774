"""Values in a file: the bytes that they take, and the buffers that hold strings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.errors import ModelError
from oplet.ops.ensure import checkpoint
from oplet.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "ELEMENT_BITS",
    "LARGEST",
    "MAX_RANK",
    "PACKED_BITS",
    "bytes_needed",
    "held_nbytes",
    "read_strings",
    "string_array",
    "string_offsets",
    "strings_nbytes",
    "values_in",
]

#: Bits per value of the packed types.
PACKED_BITS = {TensorType.INT4: 4, TensorType.UINT4: 4, TensorType.INT2: 2}
#: Bits per value of all types with values of a fixed size.
ELEMENT_BITS = {
    TensorType.FLOAT32: 32, TensorType.FLOAT16: 16, TensorType.INT32: 32, TensorType.UINT8: 8, TensorType.INT64: 64,
    TensorType.BOOL: 8, TensorType.INT16: 16, TensorType.COMPLEX64: 64, TensorType.INT8: 8, TensorType.FLOAT64: 64,
    TensorType.COMPLEX128: 128, TensorType.UINT64: 64, TensorType.UINT32: 32, TensorType.UINT16: 16,
    TensorType.BFLOAT16: 16, TensorType.FLOAT8_E4M3FN: 8, TensorType.FLOAT8_E5M2: 8, **PACKED_BITS,
}  # fmt: skip

#: The most bytes that can be addressed.
LARGEST = 2**63 - 1
#: The most dimensions of a numpy array.
MAX_RANK: int = getattr(np, "MAXDIMS", 64)


def bytes_needed(shape: Iterable[int], type: TensorType) -> int | None:
    """Return the number of bytes of a tensor's values in a file; None for strings, resources and variants, whose size is not
    fixed.
    """
    bits = ELEMENT_BITS.get(type)
    if bits is None:
        return None
    return (math.prod(map(int, shape)) * bits + 7) // 8


def values_in(size: int, type: TensorType) -> int:
    """Return how many values of a type `size` bytes hold; 0 for types whose values have no fixed size."""
    bits = ELEMENT_BITS.get(type)
    return size * 8 // bits if bits else 0


#: Bytes of a bytes object besides its characters, and of the reference to it in an array.
_OBJECT, _REFERENCE = 33, 8
_KINDS = {bytes, str}
#: Strings that are counted together; by how much a total is above the bytes from which it is counted in detail, that no limit allows.
_PART, _ANY = 1 << 18, 64


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


def string_offsets(raw: NDArray[np.uint8], what: str) -> NDArray[np.int32]:
    """Return the offsets in a string tensor's buffer, of each string and the end of the last one.

    Raises:
        ModelError: an offset leads outside the buffer, or the strings are not in order.
    """
    if raw.size < 4:
        raise ModelError(f"String {what} is invalid: its buffer has {raw.size} bytes, the count alone takes 4.")
    count = int(raw[:4].view("<i4")[0])
    if count < 0 or raw.size < 4 * (count + 2):
        raise ModelError(f"String {what} has invalid num of string set: {count}, in a buffer of {raw.size} bytes.")
    offsets = raw[4 : 4 * (count + 2)].view("<i4")
    wrong = None
    if offsets[0] != 4 * (count + 2):
        wrong = f"the first one must begin at {4 * (count + 2)}"
    elif offsets[-1] > raw.size:
        wrong = f"the last one ends at {offsets[-1]}"
    elif (falls := np.flatnonzero(offsets[1:] < offsets[:-1])).size:
        wrong = f"number {falls[0]} ends before it begins"
    if wrong is not None:
        raise ModelError(
            f"String {what} is invalid: its offsets {offsets[:4].tolist()}... do not follow each other inside {raw.size} bytes; {wrong}."
        )
    return offsets


def read_strings(raw: NDArray[np.uint8], what: str) -> NDArray[Any]:
    """Return the strings of a string tensor's buffer, as an object array of bytes with one dimension.

    Raises:
        ModelError: an offset leads outside the buffer, or the strings are not in order.
    """
    offsets = string_offsets(raw, what).tolist()
    result = np.empty(len(offsets) - 1, object)
    for i, (start, end) in enumerate(pairwise(offsets)):
        result[i] = raw[start:end].tobytes()
    return result


def strings_nbytes(count: int, characters: int) -> int:
    """Return the memory in bytes of `count` strings with `characters` bytes in total, including the array that refers to them."""
    return count * (_OBJECT + _REFERENCE) + characters


def held_nbytes(array: NDArray[Any], much: float = 1 << 20) -> int:
    """Return the memory in bytes of the strings in an array of objects.

    Args:
        array: the array.
        much: the total in bytes above which strings that occur several times are counted once each, which takes longer.
    """
    flat, nbytes = array.ravel(), 0
    for part in _parts(flat):
        nbytes += strings_nbytes(len(part), sum(map(len, part)))
    if nbytes <= much:
        return nbytes
    # By a sorted array, as a dict of many takes more than the strings; until there are more than any limit of 64 times `much` allows.
    found, nbytes = np.empty(0, np.int64), 0
    for part in _parts(flat):
        ids, firsts = np.unique(np.fromiter(map(id, part), np.int64, len(part)), return_index=True)
        new = np.searchsorted(found, ids) == np.searchsorted(found, ids, "right")
        nbytes += strings_nbytes(int(new.sum()), sum(len(part[first]) for first in firsts[new].tolist()))
        if nbytes > _ANY * much:
            break
        found = np.concatenate((found, ids[new]))
        found.sort()
    return nbytes


def _parts(flat: NDArray[Any]) -> Iterator[list[Any]]:
    """Yield the strings of a vector in lists of many, with a look at the clock before each."""
    for first in range(0, len(flat), _PART):
        checkpoint()
        part = flat[first : first + _PART].tolist()
        yield part if set(map(type, part)) <= _KINDS else [value for value in part if isinstance(value, (bytes, str))]
