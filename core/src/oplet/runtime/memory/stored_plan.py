"""Stored plans: a subgraph that was prepared and bound in another process, which runs here without its kernels.

A restored subgraph has its tensors' shapes and memory, and one thunk for all of its nodes. Only `invoke` runs that. Whatever asks for more,
such as a node's registration, a resize or a delegate, has the subgraph prepared as always, in the same memory (`Executor.rebind`).
Source of what is stored: `runtime.memory.remembered`, which does the same within a process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from oplet.ops.ensure import checkpoint
from oplet.ops.serving.joining import storable
from oplet.ops.tensor import Allocation, Tensor, numpy_dtype
from oplet.plugins.selection import Preference
from oplet.runtime.memory.arena_planner import Lifetime
from oplet.runtime.memory.arrays import aligned_bytes
from oplet.runtime.memory.plan_files import (
    MOST_BYTES,
    PlanFile,
    PlanName,
    all_sources,
    are_unchanged,
    files_of,
    find_plan,
    keep_plan,
    note_opened,
    settings_of,
)
from oplet.runtime.memory.remembered import MOST_BYTES as MOST_LEFT
from oplet.runtime.memory.remembered import Left, is_plain, leave, may_leave, take
from oplet.runtime.subgraph import Segment, Subgraph
from oplet.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet.model.model import Model
    from oplet.plugins.manager import PluginManager

__all__ = ["MOST_NODES", "StoredPlan", "StoredPlans"]

_ALLOCATIONS = tuple(Allocation)
_CONSTANT, _COMPUTED = Allocation.CONSTANT, Allocation.COMPUTED
#: The most nodes of a graph whose plan is stored: that takes less than a second, in a run of the model.
MOST_NODES = 8192
#: In place of temporaries, whose lifetimes count.
_TEMPORARY = Tensor(-1, "", TensorType.UINT8, ())


class StoredPlans:
    """Reads and stores, for one interpreter, its model's plan (prepared state) on disk.

    Args:
        model: the model.
        manager: its plugins.
        prefer: the plugins to use where several serve an op.
    """

    def __init__(self, model: Model, manager: PluginManager, prefer: Any) -> None:
        self._model = model
        self._manager = manager
        self._name: PlanName | None = None
        self._found: StoredPlan | None = None
        if len(model.data) <= MOST_BYTES:
            settings = settings_of(manager, Preference.read(prefer))
            if settings is not None:
                self._name = PlanName(settings, np.frombuffer(model.data, np.uint8))
                self._find(self._name)

    def _find(self, name: PlanName) -> None:
        self._found = take(self._model, name.settings)
        if self._found is not None:
            return
        found = find_plan(name)
        self._model.release_pages()
        if found is not None and are_unchanged(found.facts["sources"], found.facts["packages"]):
            self._found = StoredPlan(found, self._model, name.settings)

    @property
    def has_found(self) -> bool:
        """Whether a plan (the model's prepared state, stored by another process) was found on disk, and is not used yet."""
        return self._found is not None

    @property
    def is_open(self) -> bool:
        """Whether this interpreter may still store the model's plan (its prepared state) on disk."""
        return self._name is not None

    def forget(self) -> None:
        """Stop using and storing the model's plan (its prepared state on disk) for this interpreter."""
        self._name = self._found = None

    def adopt(self, subgraph: Subgraph, compute: Callable[[], None]) -> bool:
        """Let the first subgraph, if neither prepared nor resized, run by the plan that was found; return whether it does.

        Args:
            subgraph: the subgraph, which no other thread uses now.
            compute: prepares the subgraph's own nodes in the same memory; called when a computed constant is read.
        """
        plan, self._found = self._found, None
        if plan is None or subgraph.index or subgraph.generation or not plan.adopt(subgraph, compute):
            return False
        subgraph.generation += 1
        subgraph.stored, subgraph.ready = plan, True
        self._name = None
        return True

    def store(
        self,
        subgraphs: Sequence[Subgraph],
        resources: Collection[Any],
        load: Callable[[], Sequence[Tensor]],
    ) -> None:
        """Store the plan of the model's only subgraph, if the model was opened before.

        Args:
            subgraphs: the model's subgraphs.
            resources: the keys of `Session.resources`.
            load: loads the first subgraph's tensors once more from the file.
        """
        subgraph, name = subgraphs[0], self._name
        if name is None or not subgraph.segments:
            return
        checkpoint()
        self._name = None  # once is enough
        if len(subgraph.nodes) > MOST_NODES:
            return
        is_as_the_file = len(subgraphs) == 1 and subgraph.generation == 1 and not self._model.lazy_root.external_buffers
        if not is_as_the_file or not is_plain(subgraph, resources) or not note_opened(name):
            return
        # The packages whose kernels have made it; others have a say in which kernels serve, and are told by their sources.
        kernels = [node.registration for node in subgraph.nodes]
        packages = files_of({kernel.provenance.module.partition(".")[0] for kernel in kernels if kernel is not None})
        stamps = all_sources(self._manager)
        facts = _facts(subgraph, load(), name.model) if stamps and all(packages.values()) else None
        if facts is not None:
            told, memory = facts
            keep_plan(name, {"sources": stamps, "packages": packages, **told}, memory)


def _facts(subgraph: Subgraph, as_in_file: Sequence[Tensor], model: NDArray[np.uint8]) -> tuple[dict[str, Any], bytes] | None:
    """Return a prepared subgraph as plain data, and the memory that its thunks use; None if the thunks cannot be stored.

    Args:
        subgraph: the subgraph.
        as_in_file: its tensors as they are when it is loaded.
        model: the model's bytes.
    """
    [segment] = subgraph.segments
    arena, seconds = segment.arena, segment.seconds
    if arena is None or seconds is None:
        return None
    in_arena = {tensor for tensor, _ in segment.requests}
    known = set(subgraph.tensors)  # others are temporaries
    # Those that are computed are made anew where they are read, but for outputs, which always may be.
    outside = [
        tensor
        for tensor in subgraph.tensors
        if tensor not in in_arena
        and tensor.has_data
        and tensor.allocation is not _CONSTANT
        and (tensor.allocation is not _COMPUTED or tensor.index in subgraph.read)
    ]
    if any(not tensor.data.nbytes for tensor in outside):
        return None
    thunks = storable(segment.thunks, seconds, arena, model, [tensor.data for tensor in outside])
    if thunks is None:
        return None
    facts = {
        "restores": thunks.restores,
        "thunks": dict(thunks.facts),
        "execution_plan": subgraph.execution_plan,
        "nodes": [node.index for node in segment.nodes],
        "absorbing": [
            (node.index, [other.index for other in node.absorbed], -1 if node.main is None else node.main.index)
            for node in subgraph.absorption.nodes
        ],
        "last_use": subgraph.last_use,
        "changed": [
            (tensor.index, tensor.shape, int(tensor.type), _ALLOCATIONS.index(tensor.allocation))
            for tensor, its in zip(subgraph.tensors, as_in_file)
            if tensor.allocation is _COMPUTED
            or (tensor.shape, tensor.type, tensor.allocation) != (its.shape, its.type, its.allocation)
        ],
        "outside": [(tensor.index, offset) for tensor, offset in zip(outside, thunks.offsets)],
        "arena": arena.nbytes,
        "requests": [
            (tensor.index if tensor in known else -1, *life, offset)
            for (tensor, life), offset in zip(segment.requests, segment.offsets)
        ],
    }
    return facts, thunks.memory


class StoredPlan:
    """A plan from disk: the shapes, memory layout and thunks that another process has prepared for a model.

    Args:
        file: its file.
        model: the model, whose bytes are those that it was made for.
        settings: a text of the settings, plugins and machine that it was made for.
    """

    def __init__(self, file: PlanFile, model: Model, settings: str) -> None:
        self._file = file
        self._model = model
        self._settings = settings
        self._before: list[tuple[Tensor, Any, Any, Any]] = []
        #: The arena, and what runs the nodes there, once it was adopted; the next interpreter that adopts it has them as they are.
        self._made: tuple[NDArray[np.uint8], list[Callable[[], None]]] | None = None

    def adopt(self, subgraph: Subgraph, compute: Callable[[], None]) -> bool:
        """Let a subgraph, neither prepared nor resized, run by the plan; return False if that is impossible on this machine.

        Args:
            subgraph: the subgraph.
            compute: prepares the subgraph's own nodes in the same memory; called when a computed constant is read.
        """
        facts, memory = self._file
        if self._made is None and not self._make():
            return False
        arena, steps = cast("tuple[NDArray[np.uint8], list[Callable[[], None]]]", self._made)
        subgraph.reorder(list(facts["execution_plan"]))
        subgraph.last_use = dict(facts["last_use"])
        for index, absorbed, main in facts["absorbing"]:
            node = subgraph.nodes[index]
            node.absorbed = tuple(subgraph.nodes[other] for other in absorbed)
            node.main = None if main < 0 else subgraph.nodes[main]
            subgraph.absorption.nodes.append(node)
        tensors = subgraph.tensors
        for index, shape, type, number in facts["changed"]:
            self._change(tensors[index], shape, type, _ALLOCATIONS[number], compute)
        segment = Segment(len(subgraph.execution_plan), [subgraph.nodes[index] for index in facts["nodes"]], [])
        end = segment.end
        requests = []
        for index, nbytes, first, last, offset in facts["requests"]:
            tensor = tensors[index] if index >= 0 else _TEMPORARY
            requests.append((tensor, Lifetime(nbytes, first, last)))
            if index >= 0:
                tensor.set_memory(np.ndarray(tensor.shape, tensor.dtype, arena, offset))
                if last == end:  # the caller may read it before the first invoke
                    tensor.data.fill(0)
        for index, offset in facts["outside"]:
            tensor = tensors[index]
            tensor.set_memory(np.ndarray(tensor.shape, tensor.dtype, memory, offset))
        segment.requests, segment.offsets, segment.arena = requests, [request[-1] for request in facts["requests"]], arena
        segment.steps, segment.seconds, segment.is_one_step = (steps, [0] * len(steps)), [], True
        subgraph.segments = [segment]
        return True

    def _make(self) -> bool:
        """Allocate the tensors' memory and restore the thunks that use it; return False if these cannot run here."""
        facts, memory = self._file
        arena = aligned_bytes(facts["arena"], zeroed=False)
        data = np.frombuffer(self._model.data, np.uint8)
        module, _, name = facts["restores"].partition(":")
        try:
            steps = getattr(import_module(module), name)(facts["thunks"], memory, arena, data)
        except ImportError:
            return False
        if steps is not None:
            self._made = arena, steps
        return steps is not None

    def leave(self) -> bool:
        """Leave the plan's memory and functions to the model's next interpreter when the present one ends; False if impossible."""
        if self._made is None or not may_leave(self._model):
            return False
        nbytes = self._made[0].nbytes + self._file.memory.nbytes + (0 if self._model.is_mapped else len(self._model.data))
        if nbytes > MOST_LEFT:
            return False
        self._before.clear()
        leave(self._model, self._settings, Left(self, nbytes, time.monotonic()))
        return True

    def discard(self) -> None:
        """Do nothing: the plan has no reference cycles, so that Python frees it at once."""

    def _change(self, tensor: Tensor, shape: Any, type: int, allocation: Allocation, compute: Callable[[], None]) -> None:
        """Set a tensor's shape, type and allocation as the plan has them; a computed constant calls `compute` when it is read."""
        if (tensor.shape, int(tensor.type), tensor.allocation) != (shape, type, allocation):
            self._before.append((tensor, tensor.shape, tensor.type, tensor.allocation))
            tensor.shape, tensor.allocation = shape, allocation
            tensor.type = TensorType(type)
            tensor.dtype = numpy_dtype(tensor.type)
        if allocation is _COMPUTED:

            def load() -> NDArray[Any]:
                tensor.set_loader(None)
                compute()
                return tensor.data

            tensor.set_loader(load)

    def undo(self, subgraph: Subgraph) -> None:
        """Remove the plan's shapes, types and memory from the subgraph's tensors, which is no longer prepared then.

        Tensors that had memory get their own, as after any other preparation: values may be set before the next one succeeds.
        """
        subgraph.absorption.end()
        subgraph.restore_order()
        for tensor in subgraph.tensors:
            if tensor.allocation is not _CONSTANT:
                had = tensor.has_data and not tensor.is_constant
                tensor.set_memory(np.zeros(tensor.data.shape, tensor.dtype) if had else None)
                tensor.set_loader(None)
        for tensor, shape, type, allocation in self._before:
            tensor.shape, tensor.allocation = shape, allocation
            tensor.type, tensor.dtype = type, numpy_dtype(type)
        self._before.clear()
