"""Lists that are values: a changed list leaves the one that it was made from as it is, and is made in constant time.

The versions of a list share one Python list, which the newest one holds; an older version knows the change that leads back to it. Who
reads an older version turns these changes round on the way, so that this version holds the list (H. Baker, "Shallow binding makes
functional arrays fast", 1991). A version that nobody refers to any more costs nothing: loops, which go on from the newest one, run as
fast as if they overwrote it. After as many changes as there are items, the next version gets a copy, so that an old version which is
kept holds no more than twice its own items.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, cast

__all__ = ["PersistentList"]

#: What leads from a version to the one before it: set an item, remove the last item, append an item.
_SET, _REMOVE, _APPEND = range(3)
_Change = tuple[int, int, Any]
#: Changes below which a list is never copied.
_FEW = 16


class PersistentList:
    """A list of objects that never changes; indices count from 0. Its versions may be used in several threads.

    Attributes:
        size: the number of items.
    """

    __slots__ = ("_changes", "_items", "_later", "_lock", "_undo", "size")

    def __init__(self, items: Iterable[Any] = ()) -> None:
        self._items: list[Any] | None = list(items)
        self.size = len(self._items)
        #: The version that holds the items, or leads to it, and the change that leads from there to this one.
        self._later: PersistentList | None = None
        self._undo: _Change = (_SET, 0, None)
        self._changes = 0  # since the items were last copied
        self._lock = threading.Lock()  # of all versions that share the items

    def get(self, index: int) -> Any:
        """The item at `index`."""
        with self._lock:
            return self._held()[index]

    def items(self) -> list[Any]:
        """A new Python list of all items."""
        with self._lock:
            return self._held().copy()

    def replaced(self, index: int, item: Any) -> PersistentList:
        """The list with another item at `index`."""
        return self._changed((_SET, index, item))

    def appended(self, item: Any) -> PersistentList:
        """The list with one more item at its end."""
        return self._changed((_APPEND, 0, item))

    def shortened(self) -> PersistentList:
        """The list without its last item."""
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
            self._undo = _apply(change, items)
            later.size = len(items)
            later._items, self._items, self._later = items, None, later
            return later

    def _held(self) -> list[Any]:
        """The items, after they were brought from the version that held them."""
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
    """Change the items; returns the change that leads back."""
    kind, index, item = change
    if kind == _SET:
        before, items[index] = items[index], item
        return _SET, index, before
    if kind == _APPEND:
        items.append(item)
        return _REMOVE, 0, None
    return _APPEND, 0, items.pop()
