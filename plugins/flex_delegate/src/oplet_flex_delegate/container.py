"""The resources of one interpreter, variables and tables, which TensorFlow keeps for the whole process by name."""

from __future__ import annotations

import itertools
import os
from collections.abc import Hashable
from contextlib import suppress
from typing import Any

from oplet import Context
from oplet_flex_delegate.library import executor, tensorflow

__all__ = ["Container"]

_KEY = ("oplet_flex_delegate", "container")
_numbers = itertools.count()


class Container:
    """A name that no other interpreter has, and the resources that were made under it.

    Every kernel of an interpreter takes part in one; when the last lets go, the resources are destroyed.

    Attributes:
        name: the name, for the attribute `container`.
    """

    def __init__(self) -> None:
        self.name = f"oplet-{os.getpid()}-{next(_numbers)}"
        self._users = 0
        self._handles: dict[Hashable, Any] = {}

    @classmethod
    def of(cls, context: Context) -> Container:
        """The interpreter's container, with one more user."""
        found: Container = context.resources.setdefault(_KEY, cls())
        found._users += 1
        return found

    def keep(self, key: Hashable, handle: Any) -> None:
        """Remember a handle of a resource, which is destroyed in the end; a later one with the same key is of the same resource."""
        self._handles[key] = handle

    def leave(self, context: Context) -> None:
        """One user less; without users its resources are destroyed."""
        self._users -= 1
        if self._users:
            return
        if context.resources.get(_KEY) is self:
            del context.resources[_KEY]
        handles, self._handles = self._handles, {}
        if not handles:
            return
        run, failures = executor(), tensorflow().errors.OpError
        for handle in handles.values():
            with suppress(failures):  # one that another node destroyed
                run(b"DestroyResourceOp", 0, [handle], ("ignore_lookup_error", True))
