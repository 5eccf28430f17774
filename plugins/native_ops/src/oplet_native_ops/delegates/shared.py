"""What of C's is freed when nobody needs it any more."""

from __future__ import annotations

__all__ = ["Shared"]


class Shared:
    """Something of C's that partitions use, which are freed by their interpreter.

    Python tears down what refers to one another in no certain order, and may come to a delegate before the interpreter that still has
    partitions of it to free: then whoever uses it last ends it.
    """

    _users = 0
    _is_gone = False

    def use(self) -> None:
        """Keep it until `release`."""
        self._users += 1

    def release(self) -> None:
        """End it if nobody else is left."""
        self._users -= 1
        if self._is_gone and not self._users:
            self._end()

    def __del__(self) -> None:
        self._is_gone = True
        if not self._users:
            self._end()

    def _end(self) -> None:
        """Free it, once."""
        raise NotImplementedError
