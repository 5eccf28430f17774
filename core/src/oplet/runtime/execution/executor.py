"""The executor of one subgraph: `allocate` prepares, folds, plans and binds, `invoke` runs the thunks, segment by segment.

`ops.node` defines thunk, `runtime.subgraph`, whose data it works on, segment.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from oplet.errors import PrepareError, StateError
from oplet.model.reachability import entry_subgraphs
from oplet.ops.context import Node
from oplet.ops.node import Thunk
from oplet.ops.serving.absorbing import UnforeseenShapeError
from oplet.ops.serving.joining import RunAnew
from oplet.ops.tensor import Allocation, Array, Shape, Tensor
from oplet.runtime.execution.binding import bind_segment, improve
from oplet.runtime.execution.checks import checked_shape
from oplet.runtime.execution.folding import fold, is_folded
from oplet.runtime.execution.initialization import free
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.execution.preparation import prepare_node, prepare_or_defer
from oplet.runtime.execution.segment_run import run_joined, run_segment
from oplet.runtime.execution.session import Session
from oplet.runtime.memory.allocation import SegmentAllocation, allocate_own
from oplet.runtime.memory.buffer_handles import free_handles, with_readable_inputs
from oplet.runtime.memory.remembered import free_origin
from oplet.runtime.subgraph import Segment, Subgraph
from oplet.schema.enums import BuiltinOperator, TensorType

__all__ = ["Executor"]

_DYNAMIC = Allocation.DYNAMIC
#: Operators that do nothing but call subgraphs, whose nodes are looked at on their own.
_CALLS = (BuiltinOperator.WHILE, BuiltinOperator.IF)


class Executor:
    """Runs one subgraph; delegates' kernels are nodes like any others to it.

    Attributes:
        session: the state that the subgraphs of the interpreter share.
        subgraph: the subgraph.
        context: the context of its kernels.
    """

    def __init__(self, session: Session, subgraph: Subgraph) -> None:
        self.session = session
        self.subgraph = subgraph
        self.context = KernelContext(session, subgraph)
        self._preparing: Node | None = None
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
        self.session.enter(subgraph)
        try:
            subgraph.generation += 1
            given = self._input_values()
            if subgraph.stored is not None:
                stored, subgraph.stored = subgraph.stored, None
                stored.undo(subgraph)
            subgraph.segments.clear()
            free_origin(subgraph)
            while not self._allocate_first():
                pass  # a node absorbs others no more
            for tensor, value in given:  # an input that keeps its shape keeps its value
                if tensor.data is not value and tensor.data.shape == value.shape and tensor.dtype == value.dtype:
                    np.copyto(tensor.data, value)
        finally:
            self.session.leave()
        subgraph.ready = True

    def rebind(self) -> None:
        """Prepare and bind the nodes of a subgraph that runs a stored plan, in the same memory; nothing happens to others."""
        subgraph = self.subgraph
        if subgraph.stored is None or not subgraph.ready:
            return
        kept = [(tensor, tensor.data.copy()) for index in subgraph.read if (tensor := subgraph.tensors[index]).has_data]
        self._arena_there = subgraph.segments[0].arena
        subgraph.invalidate()
        try:
            self.allocate()
        finally:
            self._arena_there = None
        for tensor, value in kept:
            if not tensor.is_constant:
                np.copyto(tensor.data, value)

    def _allocate_first(self) -> bool:
        """Allocate the first segment; False if a node was refused and one or all of those that absorb others are to run alone from now on."""
        subgraph, session = self.subgraph, self.session
        if session.checks or any(session.kept):
            subgraph.part_absorbed()
        else:
            subgraph.absorb(self._can_restart)
        self.context.readers = None
        subgraph.find_last_uses()
        try:
            self._allocate_segment(0)
        except PrepareError:
            if not subgraph.absorbing:
                raise
            refused = self._preparing
            # The first that refuses is set apart. Where another one does, too, or a node that absorbs none, all are.
            apart = [refused] if refused in subgraph.absorbing and not subgraph.apart else subgraph.absorbing
            subgraph.apart.update(node.index for node in apart)
            return False
        return True

    def _can_restart(self) -> bool:
        """Whether a run may be given up and begun again: nothing but the values of tensors is changed by it."""
        session = self.session
        if len(entry_subgraphs(session.model.lazy_root)) > 1:
            return False
        for subgraph in session.subgraphs:
            if subgraph.variables:
                return False
            for index in subgraph.execution_plan:
                node = subgraph.nodes[index]
                if node.op not in _CALLS and (node.registration is None or not node.registration.pure):
                    return False
        return True

    def _allocate_segment(self, start: int, *, first: bool = True) -> None:
        """Prepare, fold, plan and bind from position `start` of the plan to the first node with a dynamic output.

        Args:
            start: the position.
            first: whether the segment that begins at position 0 is the first one, which has the inputs' memory.
        """
        subgraph, context, session = self.subgraph, self.context, self.session
        context.offered.clear()
        if start or not first:  # nodes that were refused in `allocate` are not asked again here
            subgraph.part_absorbed(start)
        allocation = SegmentAllocation(subgraph, session.memory, preserve_all=session.preserve_all_tensors)
        if start == 0 and first:
            for index in subgraph.inputs:
                allocation.request_input(subgraph.tensors[index])
            for tensor in subgraph.variables:
                allocate_own(session.memory, tensor)
            self.reset_variables()
        segment = self._prepare_segment(start, allocation, late=start > 0 or not first)
        allocation.allocate(segment, context.offered, session.subgraphs, context.num_threads, self._arena_there)
        context.offered.clear()
        bind_segment(context, segment, start)
        subgraph.segments.append(segment)

    def _prepare_segment(self, start: int, allocation: SegmentAllocation, *, late: bool) -> Segment:
        """Prepare the segment's nodes, fold those with constant inputs, and request memory for what the others write.

        Args:
            start: its position in the plan.
            allocation: takes the requests.
            late: whether this is in `invoke`, where every node has to be prepared.
        """
        subgraph, context, session = self.subgraph, self.context, self.session
        nodes: list[Node] = []
        dynamic: list[Tensor] = []
        absorbed = {other for node in subgraph.absorbing for other in node.absorbed}
        position = start
        for position in range(start, len(subgraph.execution_plan)):
            node = subgraph.nodes[subgraph.execution_plan[position]]
            if node in absorbed:
                for tensor in node.outputs:
                    session.memory.release(tensor)
                    tensor.set_memory(None)
                    tensor.allocation = Allocation.ARENA
                continue
            if not node.absorbed and is_folded(subgraph, node):
                continue
            session.meter.check()
            self._preparing = node
            if late:
                prepare_node(context, node)
            elif not prepare_or_defer(context, node):
                position -= 1
                break
            folded = not node.absorbed and fold(context, node)
            if not start:
                context.let_go(node, position)
            if folded:
                continue
            nodes.append(node)
            allocation.request_node(node, position)
            dynamic = [tensor for tensor in node.outputs if tensor.allocation is _DYNAMIC]
            if dynamic:
                break
        return Segment(position + 1 if subgraph.execution_plan else 0, nodes, dynamic)

    def _input_values(self) -> list[tuple[Tensor, Array]]:
        inputs = (self.subgraph.tensors[index] for index in self.subgraph.inputs)
        return [(tensor, tensor.data) for tensor in inputs if tensor.has_data and not tensor.is_constant]

    # Invoke --------------------------------------------------------------------------------------------------

    def invoke(self) -> None:
        """Run the plan.

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
        """`invoke`, with the fewest calls, of a plan whose nodes have become one step of compiled kernels.

        Returns:
            False, without effect, of other plans, and where the run has to begin again: call `invoke`.
        """
        subgraph, session = self.subgraph, self.session
        if not subgraph.ready or not subgraph.is_joined:
            return False
        segment = subgraph.segments[0]
        if segment.can_improve:
            return False
        if session.profiler is not None or session.meter.has_deadline or not session.enter_alone(subgraph):
            return False
        begins_again = False
        try:
            run_joined(self.context, segment)
        except RunAnew:
            begins_again = True  # by `invoke`, which rebinds
        except UnforeseenShapeError as error:
            self._begin_again(error)
            begins_again = True
        finally:
            session.leave_alone()
        return not begins_again

    def _run_plan(self, subgraph: Subgraph) -> None:
        segments, end = subgraph.segments, len(subgraph.execution_plan)
        number = 0
        while number < len(segments):
            segment = segments[number]
            try:
                run_segment(self.context, segment)
            except UnforeseenShapeError as error:
                if not self.session.is_outermost(subgraph):
                    subgraph.set_apart(error.node)
                    subgraph.invalidate()
                    raise
                segment = self._begin_again(error)
                number = 0
            number += 1
            if segment.end < end and (number == len(segments) or any(tensor.resized for tensor in segment.dynamic)):
                del segments[number:]
                self._allocate_segment(segment.end, first=False)
                for tensor in segment.dynamic:
                    tensor.resized = False
        if self.session.release_dynamic_tensors:
            self._release_dynamic()

    def _begin_again(self, error: UnforeseenShapeError) -> Segment:
        """Replace the segments by one without nodes, which has the memory of the inputs with their values, and return it.

        All is prepared again: nodes that call a subgraph may know another shape of its outputs than they will have.
        """
        subgraph = self.subgraph
        subgraph.set_apart(error.node)
        kept, begin = subgraph.segments[0], Segment(0, [], [])
        begin.arena, begin.requests, begin.offsets = kept.arena, kept.requests, kept.offsets
        subgraph.segments[:] = [begin]
        return begin

    def bind(self) -> Thunk:
        """A thunk that runs the subgraph for a node that calls it, valid for this generation; without dynamic tensors a plain loop."""
        return self.invoke if self.subgraph.is_dynamic else partial(self._run_called, self.subgraph.segments[0])

    def _run_called(self, segment: Segment) -> None:
        self.session.count_call()
        try:
            run_segment(self.context, segment)
        except UnforeseenShapeError as error:
            self.subgraph.set_apart(error.node)
            self.subgraph.invalidate()
            raise

    def guard_readers(self, tensor: Tensor) -> None:
        """Have the nodes that read a tensor copy its value from a delegate's buffer first, where it is newer there."""
        self.rebind()
        for segment in self.subgraph.segments:
            for position, node in enumerate(segment.nodes):
                if tensor in node.inputs:
                    segment.thunks[position] = with_readable_inputs(self.context, node, segment.thunks[position])
                    segment.unjoin()

    def improve(self, told: Callable[[], None]) -> None:
        """Wait until the nodes have their best thunks; `told` is called after each that was waited for."""
        for segment in self.subgraph.segments:
            improve(self.context, segment, True, told)

    # Shapes --------------------------------------------------------------------------------------------------

    def changes_input(self, index: int, shape: Shape, type: TensorType | None = None) -> bool:
        """Whether an input's shape or type would change.

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

    def reset_variables(self) -> None:
        """Set every variable tensor to zero (int8 ones to their zero point, as LiteRT does), persistent temporaries with `is_variable` too."""
        kept = (tensor for node in self.subgraph.nodes for tensor in node.temporaries)
        for tensor in chain(self.subgraph.variables, kept):
            if tensor.is_variable and tensor.has_data and not tensor.is_constant:
                tensor.data.fill(tensor.zero_point if tensor.type is TensorType.INT8 else 0)

    def restart(self) -> None:
        """Reset variables and the state of kernels to what they are after `allocate`."""
        self.context.restarts += 1
        self.reset_variables()

    def release(self) -> None:
        """Release the memory of all tensors whose values do not outlive an invoke; `allocate` is needed to run again."""
        subgraph, memory = self.subgraph, self.session.memory
        subgraph.invalidate()
        subgraph.segments.clear()
        free_origin(subgraph)
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
                free(self.context, list(subgraph.initialized))
        finally:
            for node in subgraph.nodes:
                node.release()
            subgraph.folded = {}
            for tensor in subgraph.tensors:  # now, in place of whenever Python collects cycles
                if tensor.allocation is not Allocation.CONSTANT:
                    tensor.set_memory(None)
