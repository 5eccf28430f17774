"""Values that all interpreters of one model share: its constants, and what kernels compute from them, such as packed weights."""

from __future__ import annotations

import os
import sys
import weakref
from _thread import RLock
from collections.abc import Callable, Hashable, Sequence
from ctypes import c_size_t
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import numpy as np

__all__ = ["Computed", "Derived", "NodeValues", "SharedValues", "Source", "address_of", "nbytes_of", "values_of_bytes"]

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]
else:  # importing numpy.typing takes as long as opening a small model
    Array = np.ndarray
Kept = TypeVar("Kept")
#: Keys whose values are gone are swept out when there are so many more than were left the last time.
_SWEPT = 1024
#: Arrays of fewer bytes are not charged; nor are the parts of cached tuples and lists that are longer.
_SMALL, _FEW = 1 << 16, 64


class Computed:
    """A constant that was computed while the graph was prepared, or is unpacked from the file. It stands for its array, which may be
    released and computed again.

    Attributes:
        shape: the shape of the array.

    Args:
        array: the array, read-only; None to compute it when it is first read, of the shape `shape`.
        again: whether it can be computed again.
    """

    __slots__ = ("__weakref__", "_again", "_array", "_place", "shape")

    def __init__(self, array: Array | None, again: bool, shape: tuple[int, ...] = ()) -> None:
        self.shape = shape if array is None else array.shape
        self._again = again
        self._array = array
        self._place: tuple[weakref.ref[Array], int, np.dtype[Any]] | None = None

    def hold(self, array: Array) -> None:
        """Store the array, which was computed again after it was released."""
        self._array = array

    def let_go(self) -> bool:
        """Release the array: from now on only other users keep it alive. Return False if it cannot be computed again."""
        array = self._array
        if array is not None:
            owner = array if array.base is None else array.base
            if not (self._again and isinstance(owner, np.ndarray)):
                return False
            # One attribute, and before the array is gone, as other threads may read them.
            self._place = weakref.ref(owner), address_of(array) - address_of(owner), array.dtype
            self._array = None
        return self._place is not None

    def get(self) -> Array | None:
        """Return the array; None if it was released and nothing else keeps it alive."""
        array, place = self._array, self._place
        if array is not None or place is None:
            return array
        owner, offset, dtype = place[0](), place[1], place[2]
        if owner is None:
            return None
        found: Array = np.ndarray(self.shape, dtype, owner, offset)
        found.flags.writeable = False
        return found


def _told_address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def address_of(array: Any) -> int:
    """Return the address of an array's first element, as `array.ctypes.data` has it, but ten times faster in CPython.

    `__array_interface__` would create a dictionary for each array, and opening a model needs the addresses of all its arrays.
    """
    if _is_known and (array.__class__ is _ARRAY or isinstance(array, _ARRAY)):
        return _word_at(id(array) + _HEAD).value
    return _told_address(array)


_ARRAY, _word_at = np.ndarray, c_size_t.from_address
#: The bytes of an object before what its type adds: of an array first of all the address of its data, in numpy's C interface.
_HEAD: Final = object.__basicsize__


def _knows_arrays() -> bool:
    """Return whether numpy arrays have the memory layout of numpy's C interface; tested on a few arrays."""
    if sys.implementation.name != "cpython":
        return False
    tried = [np.zeros(2), np.zeros(3, np.uint8)[1:], np.zeros(())]
    return all(c_size_t.from_address(id(array) + _HEAD).value == _told_address(array) for array in tried)


_is_known: Final = _knows_arrays()


#: What a value is made from: the array of a constant, or what stands for it; None for an omitted input.
Source: TypeAlias = "Array | Computed | None"


class Derived:
    """A value that was made from constants.

    Attributes:
        sources: the constants that it was made from, kept alive so that their ids are not reused.
        value: the value.
    """

    __slots__ = ("__weakref__", "sources", "value")

    def __init__(self, sources: Sequence[Source], value: Any) -> None:
        self.sources = sources
        self.value = value

    def is_of(self, sources: Sequence[Source]) -> bool:
        """Return whether the value was made from exactly these constants (by identity)."""
        return len(self.sources) == len(sources) and all(a is b for a, b in zip(self.sources, sources))


class SharedValues:
    """The values, such as packed weights, that are made from one model's bytes, or one file of constants, in this process.

    They are referenced weakly: each lives as long as an interpreter uses it. All interpreters that have this object were opened from
    the same bytes, which cannot change, so that a tensor or node of one has the same meaning in all others. A forked process has the
    values of its parent, in the memory that both share until one of them writes there.

    Attributes:
        tables: the model's tables, once they are verified; None before. Only `Model` uses them.

    Args:
        content: the model's bytes, which are kept alive, so that no others get their id; None for a mapped file's values.
    """

    __slots__ = ("__weakref__", "_content", "_held", "_most", "tables")

    def __init__(self, content: bytes | None = None) -> None:
        self.tables: Any = None
        self._content = content
        # Plain references: a WeakValueDictionary takes five times as long to fill, which opening a model would feel.
        self._held: dict[Hashable, weakref.ref[Any]] = {}
        self._most = _SWEPT

    def get(self, key: Hashable) -> Any:
        """Return the value stored under a key; None if there is none now."""
        held = self._held.get(key)
        return None if held is None else held()

    def keep(self, key: Hashable, value: Kept) -> Kept:
        """Store a value for as long as it is referenced elsewhere; return the value that is stored, which another thread may have
        stored first.
        """
        own = weakref.ref(value)
        with _lock:
            all_held = self._held
            found: Kept | None = all_held.setdefault(key, own)()
            if found is None:
                all_held[key], found = own, value
            if len(all_held) > self._most:
                # Of a copy: a destructor that Python's collector runs meanwhile may keep a value.
                self._held = {key: held for key, held in all_held.copy().items() if held() is not None}
                self._most = 2 * len(self._held) + _SWEPT
        return found

    @property
    def is_new(self) -> bool:
        """Whether no value was stored yet."""
        return not self._held

    def __len__(self) -> int:
        return sum(held() is not None for held in self._held.copy().values())


class NodeValues:
    """The values, such as packed weights, that a subgraph's nodes share with the same nodes in other interpreters of the model.

    Attributes:
        shared: the shared values of the whole model.

    Args:
        shared: the model's values.
        subgraph: the number of the subgraph.
    """

    __slots__ = ("_subgraph", "shared")

    def __init__(self, shared: SharedValues, subgraph: int) -> None:
        self.shared = shared
        self._subgraph = subgraph

    def derive(
        self, node: int | None, kernel: Hashable, key: Hashable, sources: Sequence[Source], make: Callable[[], Any]
    ) -> Derived:
        """Return the value that another interpreter's node has made from the same constants, or make it.

        Threads that prepare the same node at the same time may each make it; all get the same one. No thread waits for another,
        as `make` runs a kernel's code.

        Args:
            node: the number of the node; None for a value of all nodes that the kernel serves, in all subgraphs.
            kernel: identifies the kernel among those that may serve the node.
            key: identifies the value within the node.
            sources: the constants from which it is made.
            make: makes it. Its arrays become read-only.
        """
        whole = None if node is None else (self._subgraph, node), kernel, key, *map(id, sources)
        found = self.shared.get(whole)
        if found is None or not found.is_of(sources):
            found = self.shared.keep(whole, Derived(sources, _frozen(make())))
        return found  # type: ignore[no-any-return]


def _frozen(value: Any) -> Any:
    """Make the value's arrays read-only, those in tuples, lists and dictionaries too; return the value."""
    if isinstance(value, np.ndarray):
        value.setflags(write=False)
    elif isinstance(value, (tuple, list)):
        for part in value:
            if part.__class__ is not Computed:  # whose array is read-only already
                _frozen(part)
    elif isinstance(value, dict):
        for part in value.values():
            _frozen(part)
    return value


_lock = RLock()  # reentrant: a destructor may run anywhere
_of_bytes: weakref.WeakValueDictionary[int, SharedValues] = weakref.WeakValueDictionary()


def values_of_bytes(content: bytes) -> SharedValues:
    """Return the constants and packed weights that all models share that were opened from this `bytes` object."""
    with _lock:
        found = _of_bytes.get(id(content))
        if found is None:
            found = _of_bytes[id(content)] = SharedValues(content)
    return found


def _renew_lock() -> None:
    """Replace the lock in a forked child process, which has no copy of the parent's thread that may have held it."""
    global _lock
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def nbytes_of(value: object, sources: Sequence[Source]) -> int:
    """Count the bytes of the large arrays in a value (an array, tuple or list), except views of its source constants."""
    if type(value) is np.ndarray:
        if value.nbytes < _SMALL:
            return 0
        arrays = (source.get() if isinstance(source, Computed) else source for source in sources)
        if any(array is not None and np.may_share_memory(value, array) for array in arrays):
            return 0
        return value.nbytes
    if isinstance(value, (tuple, list)) and len(value) <= _FEW:
        return sum(nbytes_of(part, sources) for part in value)
    return 0
