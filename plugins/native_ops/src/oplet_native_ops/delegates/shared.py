"""Reference counting of C objects that several partitions share."""

from __future__ import annotations

__all__ = ["Shared"]


class Shared:
    """A C object with a reference count: it is freed when its last user (a partition) is gone.

    Python finalizes the objects of a reference cycle in no defined order, possibly the delegate before an interpreter that still
    has to free its partitions: therefore the last user frees the object.
    """

    _users = 0
    _is_gone = False

    def use(self) -> None:
        """Increment the C object's reference count."""
        self._users += 1

    def release(self) -> None:
        """Decrement the C object's reference count; free the object if it becomes 0."""
        self._users -= 1
        if self._is_gone and not self._users:
            self._end()

    def __del__(self) -> None:
        self._is_gone = True
        if not self._users:
            self._end()

    def _end(self) -> None:
        """Free the C object; called once."""
        raise NotImplementedError
