"""Bound plans of interpreters that were dropped, for the next interpreter of the same model with the same settings.

A program that makes an interpreter for each request, or opens the same file again, prepares and binds the same nodes each time. An
interpreter that is dropped therefore leaves its *bound plan* behind: the nodes and tensors with what kernels prepared, the arena, and the
thunks that are bound to it, its own or those from disk (`memory.stored_plan`). The next interpreter has these nodes and tensors in place of
its own when it allocates, and then has them to itself.

A plan is remembered only where nothing can tell it from a new one: the model's bytes are the same object, or the same mapping of a file
that has not changed since; one graph of pure kernels without state, of static shapes, without delegates; one thread. What is remembered
is bounded in number, bytes and age. An interpreter that is closed leaves nothing.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import RLock
from collections.abc import Collection, Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.ops.tensor import Allocation
from oplet.records import Row
from oplet.runtime.subgraph import Subgraph

if TYPE_CHECKING:
    from oplet.model.model import Model
    from oplet.plugins.manager import PluginManager
    from oplet.plugins.selection import Preference
    from oplet.runtime.memory.accounting import MemoryAccount

__all__ = [
    "STORE_VARIABLE",
    "LeftPlan",
    "forget_plans",
    "is_left",
    "is_plain",
    "leave_plan",
    "settings_of",
    "stores_plans",
    "take_plan",
]

#: The environment variable that switches plans on disk off, with "off".
STORE_VARIABLE = "OPLET_PLANS"
#: The most plans that are remembered, the most bytes of their memory and models together, and for how many seconds.
_MOST, _MOST_BYTES, _SECONDS = 8, 64 << 20, 60.0
_CONSTANT, _DYNAMIC, _PERSISTENT = Allocation.CONSTANT, Allocation.DYNAMIC, Allocation.PERSISTENT


class LeftPlan(Row):
    """What a dropped interpreter had prepared and bound, for the next interpreter of the same model.

    Attributes:
        model: its model, which keeps the mapping of the file.
        subgraph: its only subgraph, prepared and bound.
        memory: its memory account.
        resources: objects that its kernels share (`Context.resources`); no state of the model.
        nbytes: the bytes of memory that the plan occupies.
        since: when it was left, in seconds of `time.monotonic`.
    """

    model: Model
    subgraph: Subgraph
    memory: MemoryAccount
    resources: dict[Any, Any]
    nbytes: int
    since: float

    def move_to(self, subgraph: Subgraph) -> None:
        """Put the plan's nodes and tensors, prepared and bound, in place of those of a subgraph that was loaded from the same model."""
        mine = self.subgraph
        subgraph.nodes[:], subgraph.tensors[:] = mine.nodes, mine.tensors
        subgraph.reorder(mine.execution_plan)
        subgraph.segments, subgraph.absorption, subgraph.stored = mine.segments, mine.absorption, mine.stored
        subgraph.last_use, subgraph.read_again, subgraph.folded = mine.last_use, mine.read_again, mine.folded

    def discard(self) -> None:
        """Free the plan's memory at once, without waiting for Python's collector of reference cycles; no interpreter takes it."""
        subgraph = self.subgraph
        subgraph.segments.clear()
        for node in subgraph.nodes:
            node.release()
        subgraph.folded = {}
        for tensor in subgraph.tensors:
            if tensor.allocation is not _CONSTANT:
                tensor.set_memory(None)


_lock = RLock()  # reentrant: a destructor may run anywhere
#: The plans, the oldest first. Only copies are iterated: Python's collector may run meanwhile, and an interpreter that it drops leaves its plan.
_plans: dict[Hashable, LeftPlan] = {}


def settings_of(manager: PluginManager, prefer: Preference) -> str | None:
    """Describe, as text, the settings, plugins and machine that a plan depends on, without importing plugins; None if impossible.

    Args:
        manager: the plugins.
        prefer: the plugins that the interpreter prefers where several serve an op.
    """
    if manager.recipe() is None:
        return None
    plugins = tuple((i.name, i.distribution, i.version, i.module, i.state == "blocked") for i in manager.outline())
    # PYTHONPATH may put another package before an installed one of its name and version, one that is not a kernel's too.
    variables = tuple(sorted(item for item in os.environ.items() if item[0].startswith("OPLET_") or item[0] == "PYTHONPATH"))
    # Also where archives date all files alike, no other version reads what this one has written.
    return _text(manager, sys.modules[__name__.partition(".")[0]].__version__, plugins, prefer, variables)


@lru_cache(maxsize=8)
def _text(manager: PluginManager, *facts: Hashable) -> str:
    python = sys.version, sys.implementation.cache_tag, sys.prefix, sys.byteorder, sys.flags.optimize
    return repr((python, np.__version__, __file__, manager.recipe(), facts))


def stores_plans() -> bool:
    """Return whether plans are taken from disk, and stored there."""
    return os.environ.get(STORE_VARIABLE, "").lower() != "off"


def leave_plan(key: Hashable, model: Model, subgraph: Subgraph, memory: MemoryAccount, resources: dict[Any, Any]) -> bool:
    """Keep the bound plan (arrays, thunks) of an interpreter that is dropped for the next one of its model; return False if impossible.

    Args:
        key: the settings that the plan depends on.
        model: the interpreter's model; its bytes must not change (never on Windows).
        subgraph: its only subgraph.
        memory: its memory account.
        resources: the resources of its session.
    """
    if model.shared_values is None or os.name == "nt" or sys.is_finalizing():
        return False
    if not subgraph.ready if subgraph.stored is not None else not is_plain(subgraph, resources):
        return False
    nbytes = memory.total + subgraph.arena_bytes + (0 if subgraph.stored is None else subgraph.stored.nbytes)
    if not model.is_mapped:  # the pages of a file are the system's to take
        nbytes += len(model.data)
    if nbytes > _MOST_BYTES:
        return False
    left = LeftPlan(model, subgraph, memory, resources, nbytes, time.monotonic())
    with _lock:
        dropped = _expired(left.since) + _removed((model.shared_values, key))
        _plans[model.shared_values, key] = left
        dropped += _too_many()
    _discard(dropped)
    return True


def is_left(key: Hashable, model: Model) -> bool:
    """Return whether a plan (arrays, thunks) was left under a model and settings; another interpreter may take it at any time."""
    found = _plans.get((model.shared_values, key))
    return found is not None and time.monotonic() - found.since <= _SECONDS


def take_plan(key: Hashable, model: Model, subgraph: Subgraph) -> LeftPlan | None:
    """Remove and return the plan (arrays, thunks) left under a model and settings; None if there is none, if it is too old, or was made
    for other shapes or types than those of the subgraph's inputs.
    """
    if not _plans:
        return None
    with _lock:
        dropped = _expired(time.monotonic())
        found = _plans.pop((model.shared_values, key), None)
    if found is not None:
        theirs, mine = found.subgraph.tensors, subgraph.tensors
        if any((mine[i].shape, mine[i].type) != (theirs[i].shape, theirs[i].type) for i in subgraph.inputs):
            dropped.append(found)
            found = None
    _discard(dropped)
    return found


def forget_plans() -> None:
    """Free all plans that dropped interpreters have left (arrays, thunks), for instance as kernels were compiled since."""
    with _lock:
        dropped = [left for key in _plans.copy() for left in _removed(key)]
    _discard(dropped)


def _too_many() -> list[LeftPlan]:
    """Remove the oldest kept plans until number and bytes are within bounds; return those removed."""
    dropped: list[LeftPlan] = []
    plans = _plans.copy()
    count, total = len(plans), sum(plan.nbytes for plan in plans.values())
    for key, plan in plans.items():
        if count <= _MOST and total <= _MOST_BYTES:
            break
        dropped += _removed(key)
        count, total = count - 1, total - plan.nbytes
    return dropped


def _expired(now: float) -> list[LeftPlan]:
    """Remove the kept plans that are too old at the time `now`, and return them."""
    return [left for key, plan in _plans.copy().items() if now - plan.since > _SECONDS for left in _removed(key)]


def _removed(key: Hashable) -> list[LeftPlan]:
    """Remove and return the plan of a key; none if it is gone."""
    found = _plans.pop(key, None)
    return [] if found is None else [found]


def _discard(plans: list[LeftPlan]) -> None:
    """Free plans that were removed; call it without holding the lock."""
    for left in plans:
        left.discard()


def is_plain(subgraph: Subgraph, resources: Collection[Any]) -> bool:
    """Return whether a subgraph is prepared as the file has it, and nothing of its state outlives a run.

    Args:
        subgraph: the model's only subgraph.
        resources: the keys of `Session.resources`; plain numbers are variables and tables of the model.
    """
    segments = subgraph.segments
    if not all(isinstance(owner, tuple) for owner in resources):
        return False  # those under plain numbers are variables and tables of the model
    if not (
        subgraph.ready
        and len(segments) == 1
        and segments[0].end == len(subgraph.execution_plan) == len(subgraph.nodes)
        and not segments[0].dynamic
        and len(subgraph.tensors) == subgraph.file_tensors
        and not (
            subgraph.variables
            or subgraph.initialized
            or subgraph.delegated.kernels
            or subgraph.delegated.inlined
            or subgraph.delegated.immutable
            or any(node.registration is None or node.registration.speculative for node in subgraph.absorption.nodes)
        )
    ):
        return False
    for node in subgraph.nodes:
        kernel = node.registration
        if kernel is None or not kernel.pure or node.delegate is not None:
            return False
        if kernel.init is not None or kernel.user_data is not None:
            return False
        if node.temporaries and any(tensor.allocation in (_PERSISTENT, _DYNAMIC) for tensor in node.temporaries):
            return False
    return not any(
        tensor.delegate is not None
        or tensor.allocation is _DYNAMIC
        or (tensor.dtype.hasobject and tensor.allocation is not _CONSTANT)
        for tensor in subgraph.tensors
    )


def _forget_in_child() -> None:
    """Forget all plans in a forked child, and renew the lock, which a thread that the child does not have may have held."""
    global _lock
    _lock = RLock()
    _plans.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
