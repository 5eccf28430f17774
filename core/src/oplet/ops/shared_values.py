"""Values that the interpreters of one model share: its constants, and what kernels make of them."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Derived", "NodeValues", "SharedValues", "values_of_bytes"]

Array = NDArray[Any]
Kept = TypeVar("Kept")


class Derived:
    """A value that was made from constants.

    Attributes:
        sources: the constants' arrays, None for an omitted input. They are kept alive, so that no other arrays get their ids.
        value: the value.
    """

    __slots__ = ("__weakref__", "sources", "value")

    def __init__(self, sources: Sequence[Array | None], value: Any) -> None:
        self.sources = sources
        self.value = value

    def is_of(self, sources: Sequence[Array | None]) -> bool:
        """Whether the value was made from these very arrays."""
        return len(self.sources) == len(sources) and all(a is b for a, b in zip(self.sources, sources))


class SharedValues:
    """The values that are made from the bytes of one model, or from one file of constants, in this process.

    They are referenced weakly: each lives as long as an interpreter uses it. All interpreters that have this object were opened from
    the same bytes, which cannot change, so that a tensor or node of one has the same meaning in all others. A forked process has the
    values of its parent, in the memory that both share until one of them writes there.

    Args:
        content: the model's bytes, which are kept alive, so that no others get their id; None where a file's mapping holds this.
    """

    __slots__ = ("__weakref__", "_content", "_held")

    def __init__(self, content: bytes | None = None) -> None:
        self._content = content
        self._held: weakref.WeakValueDictionary[Hashable, Any] = weakref.WeakValueDictionary()

    def get(self, key: Hashable) -> Any:
        """The value of a key; None if there is none now."""
        return self._held.get(key)

    def keep(self, key: Hashable, value: Kept) -> Kept:
        """Keep a value as long as it is referenced elsewhere; returns the one that another thread was faster to keep, if there is one."""
        with _lock:
            found: Kept | None = self._held.get(key)
            if found is None:
                self._held[key] = found = value
        return found

    def __len__(self) -> int:
        return len(self._held)


class NodeValues:
    """The part of a model's shared values that belongs to one node of its file.

    Attributes:
        shared: the model's values.

    Args:
        shared: the model's values.
        place: the numbers of the node's subgraph and of the node.
    """

    __slots__ = ("_place", "shared")

    def __init__(self, shared: SharedValues, place: tuple[int, int]) -> None:
        self.shared = shared
        self._place = place

    def derive(self, kernel: Hashable, key: Hashable, sources: Sequence[Array | None], make: Callable[[], Any]) -> Derived:
        """The value that another interpreter's node has made from the same arrays, or a new one.

        Threads that prepare the same node at the same time may each make it; all get the same one. None waits for another: what `make`
        does is a kernel's own.

        Args:
            kernel: tells the kernels that may serve the node apart.
            key: the kernel's name for the value.
            sources: the arrays from which it is made.
            make: makes it. Its arrays become read-only.
        """
        whole = self._place, kernel, key, tuple(map(id, sources))
        found = self.shared.get(whole)
        if found is None or not found.is_of(sources):
            found = self.shared.keep(whole, Derived(sources, _frozen(make())))
        return found  # type: ignore[no-any-return]


def _frozen(value: Any) -> Any:
    """The value, its arrays made read-only: those in tuples, lists and dictionaries too."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, (tuple, list)):
        for part in value:
            _frozen(part)
    elif isinstance(value, dict):
        for part in value.values():
            _frozen(part)
    return value


_lock = threading.RLock()  # reentrant: a destructor may run anywhere
_of_bytes: weakref.WeakValueDictionary[int, SharedValues] = weakref.WeakValueDictionary()


def values_of_bytes(content: bytes) -> SharedValues:
    """The shared values of all models that were opened from this bytes object."""
    with _lock:
        found = _of_bytes.get(id(content))
        if found is None:
            found = _of_bytes[id(content)] = SharedValues(content)
    return found


def _renew_lock() -> None:
    """A forked process has none of its parent's other threads, one of which may have held the lock."""
    global _lock
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)
