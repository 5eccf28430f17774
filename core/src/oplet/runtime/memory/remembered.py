"""Bound plans of interpreters that were dropped, for the next interpreter of the same model with the same settings.

A program that makes an interpreter for each request, or opens the same file again, prepares and binds the same nodes each time. An
interpreter that is dropped therefore leaves its *bound plan* behind: the nodes and tensors with what kernels prepared, the arena, and the
thunks that are bound to it. The next interpreter takes it over in place of preparing its own nodes, and then has it to itself.

A plan is remembered only where nothing can tell it from a new one: the model's bytes are the same object, or the same mapping of a file
that has not changed since; one graph of pure kernels without state, of static shapes, without delegates; one thread. What is remembered
is bounded in number, bytes and age. An interpreter that is closed leaves less: its arena's memory goes back to the system at once, and the
plan stays only if what kernels have made of the weights is small.
"""

from __future__ import annotations

import os
import sys
import time
from _thread import RLock
from collections.abc import Collection, Hashable
from typing import TYPE_CHECKING, Any

from oplet.ops.tensor import Allocation
from oplet.records import Row
from oplet.runtime.memory.arrays import give_back_pages
from oplet.runtime.subgraph import Segment, Subgraph

if TYPE_CHECKING:
    from oplet.model.model import Model
    from oplet.ops.context import Node
    from oplet.ops.tensor import Tensor
    from oplet.runtime.memory.accounting import MemoryAccount

__all__ = [
    "MOST_BYTES",
    "Left",
    "forget_plans",
    "free_origin",
    "is_plain",
    "leave",
    "may_leave",
    "remember_plan",
    "take",
    "take_plan",
]

#: The most plans that are remembered, the most bytes of their memory and files together, and for how many seconds.
_MOST, MOST_BYTES, _SECONDS = 8, 64 << 20, 60.0
#: The most bytes of the plans of interpreters that were closed, together.
_MOST_CLOSED_BYTES = 32 << 20
_CONSTANT, _DYNAMIC, _PERSISTENT = Allocation.CONSTANT, Allocation.DYNAMIC, Allocation.PERSISTENT


class Left(Row):
    """A prepared and bound plan that an ended interpreter leaves to the next interpreter of the same model.

    Attributes:
        plan: a `BoundPlan`, or a `StoredPlan` from disk; its `discard` frees it, where no interpreter takes it over.
        nbytes: the bytes of memory that the plan occupies.
        since: when the plan was left, in seconds of `time.monotonic`.
        closed: whether its interpreter was closed.
    """

    plan: Any
    nbytes: int
    since: float
    closed: bool = False


class BoundPlan(Row):
    """What a dropped interpreter had prepared and bound, for the next interpreter of the same model.

    Attributes:
        model: its model, which keeps the mapping of the file.
        subgraph: its only subgraph, prepared and bound.
        memory: its memory account.
        resources: objects that its kernels share (`Context.resources`); no state of the model.
    """

    model: Model
    subgraph: Subgraph
    memory: MemoryAccount
    resources: dict[Any, Any]

    def fits(self, subgraph: Subgraph) -> bool:
        """Return whether a subgraph's inputs have the shapes and types that the plan was prepared for."""
        theirs = self.subgraph.tensors
        mine = subgraph.tensors
        return len(mine) == len(theirs) and all(
            (mine[i].shape, mine[i].type) == (theirs[i].shape, theirs[i].type) for i in subgraph.inputs
        )

    def adopt(self, subgraph: Subgraph, memory: MemoryAccount) -> None:
        """Hand the plan to a new interpreter's subgraph: its nodes and tensors take over the state of the plan's.

        The thunks stay bound to the nodes and tensors of the interpreter that bound them, the plan's *origin*, whose arrays are the same.
        """
        old = self.subgraph
        tensors: dict[Tensor | Node, Tensor | Node] = {}
        for tensor, its in zip(subgraph.tensors, old.tensors):
            tensor.take_over(its)
            tensors[its] = tensor
        for node, other in zip(subgraph.nodes, old.nodes):
            node.take_over(other)
            tensors[other] = node
        for absorbing in old.absorption.nodes:
            node = subgraph.nodes[absorbing.index]
            node.absorbed = tuple(subgraph.nodes[other.index] for other in absorbing.absorbed)
            node.main = None if absorbing.main is None else subgraph.nodes[absorbing.main.index]
            subgraph.absorption.nodes.append(node)
        subgraph.reorder(old.execution_plan[:])
        memory.take_over(self.memory, tensors)
        (segment,) = old.segments
        taken = Segment(segment.end, [subgraph.nodes[node.index] for node in segment.nodes], [])
        taken.thunks, taken.steps, taken.seconds = segment.thunks, segment.steps, segment.seconds
        taken.is_one_step, taken.arena, taken.offsets = segment.is_one_step, segment.arena, segment.offsets
        old.segments = []
        subgraph.origin = old.origin or old
        taken.requests = [(tensors.get(tensor, tensor), life) for tensor, life in segment.requests]  # type: ignore[misc]
        subgraph.last_use, subgraph.folded, subgraph.segments = old.last_use, old.folded, [taken]
        end = len(subgraph.execution_plan)
        for tensor, life in taken.requests:
            if life.last == end:  # the caller may read it before the first invoke
                tensor.data.fill(0)

    def discard(self) -> None:
        """Free the plan's memory, as no interpreter will take it over."""
        self.subgraph.segments.clear()
        _free(self.subgraph)
        free_origin(self.subgraph)


def free_origin(subgraph: Subgraph) -> None:
    """Free the nodes and tensors of a dropped interpreter to which the subgraph's thunks are bound; they must not run again."""
    if subgraph.origin is not None:
        _free(subgraph.origin)
        subgraph.origin = None


def _free(subgraph: Subgraph) -> None:
    """Drop what nodes and tensors hold at once, without waiting for Python's collector of reference cycles."""
    for node in subgraph.nodes:
        node.release()
    subgraph.folded = {}
    for tensor in subgraph.tensors:
        if tensor.allocation is not _CONSTANT:
            tensor.set_memory(None)


_lock = RLock()  # reentrant: a destructor may run anywhere
#: The plans, the oldest first. Only copies are iterated: Python's collector may run meanwhile, and an interpreter that it drops leaves its plan.
_plans: dict[Hashable, Left] = {}


def remember_plan(
    key: tuple[Any, ...],
    model: Model,
    subgraph: Subgraph,
    memory: MemoryAccount,
    resources: dict[Any, Any],
    *,
    closed: bool = False,
) -> bool:
    """Keep the bound plan (arrays, thunks) of an ending interpreter for the next one of its model; return False if impossible.

    Args:
        key: the settings that the plan depends on; objects in it are compared by identity or value, and kept alive.
        model: the interpreter's model.
        subgraph: its only subgraph.
        memory: its memory account.
        resources: the resources of its session.
        closed: whether the interpreter is closed (not just dropped): the arena's memory is then returned to the system.
    """
    if not may_leave(model) or not is_plain(subgraph, resources):
        return False
    most = _MOST_CLOSED_BYTES if closed else MOST_BYTES
    nbytes = memory.total + (0 if closed and model.is_mapped else len(model.data))  # pages of a file are the system's to take
    if nbytes + (0 if closed else subgraph.arena_bytes) > most:
        return False
    for segment in subgraph.segments:
        if segment.arena is not None:
            nbytes += give_back_pages(segment.arena) if closed else segment.arena.nbytes
    if nbytes > most:
        return False
    leave(model, key, Left(BoundPlan(model, subgraph, memory, resources), nbytes, time.monotonic(), closed))
    return True


def may_leave(model: Model) -> bool:
    """Return whether a model's bytes cannot change, so that another interpreter may use what was bound (never on Windows)."""
    return model.shared_values is not None and os.name != "nt" and not sys.is_finalizing()


def leave(model: Model, key: Hashable, left: Left) -> None:
    """Store a plan (memory and thunks of an ended interpreter) under a model and key, replacing an earlier one."""
    with _lock:
        dropped = _expired(left.since) + _removed((model.shared_values, key))
        _plans[model.shared_values, key] = left
        dropped += _too_many()
    _discard(dropped)


def take(model: Model, key: Hashable) -> Any:
    """Remove and return the plan (memory and thunks) left under a model and key; None if there is none, or it is too old."""
    if not _plans or model.shared_values is None:
        return None
    with _lock:
        dropped = _expired(time.monotonic())
        found = _plans.pop((model.shared_values, key), None)
    _discard(dropped)
    return None if found is None else found.plan


def _too_many() -> list[Left]:
    """Remove the oldest kept plans until number and bytes are within bounds; return those removed."""
    dropped: list[Left] = []
    plans = _plans.copy()
    closed = sum(plan.nbytes for plan in plans.values() if plan.closed)
    for key, plan in plans.items():
        if plan.closed and closed > _MOST_CLOSED_BYTES:
            dropped += _removed(key)
            closed -= plan.nbytes
    plans = _plans.copy()
    count, total = len(plans), sum(plan.nbytes for plan in plans.values())
    for key, plan in plans.items():
        if count <= _MOST and total <= MOST_BYTES:
            break
        dropped += _removed(key)
        count, total = count - 1, total - plan.nbytes
    return dropped


def _removed(key: Hashable) -> list[Left]:
    """Remove and return the plan of a key; none if it is gone."""
    found = _plans.pop(key, None)
    return [] if found is None else [found]


def take_plan(key: tuple[Any, ...], model: Model, subgraph: Subgraph) -> BoundPlan | None:
    """Remove and return the plan (arrays, thunks) left for a model and settings; None if none fits the subgraph's inputs."""
    found: BoundPlan | None = take(model, key)
    if found is not None and not found.fits(subgraph):
        found.discard()
        return None
    return found


def forget_plans() -> None:
    """Free all plans that dropped interpreters have left (arrays, thunks), for instance as kernels were compiled since."""
    with _lock:
        dropped = [left for key in _plans.copy() for left in _removed(key)]
    _discard(dropped)


def _discard(plans: list[Left]) -> None:
    """Free plans that were removed; call it without holding the lock."""
    for left in plans:
        left.plan.discard()


def _expired(now: float) -> list[Left]:
    """Remove the kept plans that are too old at the time `now`, and return them."""
    return [left for key, plan in _plans.copy().items() if now - plan.since > _SECONDS for left in _removed(key)]


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
