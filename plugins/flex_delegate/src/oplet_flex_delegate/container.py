"""TensorFlow resources (variables, tables) of one interpreter; TensorFlow keeps them process-wide by name."""

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
    """A container name unique to one interpreter, and the resources created under it.

    All kernels of an interpreter share one container; when the last kernel leaves it, the resources are destroyed.

    Attributes:
        name: the name, for the attribute `container`.
    """

    def __init__(self) -> None:
        self.name = f"oplet-{os.getpid()}-{next(_numbers)}"
        self._users = 0
        self._handles: dict[Hashable, Any] = {}

    @classmethod
    def of(cls, context: Context) -> Container:
        """Return the container of the context's interpreter, and increment the count of its users (kernels)."""
        found: Container = context.resources.setdefault(_KEY, cls())
        found._users += 1
        return found

    def keep(self, key: Hashable, handle: Any) -> None:
        """Store a resource's handle, so that it is destroyed at the end; handles with the same key refer to the same resource."""
        self._handles[key] = handle

    def leave(self, context: Context) -> None:
        """Decrement the count of users (kernels); destroy the container's resources when none is left."""
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
