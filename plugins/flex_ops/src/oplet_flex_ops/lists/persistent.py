"""Persistent (immutable) lists: a change returns a new version in constant time and keeps the old one valid.

The versions of a list share one Python list, which the newest one holds; an older version stores the change that leads back to
it. Reading an older version applies these changes and inverts them on the way, so that this version then holds the list (H.
Baker, "Shallow binding makes functional arrays fast", 1991). Unreferenced versions cost nothing: loops, which go on from the
newest one, run as fast as if they overwrote it. After as many changes as there are items, the next version gets a copy, so that
an old version that is kept holds no more than twice its own items.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, cast

from oplet.kernels.limits import Kept

__all__ = ["PersistentList"]

#: What leads from a version to the one before it: set an item, remove the last item, append an item.
_SET, _REMOVE, _APPEND = range(3)
_Change = tuple[int, int, Any]
#: Changes below which a list is never copied.
_FEW = 16
#: Bytes of a version, and of a reference to an item.
_VERSION, _REFERENCE = 500, 8


class PersistentList:
    """An immutable list of objects; a change returns a new version. Versions may be used from several threads.

    Attributes:
        size: the number of items.
    """

    __slots__ = ("_changes", "_items", "_kept", "_later", "_lock", "_own", "_undo", "size")

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self._items: list[Any] | None = list(items)
        #: What counts the list of items, which all its versions hold, and this version.
        self._kept, self._own = Kept(_REFERENCE * len(self._items)), Kept(_VERSION)
        self.size = len(self._items)
        #: The version that holds the items, or leads to it, and the change that leads from there to this one.
        self._later: PersistentList | None = None
        self._undo: _Change = (_SET, 0, None)
        self._changes = 0  # since the items were last copied
        self._lock = threading.Lock()  # of all versions that share the items

    def get(self, index: int) -> Any:
        """Return the item at `index`."""
        with self._lock:
            return self._held()[index]

    def items(self) -> list[Any]:
        """Return all items as a new Python list."""
        with self._lock:
            return self._held().copy()

    def replaced(self, index: int, item: Any) -> PersistentList:
        """Return a version with `item` at `index`."""
        return self._changed((_SET, index, item))

    def appended(self, item: Any) -> PersistentList:
        """Return a version with `item` appended."""
        return self._changed((_APPEND, 0, item))

    def shortened(self) -> PersistentList:
        """Return a version without the last item."""
        return self._changed((_REMOVE, 0, None))

    def _changed(self, change: _Change) -> PersistentList:
        with self._lock:
            items = self._held()
            if self._changes > max(self.size, _FEW):
                copied = PersistentList(items)
                own = copied._held()
                _apply(change, own)
                copied.size = len(own)
                return copied
            later = PersistentList.__new__(PersistentList)
            later._later, later._undo, later._lock = None, (_SET, 0, None), self._lock
            later._changes = self._changes + 1
            later._kept, later._own = self._kept, Kept(_VERSION)
            self._undo = _apply(change, items)
            later.size = len(items)
            later._items, self._items, self._later = items, None, later
            return later

    def _held(self) -> list[Any]:
        """Return the mutable Python list of this version's items, rerooted: changes between versions are applied to the one
        shared list.
        """
        if self._items is None:
            path: list[PersistentList] = []
            holder = self
            while (items := holder._items) is None:
                path.append(holder)
                holder = cast("PersistentList", holder._later)
            while path:
                version = path.pop()
                holder._undo = _apply(version._undo, items)
                holder._items, holder._later = None, version
                version._items, version._later = items, None
                holder = version
            return items
        return self._items


def _apply(change: _Change, items: list[Any]) -> _Change:
    """Apply a change to the items in place; return the inverse change."""
    kind, index, item = change
    if kind == _SET:
        before, items[index] = items[index], item
        return _SET, index, before
    if kind == _APPEND:
        items.append(item)
        return _REMOVE, 0, None
    return _APPEND, 0, items.pop()
