"""The executor of one subgraph: `allocate` prepares, folds, plans and binds, `invoke` runs the thunks, segment by segment.

`ops.node` defines thunk, `runtime.subgraph`, whose data it works on, segment. What prepares and binds is imported when a subgraph is first
allocated: one that runs a stored plan never is.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from oplet.errors import StateError
from oplet.ops.node import Node, Thunk
from oplet.ops.serving.joining import StalePlanError
from oplet.ops.tensor import Allocation, Array, Shape, Tensor
from oplet.runtime.execution.binding import run_joined, run_segment
from oplet.runtime.execution.checks import checked_shape
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.execution.session import Session
from oplet.runtime.memory.values import free_handles, with_readable_inputs
from oplet.runtime.subgraph import Segment, Subgraph
from oplet.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Executor"]

_DYNAMIC = Allocation.DYNAMIC


class Executor:
    """Runs one subgraph; delegates' kernels are nodes like any others to it.

    Attributes:
        session: the state that the subgraphs of the interpreter share.
        subgraph: the subgraph.
        context: the context of its kernels.
        exchanged: the runtime's own arrays of tensors that use the application's memory now (`execution.binding`).
    """

    def __init__(self, session: Session, subgraph: Subgraph) -> None:
        self.session = session
        self.subgraph = subgraph
        self.context = KernelContext(session, subgraph)
        self.exchanged: dict[Tensor, Array] = {}
        self._arena_there: NDArray[np.uint8] | None = None

    # Allocate ------------------------------------------------------------------------------------------------

    def allocate(self) -> None:
        """Prepare every node whose shapes are known, plan the arena, and bind the nodes; nothing happens if the subgraph is ready.

        Raises:
            PrepareError: a kernel refuses its node.
            LimitError: there is not enough memory.
        """
        subgraph = self.subgraph
        if subgraph.ready:
            return
        from oplet.runtime.execution.preparation import allocate_first

        self.session.enter(subgraph)
        try:
            subgraph.generation += 1
            given = self._input_values()
            self.exchanged.clear()
            stored, subgraph.stored = subgraph.stored, None
            if stored is not None:
                stored.undo(subgraph)
            subgraph.segments.clear()
            while not allocate_first(self.context, self._arena_there):
                pass  # a node absorbs others no more
            for tensor, value in given:  # an input that keeps its shape keeps its value
                if tensor.data is not value and tensor.data.shape == value.shape and tensor.dtype == value.dtype:
                    np.copyto(tensor.data, value)
        finally:
            self.session.leave()
        subgraph.ready = True

    def rebind(self, *, constants: bool = False) -> None:
        """Replace the functions of a plan from disk by the nodes' own, in the same memory and with the values that the caller may read; with
        `constants` also if the subgraph is not ready.
        """
        subgraph = self.subgraph
        if subgraph.stored is None or not (subgraph.ready or constants):
            return
        if not subgraph.ready:
            self.allocate()
            self.release()
            return
        read = map(subgraph.tensors.__getitem__, subgraph.read)
        kept = [(tensor, tensor.data.copy()) for tensor in read if tensor.has_data and not tensor.is_constant]
        self._arena_there = subgraph.segments[0].arena
        subgraph.invalidate()
        try:
            self.allocate()
        finally:
            self._arena_there = None
        for tensor, value in kept:
            np.copyto(tensor.data, value)

    def _input_values(self) -> list[tuple[Tensor, Array]]:
        inputs = (self.subgraph.tensors[index] for index in self.subgraph.inputs)
        return [(tensor, tensor.data) for tensor in inputs if tensor.has_data and not tensor.is_constant]

    # Invoke --------------------------------------------------------------------------------------------------

    def invoke(self) -> None:
        """Run the nodes of the subgraph's execution plan.

        Raises:
            StateError: `allocate` was not called since the last resize.
            InvokeError: a kernel failed; the interpreter stays usable.
        """
        subgraph, session = self.subgraph, self.session
        self.rebind()
        if not subgraph.ready:
            raise StateError("Invoke called on model that is not ready. Call allocate_tensors() first.")
        session.enter(subgraph)
        try:
            self._run_plan(subgraph)
        finally:
            session.leave()

    def invoke_joined(self) -> bool:
        """Run, with the fewest Python calls, a subgraph whose nodes were all fused into one compiled step.

        Returns:
            False, without effect, for other subgraphs, or if the run has to be repeated by `invoke`.
        """
        subgraph, session = self.subgraph, self.session
        if not subgraph.ready or subgraph.delegated.reports or not subgraph.is_joined:
            return False
        segment = subgraph.segments[0]
        if session.profiler is not None or session.meter.has_deadline or not session.enter_alone(subgraph):
            return False
        try:
            run_joined(self.context, segment)
            return True
        except StalePlanError as error:
            if error.node is not None:
                self._begin_again(error.node)
            return False  # `invoke` rebinds a plan from disk
        finally:
            session.leave_alone()

    def _run_plan(self, subgraph: Subgraph) -> None:
        segments, end = subgraph.segments, len(subgraph.execution_plan)
        number = 0
        while number < len(segments):
            segment = segments[number]
            try:
                run_segment(self.context, segment)
            except StalePlanError as error:
                if not self.session.is_outermost(subgraph):
                    subgraph.set_apart(error.node)
                    raise
                segment = self._begin_again(error.node)
                number = 0
            number += 1
            if segment.end < end and (number == len(segments) or any(tensor.resized for tensor in segment.dynamic)):
                from oplet.runtime.execution.preparation import allocate_segment

                del segments[number:]
                allocate_segment(self.context, segment.end, first=False)
                for tensor in segment.dynamic:
                    tensor.resized = False
        if self.session.release_dynamic_tensors:
            self._release_dynamic()

    def _begin_again(self, apart: Node | None) -> Segment:
        """Replace the segments (prepared parts of the plan) by an empty one that keeps the inputs' memory and values; return it.

        A node in `apart` is fused with no others from then on.

        All nodes are prepared again, as those that call a subgraph may have been prepared for other shapes of its outputs.
        """
        subgraph = self.subgraph
        subgraph.absorption.set_apart(apart)
        subgraph.absorption.end()
        subgraph.restore_order()
        kept, begin = subgraph.segments[0], Segment(0, [], [])
        begin.arena, begin.requests, begin.offsets = kept.arena, kept.requests, kept.offsets
        subgraph.segments[:] = [begin]
        return begin

    def bind(self) -> Thunk:
        """Return a function that runs the subgraph for a calling node, valid while `Subgraph.generation` is unchanged."""
        return self.invoke if self.subgraph.is_dynamic else partial(self._run_called, self.subgraph.segments[0])

    def _run_called(self, segment: Segment) -> None:
        self.session.count_call()
        try:
            run_segment(self.context, segment)
        except StalePlanError as error:
            self.subgraph.set_apart(error.node)
            raise

    def guard_readers(self, tensor: Tensor) -> None:
        """Have the nodes that read a tensor copy its value from a delegate's buffer first, where it is newer there."""
        self.rebind()
        for segment in self.subgraph.segments:
            for position, node in enumerate(segment.nodes):
                if tensor in node.inputs:
                    segment.thunks[position] = with_readable_inputs(self.context, node, segment.thunks[position])
                    segment.unjoin()

    # Shapes --------------------------------------------------------------------------------------------------

    def changes_input(self, index: int, shape: Shape, type: TensorType | None = None) -> bool:
        """Return whether an input's shape or type would change.

        Raises:
            EnsureError: no tensor can have that shape.
            StateError: the input is a constant.
        """
        tensor = self.subgraph.tensors[index]
        wanted = checked_shape(tensor, shape)
        if tensor.is_constant:
            raise StateError(f"Attempting to resize a fixed-size tensor. {tensor} is a constant.")
        return wanted != tensor.shape or (type is not None and type is not tensor.type)

    def resize_input(self, index: int, shape: Shape, type: TensorType | None = None) -> None:
        """Give an input another shape, or also another type; `allocate` is needed before the next `invoke`."""
        if self.changes_input(index, shape, type):
            tensor = self.subgraph.tensors[index]
            if type is not None:
                self.context.set_type(tensor, type)
            tensor.shape = checked_shape(tensor, shape)
            tensor.set_memory(None)
            self.subgraph.invalidate()

    # State and memory ----------------------------------------------------------------------------------------

    def restart(self) -> None:
        """Reset variables and the state of kernels to what they are after `allocate`."""
        self.context.restarts += 1
        self.subgraph.reset_variables()

    def release(self) -> None:
        """Release the memory of all tensors whose values do not outlive an invoke; `allocate` is needed to run again."""
        subgraph, memory = self.subgraph, self.session.memory
        subgraph.invalidate()
        self.exchanged.clear()
        subgraph.segments.clear()
        for node in subgraph.nodes:
            memory.release(node)
        for tensor in subgraph.tensors:
            if tensor.allocation in (Allocation.ARENA, _DYNAMIC):
                tensor.set_memory(None)
                memory.release(tensor)

    def _release_dynamic(self) -> None:
        """Release the memory of intermediate tensors of dynamic shape, and the segments that are bound to it."""
        segments = self.subgraph.segments
        bound = [tensor for segment in segments for tensor in segment.dynamic]
        bound += [tensor for segment in segments[1:] for tensor, _ in segment.requests]
        for tensor in bound:
            if tensor.index not in self.subgraph.read:
                tensor.set_memory(None)
                self.session.memory.release(tensor)
        del segments[1:]

    def close(self) -> None:
        """Free every node; nothing can run afterwards. The first error is raised when all are freed."""
        subgraph = self.subgraph
        self.release()
        try:
            try:
                free_handles(self.context, subgraph.tensors)
            finally:
                self.context.free(list(subgraph.initialized))
        finally:
            for node in subgraph.nodes:
                node.release()
            subgraph.folded = {}
            for tensor in subgraph.tensors:  # now, in place of whenever Python collects cycles
                if tensor.allocation is not Allocation.CONSTANT:
                    tensor.set_memory(None)
