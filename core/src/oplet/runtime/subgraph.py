"""One subgraph at run time: prepare, plan memory, bind, invoke.

`allocate` prepares the nodes in plan order, gives the tensors their places in the arena, and binds every node to a thunk;
`invoke` calls the thunks. A node whose output's shape depends on data ends a segment: what follows is prepared, planned and
bound when that shape is known, and again only if it changes.
"""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from oplet.errors import (
    CancelledError,
    DeadlineError,
    DelegateApplicationError,
    InvokeError,
    OpletError,
    PluginError,
    PrepareError,
    StateError,
    failures,
)
from oplet.model.reachability import read_outside
from oplet.ops.context import Declined, Node
from oplet.ops.tensor import Allocation, Shape, Tensor
from oplet.runtime.describe.failures import explained
from oplet.runtime.describe.profiler import Event
from oplet.runtime.execution.checks import check_prepared, checked_shape
from oplet.runtime.execution.declining import hand_on
from oplet.runtime.execution.folding import Folding
from oplet.runtime.execution.input_checks import check_inputs
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.execution.session import Session
from oplet.runtime.execution.subgraph_callee import SubgraphCallee
from oplet.runtime.execution.write_check import watched
from oplet.runtime.loading import load_nodes, load_tensors
from oplet.runtime.memory.allocation import Placing, provide
from oplet.runtime.memory.arrays import Segment
from oplet.runtime.memory.buffer_handles import ensure_readable, free_handles, guarded
from oplet.schema import tables
from oplet.schema.enums import TensorType

if TYPE_CHECKING:
    from oplet.runtime.delegation.delegation import Delegation
    from oplet.runtime.limits import Memory

__all__ = ["Subgraph"]

Thunk = Callable[[], None]

_ARENA, _COMPUTED, _DYNAMIC = Allocation.ARENA, Allocation.COMPUTED, Allocation.DYNAMIC


class Subgraph(KernelContext):
    """The tensors and nodes of one subgraph, and the state of running them.

    Attributes:
        index: its number in the model.
        name: its name in the model.
        nodes: its nodes; delegates' kernels are appended.
        execution_plan: indices of the nodes to run, in order.
        inputs: tensor indices that the caller feeds.
        outputs: tensor indices that are the subgraph's results.
        read: tensor indices that the caller reads: the outputs, and what signatures give besides them.
        generation: a number that changes whenever the subgraph is resized or prepared: arrays seen before may be stale.
        as_callee: the subgraph as nodes of other subgraphs see it.
        delegation: the delegates that were applied to it, None as long as there were none.
        delegation_skippable: whether a delegate has taken it into a kernel of its caller, so that none is asked about it.
        immutable: whether a delegate that knows static shapes only has claimed nodes; a resize undoes it.
    """

    def __init__(self, session: Session, index: int, table: tables.SubGraph) -> None:
        super().__init__(session, index, load_tensors(session.model, table, session.memory))
        self.name = table.name or ""
        self._variables = [tensor for tensor in self._tensors if tensor.is_variable]
        self.nodes = load_nodes(session.model, table, self._tensors)
        self.execution_plan = list(range(len(self.nodes)))
        self.inputs: list[int] = [] if table.inputs is None else table.inputs.tolist()
        self.outputs: list[int] = [] if table.outputs is None else table.outputs.tolist()
        self.read = read_outside(session.model.outline, index)
        self.as_callee = SubgraphCallee(self)
        self.delegation: Delegation | None = None
        self.delegation_skippable = False
        self.ready = False
        self.generation = 0
        self._segments: list[Segment] = []
        self._initialized: dict[Node, None] = {}  # in the order of their init
        self._last_use: dict[int, int] = {}
        self.folding = Folding(self)

    # Life cycle ----------------------------------------------------------------------------------------------

    def initialize(self, nodes: Sequence[Node]) -> None:
        """Call `init` of each node's registration; what was initialized is freed by `close`, also after a failure."""
        for node in nodes:
            registration = node.registration
            if registration is None or registration.init is None:
                continue
            buffer = node.prepared if node.prepared is not None else node.raw_options or node.custom_options
            try:
                node.user_data = registration.init(self, buffer)
            except failures() as error:
                raise self.explained(PrepareError, node, error, "failed to initialize") from error
            self._initialized[node] = None

    def is_initialized(self, node: Node) -> bool:
        """Whether `init` of what serves the node was called, and `free` was not since."""
        return node in self._initialized

    def close(self) -> None:
        """Free every node; nothing can run afterwards. The first error is raised after all were freed."""
        self.release()
        try:
            try:
                free_handles(self, self._tensors)
            finally:
                self.free(list(self._initialized))
        finally:
            for node in self.nodes:
                node.forget()
            self.folding.clear()
            for tensor in self._tensors:  # now, and not when Python happens to look for cycles
                if tensor.allocation is not Allocation.CONSTANT:
                    tensor.provide(None)

    def dissolve(self) -> None:
        """Let go of what refers back to it, so that it goes with its interpreter and not when Python looks for circles."""
        del self.as_callee, self.folding
        self.session.subgraphs = []

    def release(self) -> None:
        """Drop the memory of everything that does not outlive an invoke; `allocate` is needed to run again."""
        self.invalidate()
        self._segments.clear()
        for node in self.nodes:
            self.session.memory.give_back(node)
        for tensor in self._tensors:
            if tensor.allocation in (Allocation.ARENA, Allocation.DYNAMIC):
                tensor.provide(None)
                self.session.memory.give_back(tensor)

    def free(self, nodes: Sequence[Node]) -> None:
        """Call `free` for those of the nodes that were initialized, once, in node order."""
        failure: OpletError | None = None
        for node in sorted(nodes, key=lambda node: node.index):
            if node not in self._initialized:
                continue
            del self._initialized[node]
            initialized = [(node.registration, node.user_data)] if node.providers is None else node.providers.initialized()
            for registration, user_data in initialized:
                if registration is not None and registration.init is not None and registration.free is not None:
                    try:
                        registration.free(self, user_data)
                    except failures() as error:
                        failure = failure or self.explained(PrepareError, node, error, "failed to free")
            node.user_data = None
        if failure is not None:
            raise failure

    def resize_input(self, index: int, shape: Shape, type: TensorType | None = None) -> None:
        """Give an input another shape, or also another type; it takes an `allocate` before the next `invoke`."""
        tensor = self._tensors[index]
        wanted = checked_shape(tensor, shape)
        if tensor.is_constant:
            raise StateError(f"Attempting to resize a fixed-size tensor. {tensor} is a constant.")
        if wanted != tensor.shape or (type is not None and type is not tensor.type):
            if self.delegation is not None and (self.immutable or self.delegation.gave_back):
                self.delegation.undo()
            if type is not None:
                self.set_type(tensor, type)
            tensor.shape = wanted
            tensor.provide(None)
            self.invalidate()

    def invalidate(self) -> None:
        """Say that what was prepared does not fit any more: it takes an `allocate` before the next `invoke`."""
        self.ready = False
        self.generation += 1

    def allocate(self) -> None:
        """Prepare every node whose shapes are known, plan the arena, and bind the nodes.

        Raises:
            PrepareError: a kernel refused its node.
            LimitError: there is not enough memory.
        """
        if not self.ready and self.delegation is not None:
            self.delegation.redo()
        if self.ready:
            return
        try:
            self._allocate()
        except DelegateApplicationError:
            if self.delegation is None:
                raise
            self.delegation.claim_again()
            if not self.ready:
                self._allocate()

    def _allocate(self) -> None:
        if self.delegation is not None and self.delegation.needs_shapes:
            self.propagate_shapes(self.delegation.original_plan)
        self.session.enter(self)
        try:
            self.generation += 1
            self._segments.clear()
            self._find_last_uses()
            given = [
                (tensor, tensor.data) for i in self.inputs if (tensor := self._tensors[i]).has_data and not tensor.is_constant
            ]
            self._extend(0)
            for tensor, value in given:  # an input that keeps its shape keeps its value
                if tensor.data is not value and tensor.data.shape == value.shape and tensor.dtype == value.dtype:
                    np.copyto(tensor.data, value)
        finally:
            self.session.leave()
        self.ready = True

    @property
    def is_dynamic(self) -> bool:
        """Whether the shape of some tensor is known only while invoking. Valid once it is allocated."""
        return self._segments[0].end < len(self.execution_plan) or bool(self._segments[0].dynamic)

    @property
    def arena_bytes(self) -> int:
        """The bytes of the blocks that tensors share, of what is prepared so far."""
        return sum(segment.block.nbytes for segment in self._segments if segment.block is not None)

    def is_read(self, tensor: Tensor) -> bool:
        """Whether a node of the plan or the caller reads the tensor. Valid once it is allocated."""
        return tensor.index in self._last_use

    def reset_variables(self) -> None:
        """Set every variable tensor to zero (to its zero point if it is quantized, as LiteRT does).

        A kernel's persistent temporaries are variables too where it marked them so.
        """
        kept = (tensor for node in self.nodes for tensor in node.temporaries)
        for tensor in chain(self._variables, kept):
            if tensor.is_variable and tensor.has_data and not tensor.is_constant:
                tensor.data.fill(tensor.zero_point if tensor.type is TensorType.INT8 else 0)

    def invoke(self) -> None:
        """Run the plan.

        Raises:
            StateError: `allocate` was not called since the last resize.
            InvokeError: a kernel failed; the interpreter stays usable.
        """
        if not self.ready:
            raise StateError("Invoke called on model that is not ready. Call allocate_tensors() first.")
        self.session.enter(self)
        try:
            self._run_plan()
        finally:
            self.session.leave()

    def bound(self) -> Thunk:
        """What runs the subgraph; valid for this generation. Without dynamic tensors it is little more than a loop."""
        run = self.invoke if self.is_dynamic else partial(self._run_called, self._segments[0])
        return run if self.delegation is None else partial(self._run_readable, run)

    def _run_readable(self, run: Thunk) -> None:
        """Run, and have a delegate's buffers copied to the outputs, which the caller reads."""
        run()
        for index in self.read:
            ensure_readable(self, self._tensors[index])

    def _run_plan(self) -> None:
        segments = self._segments
        number = 0
        while number < len(segments):
            segment = segments[number]
            self._run(segment)
            number += 1
            if segment.end < len(self.execution_plan) and (
                number == len(segments) or any(tensor.resized for tensor in segment.dynamic)
            ):
                del segments[number:]
                self._extend(segment.end)
                for tensor in segment.dynamic:
                    tensor.resized = False
        if self.session.release_dynamic_tensors:
            self._release_dynamic()

    def _release_dynamic(self) -> None:
        """Drop the intermediate tensors with shapes of this invoke, and what was bound to their memory."""
        bound = [tensor for segment in self._segments for tensor in segment.dynamic]
        bound += [tensor for segment in self._segments[1:] for tensor, _ in segment.requests]
        for tensor in bound:
            if tensor.index not in self.read:
                tensor.provide(None)
                self.session.memory.give_back(tensor)
        del self._segments[1:]

    def _run(self, segment: Segment) -> None:
        watch, profiler = self.session.watch, self.session.profiler
        if watch.has_deadline or (profiler is not None and profiler.enabled):
            self._run_watched(segment)
            return
        stop = watch.reasons
        if stop:
            watch.check()
        remaining = iter(segment.thunks)
        try:
            for thunk in remaining:
                thunk()
                if stop:
                    watch.check()
        except (CancelledError, DeadlineError):
            raise  # no node's fault
        except failures() as error:
            raise self._failure(segment, remaining, error) from error

    def _run_watched(self, segment: Segment) -> None:
        """Run with an eye on the clock, for the deadline and for the profiler."""
        clock = time.perf_counter
        watch, profiler = self.session.watch, self.session.profiler
        remaining = iter(segment.thunks)
        nodes = iter(segment.nodes)
        watch.check()
        try:
            for thunk in remaining:
                start = clock()
                thunk()
                seconds = clock() - start
                node = next(nodes)
                if profiler is not None and profiler.enabled and self.session.profiles(node):
                    profiler.record(Event(self.index, node.index, node.op_name, node.profiling_string(self), start, seconds))
                watch.check()
        except (CancelledError, DeadlineError):
            raise  # no node's fault
        except failures() as error:
            raise self._failure(segment, remaining, error) from error

    def _run_called(self, segment: Segment) -> None:
        self.session.count_call()
        self._run(segment)

    def guard_readers(self, tensor: Tensor) -> None:
        """Have the nodes that read a tensor check first whether a delegate keeps its value to itself."""
        for segment in self._segments:
            for position, node in enumerate(segment.nodes):
                if tensor in node.inputs:
                    segment.thunks[position] = guarded(self, node, segment.thunks[position])

    def _failure(self, segment: Segment, remaining: Iterator[Thunk], error: BaseException) -> OpletError:
        """The error of the node whose thunk the iterator handed out last."""
        node = segment.nodes[len(segment.thunks) - operator.length_hint(remaining) - 1]
        return self.explained(InvokeError, node, error, "failed to invoke")

    def still_holds(self, tensor: Tensor) -> bool:
        """Whether an intermediate tensor's memory was not given to another after it was read last."""
        if self._last_use.get(tensor.index) == len(self.execution_plan):  # an output, as nearly always
            return True
        return next((held for segment in self._segments if (held := segment.holds(tensor)) is not None), True)

    # Preparing -----------------------------------------------------------------------------------------------

    def propagate_shapes(self, plan: Sequence[int] | None = None) -> Tensor | None:
        """Prepare the nodes in order, without memory, so that a delegate sees the shapes that the inputs have now.

        Args:
            plan: the nodes; those that run unless given.

        Returns:
            The first tensor whose shape is known only while invoking, None if there is none. What is made from it is
            dynamic too, until its own node is prepared.

        Raises:
            PrepareError: a kernel refused its node.
        """
        unknown: set[Tensor | None] = set()
        first: Tensor | None = None
        self.session.enter(self)
        try:
            self._find_last_uses()
            for tensor in self._variables:
                provide(self, tensor)
            for index in self.execution_plan if plan is None else plan:
                node = self.nodes[index]
                if unknown.intersection(node.inputs):
                    made = [tensor for tensor in node.outputs if not tensor.is_variable]
                    for tensor in made:
                        self.set_dynamic(tensor)
                    unknown.update(made)
                elif node.registration is not None and not self.folding.holds(node):
                    prepared = self._prepares(node)
                    for tensor in () if prepared else node.outputs:
                        self.set_dynamic(tensor)
                    if not prepared or not self.folding.fold(node):
                        unknown.update(tensor for tensor in node.outputs if tensor.is_dynamic)
                        first = first or next((tensor for tensor in node.outputs if tensor.is_dynamic), None)
                # else a custom op that waits for a delegate: the shapes of the file must do
        finally:
            self.session.leave()
            self.invalidate()
        return first

    def _find_last_uses(self) -> None:
        """The position in the plan at which each tensor is read last; the graph's outputs outlive the plan."""
        end = len(self.execution_plan)
        self._last_use = {}
        for position, index in enumerate(self.execution_plan):
            for tensor in self.nodes[index].inputs:
                if tensor is not None:
                    self._last_use[tensor.index] = position
        for index in self.read:
            self._last_use[index] = end

    def _extend(self, start: int) -> None:
        """Prepare, plan and bind from position `start` of the plan to the first node with a dynamic output."""
        nodes: list[Node] = []
        dynamic: list[Tensor] = []
        self._offered.clear()
        placing = Placing(self, self._last_use, len(self.execution_plan))
        if start == 0:
            for index in self.inputs:
                placing.add_input(self._tensors[index])
            for tensor in self._variables:
                provide(self, tensor)
            self.reset_variables()
        position = start
        folding, watch = self.folding, self.session.watch
        for position in range(start, len(self.execution_plan)):
            node = self.nodes[self.execution_plan[position]]
            if folding.holds(node):
                continue
            watch.check()
            if start:
                self._prepare(node)
            elif not self._prepares(node):
                position -= 1
                break
            if folding.fold(node):
                continue
            nodes.append(node)
            placing.add_node(node, position)
            dynamic = [tensor for tensor in node.outputs if tensor.allocation is _DYNAMIC]
            if dynamic:
                break
        segment = Segment(position + 1 if self.execution_plan else 0, nodes, dynamic)
        placing.place(segment, self._offered)
        self._offered.clear()
        for node in nodes:
            segment.thunks.append(guarded(self, node, self.bind_node(node)))
        self._segments.append(segment)

    def _prepares(self, node: Node) -> bool:
        """Prepare a node; False if it is refused and has to be prepared again, and then be refused, in `invoke`."""
        try:
            self._prepare(node)
        except PrepareError:
            if node.delegate is not None or not self.folding.waits(node):
                raise
            return False
        return True

    def _prepare(self, node: Node) -> None:
        if node.providers is not None:
            node.providers.restart()
        while not self._prepared(node):
            pass  # somebody declined it, and the next one has it

    def _prepared(self, node: Node) -> bool:
        self._were_dynamic.clear()
        for tensor in node.outputs:  # what is DYNAMIC or COMPUTED is so until its node is prepared again
            allocation = tensor.allocation
            if allocation is _DYNAMIC:
                self._were_dynamic.add(tensor)
                # Where a delegate replaced the node that said so, no more is known until the delegate's kernel says otherwise.
                if node.delegate is None:
                    tensor.allocation = _ARENA
            elif allocation is _COMPUTED:
                tensor.allocation = _ARENA
        if node.temporaries:
            for tensor in node.temporaries:
                self.session.memory.give_back(tensor)
            node.temporaries = []
        node.in_place = ()
        registration = node.registration
        if registration is not None and registration.prepare is not None:
            self._preparing = True
            inputs, outputs = node.inputs[:], node.outputs[:]
            declined: Declined | None = None
            self.session.memory.give_back(node)
            node.charged = None
            outer = self.session.memory.plan_for(node)
            try:
                check_inputs(node, self.session.memory)
                registration.prepare(self, node)
                check_prepared(node, inputs, outputs)
            except Declined as reason:
                declined = reason
            except failures() as error:
                raise self.explained(PrepareError, node, error, "failed to prepare") from error
            finally:
                self._preparing = False
                self.session.memory.plan_for(outer)
            if declined is not None:
                hand_on(self, node, declined)
                return False
        return True

    def bind_node(self, node: Node) -> Thunk:
        thunk = self._bound(node)
        strings = [tensor for tensor in node.outputs if tensor.dtype.hasobject and tensor.type is TensorType.STRING]
        return partial(_run_counted, thunk, strings, self.session.memory) if strings else thunk

    def _bound(self, node: Node) -> Thunk:
        registration = node.registration
        if registration is None:
            raise StateError(f"Encountered an unresolved custom op. Did you miss a custom op or delegate? {node} has no kernel.")
        outer = self.session.memory.plan_for(node)
        try:
            if registration.bind is not None:
                thunk = registration.bind(self, node)
                if not callable(thunk):
                    raise PluginError(f"The kernel's bind returns {thunk!r} in place of a function that runs the node")
                return watched(self, node, thunk) if self.session.checks else thunk
        except failures() as error:
            raise self.explained(PrepareError, node, error, "failed to prepare") from error
        finally:
            self.session.memory.plan_for(outer)
        if registration.invoke is None:
            raise StateError(f"{node} has neither invoke nor bind.")
        thunk = partial(registration.invoke, self, node)
        return watched(self, node, thunk) if self.session.checks else thunk

    def drop_computed(self, node: Node) -> None:
        params = None if self.delegation is None else self.delegation.kernels.get(node.index)
        if params is None:
            return
        self.folding.forget(params.nodes)
        inner = {tensor for replaced in params.nodes for tensor in replaced.outputs}.difference(params.output_tensors)
        for tensor in inner:
            if tensor.allocation is Allocation.COMPUTED:
                self.session.memory.give_back(tensor)
                tensor.provide(None)

    def __str__(self) -> str:
        return str(self.as_callee)

    def explained(self, cls: type[OpletError], node: Node, error: BaseException, what: str) -> OpletError:
        return explained(cls, node, error, what, f"subgraph {self.index} of {self.session.model.name}")


def _run_counted(thunk: Thunk, strings: Sequence[Tensor], memory: Memory) -> None:
    """Run a node, and count the strings that it made."""
    thunk()
    for tensor in strings:
        if tensor.has_data:
            memory.hold_strings(tensor)
