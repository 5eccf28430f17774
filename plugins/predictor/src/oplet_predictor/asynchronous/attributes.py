"""Attributes of buffers and synchronization objects, and their reconciliation between application and asynchronous kernel.

Keys, their numbers and the rules of reconciliation: tflite/core/async/interop (c/types.h, c/constants.h, reconcile_fns.cc) of
google-ai-edge/LiteRT.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

__all__ = [
    "NO_SYNC_OBJECT",
    "Attributes",
    "BufferAttribute",
    "Reconciliation",
    "SynchronizationAttribute",
    "reconcile_attributes",
    "uncovered_attributes",
]

#: The synchronization type of a tensor that has none: an input is ready at `invoke_async`, an output after `wait`.
NO_SYNC_OBJECT: Final = "no_sync_obj"


class BufferAttribute(Enum):
    """Attributes of a buffer, with LiteRT's numbers."""

    RESOURCE_TYPE_NAME = 1  #: str: its type, one of the kernel's `supported_buffer_types`
    ALIGNMENT = 2  #: int: bytes of which its address is a multiple
    PADDING = 3  #: int: bytes to a multiple of which its size is padded
    OFFSET = 4  #: int: bytes from the buffer's start
    SIZE = 5  #: int: bytes, padding included
    CURRENT_HOST_COHERENCY_STATE = 6  #: bool
    PREFERRED_HOST_COHERENCY_STATE = 7  #: bool
    CURRENT_HOST_CACHE_STATE = 8  #: bool
    PREFERRED_HOST_CACHE_STATE = 9  #: bool


class SynchronizationAttribute(Enum):
    """Attributes of a synchronization object, with LiteRT's number."""

    OBJECT_TYPE_NAME = 1  #: str: its type, one of the kernel's `supported_synchronizations`


#: Values by key; string keys are a kernel's own.
Attributes = Mapping[BufferAttribute | SynchronizationAttribute | str, Any]

_MULTIPLES = (BufferAttribute.ALIGNMENT, BufferAttribute.PADDING)


@dataclass(frozen=True)
class Reconciliation:
    """Result of merging the attributes of application and kernel.

    Attributes:
        merged: the values that suit both.
        conflicts: the kernel's values of attributes for which no value suits both.
    """

    merged: dict[BufferAttribute | SynchronizationAttribute | str, Any] = field(default_factory=dict)
    conflicts: dict[BufferAttribute | SynchronizationAttribute | str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether there is no conflict."""
        return not self.conflicts


def reconcile_attributes(given: Attributes, wanted: Attributes) -> Reconciliation:
    """Merge the attributes that the application gives with those that a kernel wants.

    Alignments and paddings are merged to their least common multiple, sizes to the larger one; others must be equal. Attributes of only
    one side are kept.

    Examples:
        >>> size = BufferAttribute.SIZE
        >>> reconcile_attributes({size: 8, "colour": "red"}, {size: 12, "colour": "blue"})
        Reconciliation(merged={<BufferAttribute.SIZE: 5>: 12}, conflicts={'colour': 'blue'})
    """
    result = Reconciliation()
    for key in (*given, *(key for key in wanted if key not in given)):
        mine, theirs = given.get(key), wanted.get(key)
        if mine is None or theirs is None:
            result.merged[key] = theirs if mine is None else mine
        elif key in _MULTIPLES:
            result.merged[key] = math.lcm(mine, theirs)
        elif key is BufferAttribute.SIZE:
            result.merged[key] = max(mine, theirs)
        elif mine == theirs:
            result.merged[key] = mine
        else:
            result.conflicts[key] = theirs
    return result


def uncovered_attributes(given: Attributes, wanted: Attributes) -> dict[BufferAttribute | SynchronizationAttribute | str, Any]:
    """Return the attributes that a kernel wants and the application's do not satisfy.

    A size or padding is satisfied by one that is as large, an alignment by a multiple of it, others by an equal value.
    """
    return {key: value for key, value in wanted.items() if value is not None and not _covers(key, given.get(key), value)}


def _covers(key: object, given: Any, wanted: Any) -> bool:
    if given is None:
        return False
    if key is BufferAttribute.SIZE or key is BufferAttribute.PADDING:
        return bool(given >= wanted)
    if key is BufferAttribute.ALIGNMENT:
        return bool(wanted == 0 or given % wanted == 0)
    return bool(given == wanted)
