"""Stored plans: a subgraph that was prepared and bound in another process, which runs here without its kernels.

A restored subgraph has its tensors' shapes and memory, and one thunk for all of its nodes. Only `invoke` runs that. Whatever asks for more,
such as a node's registration, a resize or a delegate, has the subgraph prepared as always, in the same memory (`Executor.rebind`).
Source of what is stored: `runtime.memory.remembered`, which does the same within a process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.ops.ensure import checkpoint
from oplet.ops.serving.joining import storable
from oplet.ops.tensor import Allocation, Tensor, numpy_dtype
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
)
from oplet.runtime.memory.remembered import is_plain
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
        settings: a text of everything that the plan depends on besides the model (`memory.remembered`).
    """

    def __init__(self, model: Model, manager: PluginManager, settings: str) -> None:
        self._model = model
        self._manager = manager
        self._name: PlanName | None = None
        self._found: StoredPlan | None = None
        if len(model.data) <= MOST_BYTES:
            self._name = PlanName(settings, np.frombuffer(model.data, np.uint8))

    def find(self) -> bool:
        """Look for the model's plan, stored by another process; return whether there is one, which is then kept for `adopt`."""
        found = None if self._name is None else find_plan(self._name)
        self._model.release_pages()
        if found is not None and are_unchanged(found.facts["sources"], found.facts["packages"]):
            self._found = StoredPlan(found, self._model)
        return self._found is not None

    @property
    def is_open(self) -> bool:
        """Whether this interpreter may still store the model's plan (its prepared state) on disk."""
        return self._name is not None

    def forget(self) -> None:
        """Stop using and storing the model's plan (its prepared state on disk) for this interpreter."""
        self._name = self._found = None

    def adopt(self, subgraph: Subgraph) -> bool:
        """Let the first subgraph, neither prepared nor resized, run by the plan that is on disk; return whether it does."""
        if self._found is None:
            self.find()
        plan, self._found = self._found, None
        if plan is None or not plan.adopt(subgraph):
            return False
        subgraph.stored = plan
        self._name = None
        return True

    def store(self, subgraphs: Sequence[Subgraph], resources: Collection[Any]) -> None:
        """Store the plan of the model's only subgraph, if the model was opened before.

        Args:
            subgraphs: the model's subgraphs.
            resources: the keys of `Session.resources`.
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
        facts = _facts(subgraph, name.model) if stamps and all(packages.values()) else None
        if facts is not None:
            told, memory = facts
            keep_plan(name, {"sources": stamps, "packages": packages, **told}, memory)


def _facts(subgraph: Subgraph, model: NDArray[np.uint8]) -> tuple[dict[str, Any], bytes] | None:
    """Return a prepared subgraph as plain data, and the memory that its thunks use; None if the thunks cannot be stored.

    Args:
        subgraph: the subgraph.
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
        "tensors": [
            (tensor.index, tensor.shape, int(tensor.type), _ALLOCATIONS.index(tensor.allocation))
            for tensor in subgraph.tensors
            if tensor.allocation is not _CONSTANT
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

    Attributes:
        nbytes: the bytes that its thunks use besides the arena.
    """

    def __init__(self, file: PlanFile, model: Model) -> None:
        self._file = file
        self._model = model
        self._before: list[tuple[Tensor, Any, Any, Any]] = []
        self._compute: Callable[[], None]
        self.nbytes: int = file.memory.nbytes

    def attach(self, compute: Callable[[], None]) -> None:
        """Set what prepares the subgraph's own nodes, in the same memory, when a computed constant is read."""
        self._compute = compute

    def adopt(self, subgraph: Subgraph) -> bool:
        """Let a subgraph, neither prepared nor resized, run by the plan; return False if that is impossible on this machine."""
        facts, memory = self._file
        arena = aligned_bytes(facts["arena"], zeroed=False)
        module, _, name = facts["restores"].partition(":")
        try:
            steps = getattr(import_module(module), name)(
                facts["thunks"], memory, arena, np.frombuffer(self._model.data, np.uint8)
            )
        except ImportError:
            return False
        if steps is None:
            return False
        subgraph.reorder(list(facts["execution_plan"]))
        subgraph.last_use = dict(facts["last_use"])
        for index, absorbed, main in facts["absorbing"]:
            node = subgraph.nodes[index]
            node.absorbed = tuple(subgraph.nodes[other] for other in absorbed)
            node.main = None if main < 0 else subgraph.nodes[main]
            subgraph.absorption.nodes.append(node)
        tensors = subgraph.tensors
        for index, shape, type, number in facts["tensors"]:
            self._change(tensors[index], shape, type, _ALLOCATIONS[number])
        segment = Segment(len(subgraph.execution_plan), [subgraph.nodes[index] for index in facts["nodes"]], [])
        requests = []
        for index, nbytes, first, last, offset in facts["requests"]:
            tensor = tensors[index] if index >= 0 else _TEMPORARY
            requests.append((tensor, Lifetime(nbytes, first, last)))
            if index >= 0:
                tensor.set_memory(np.ndarray(tensor.shape, tensor.dtype, arena, offset))
        for index, offset in facts["outside"]:
            tensor = tensors[index]
            tensor.set_memory(np.ndarray(tensor.shape, tensor.dtype, memory, offset))
        segment.requests, segment.offsets, segment.arena = requests, [request[-1] for request in facts["requests"]], arena
        segment.steps, segment.seconds, segment.is_one_step = (steps, [0] * len(steps)), [], True
        subgraph.segments = [segment]
        return True

    def _change(self, tensor: Tensor, shape: Any, type: int, allocation: Allocation) -> None:
        """Set a tensor's shape, type and allocation as the plan has them; a computed constant is computed when it is read."""
        if (tensor.shape, int(tensor.type), tensor.allocation) != (shape, type, allocation):
            self._before.append((tensor, tensor.shape, tensor.type, tensor.allocation))
            tensor.shape, tensor.allocation = shape, allocation
            tensor.type = TensorType(type)
            tensor.dtype = numpy_dtype(tensor.type)
        if allocation is _COMPUTED:

            def load() -> NDArray[Any]:
                tensor.set_loader(None)
                self._compute()
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
