"""Reference counting of C objects that several partitions share."""

from __future__ import annotations

__all__ = ["Shared"]


class Shared:
    """A C object that is freed when its last user (a partition) is gone.

    Python destroys objects of a reference cycle in no defined order, possibly the delegate before an interpreter that still has
    to free its partitions: the last user then frees the object.
    """

    _users = 0
    _is_gone = False

    def use(self) -> None:
        """Count one more user of the C object."""
        self._users += 1

    def release(self) -> None:
        """Count one user less; free the C object if it was the last."""
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
