"""The callee of a subgraph: the interface by which kernels of control-flow ops prepare and run it (see `oplet.ops.callee`), and rounds of
loops that run in machine code.
"""

from __future__ import annotations

from collections.abc import Callable

from oplet.errors import InvokeError, OpletError, failures
from oplet.ops.callee import Callee
from oplet.ops.context import Node, ensure
from oplet.ops.node import Thunk
from oplet.ops.serving.joining import LONGEST, Rounds, StalePlanError, looped
from oplet.ops.tensor import Shape
from oplet.runtime.describe.node_errors import node_error
from oplet.runtime.execution.session import Session
from oplet.runtime.subgraph import Segment, Subgraph
from oplet.schema.enums import BuiltinOperator, TensorType

__all__ = ["SubgraphCallee"]


class SubgraphCallee(Callee):
    """The `Callee` of a subgraph, for kernels of nodes that call it; `Session.runners` has the subgraph's runner."""

    def __init__(self, session: Session, subgraph: Subgraph) -> None:
        self._session = session
        self._subgraph = subgraph
        self.index = subgraph.index
        self.name = subgraph.name
        self.inputs = [subgraph.tensors[index] for index in subgraph.inputs]
        self.outputs = [subgraph.tensors[index] for index in subgraph.outputs]
        self.initialized = False

    @property
    def generation(self) -> int:
        return self._subgraph.generation

    @property
    def is_dynamic(self) -> bool:
        return self._subgraph.is_dynamic

    @property
    def is_pure(self) -> bool:
        registrations = (self._subgraph.nodes[index].registration for index in self._subgraph.execution_plan)
        return all(registration is not None and registration.pure for registration in registrations)

    @property
    def nodes(self) -> list[Node]:
        return [node for node in self._subgraph.nodes if node.op != BuiltinOperator.DELEGATE and not node.origin]

    def reads(self, position: int) -> bool:
        return self._subgraph.is_read(self.inputs[position])

    def set_input(self, position: int, shape: Shape, type: TensorType) -> None:
        tensor = self.inputs[position]
        if tensor.is_constant:
            ensure(False, f"{self} has the constant {tensor} as input {position}, which nothing can be copied into.")
        self._session.runners[self.index].resize_input(tensor.index, shape, type)

    def prepare(self) -> None:
        self._session.runners[self.index].allocate()

    def bind(self) -> Thunk:
        return self._session.runners[self.index].bind()

    def rounds(self, condition: Callee, before: Thunk, step: Thunk, after: Thunk) -> Callable[[int], bool | None] | None:
        subgraphs = self._session.subgraphs[condition.index], self._subgraph
        segments = [subgraph.joined_segment for subgraph in subgraphs]
        first, second = segments
        if first is None or second is None:
            return None
        flag = condition.outputs[0].data
        run = looped(before, first.thunks, flag, second.thunks, step, after)
        return None if run is None else _Rounds(self._session, subgraphs, (first, second), run)

    def restart(self) -> None:
        self._session.runners[self.index].restart()

    def release(self) -> None:
        self._session.runners[self.index].release()


class _Rounds:
    """A WHILE loop whose condition and body were fused into machine code; called, it runs up to a number of iterations.

    Args:
        session: the session.
        subgraphs: the condition and the body.
        segments: the only segment of each, with its nodes and thunks.
        run: runs iterations, see `Joiner.loop`.
    """

    def __init__(
        self, session: Session, subgraphs: tuple[Subgraph, Subgraph], segments: tuple[Segment, Segment], run: Rounds
    ) -> None:
        self._session = session
        self._subgraphs = subgraphs
        self._segments = segments
        self._steps = [segment.steps for segment in segments]
        self._run = run
        seconds = sum(sum(segment.seconds or ()) for segment in segments)
        #: The rounds of a call, since a run is stopped between calls only.
        self._together = max(int(LONGEST / max(seconds, 1e-9)), 1)

    def __call__(self, limit: int) -> bool | None:
        session = self._session
        meter, profiler = session.meter, session.profiler
        if meter.has_deadline or (profiler is not None and profiler.enabled):
            return None  # both look at each node
        for segment, steps in zip(self._segments, self._steps):
            if segment.steps is not steps:  # a thunk has changed
                return None
        done, run = 0, self._run
        while True:
            if meter.reasons:
                meter.check()
            most = min(self._together, limit - done)
            try:
                count = run(most, not done)
            except StalePlanError as error:
                for subgraph in self._subgraphs:
                    subgraph.set_apart(error.node)
                raise
            except failures() as error:
                raise self._failure(error) from error
            ended = count < most
            session.count_call(2 * count + ended)
            done += count
            if ended or done == limit:
                return ended

    def _failure(self, error: BaseException) -> OpletError:
        """Return the error for the node, of the condition or the body, whose compiled code raised `error`."""
        position: int = getattr(self._run, "failed_at", 0)
        in_condition = len(self._segments[0].thunks)
        number, position = (0, position) if position < in_condition else (1, position - in_condition)
        where = f"subgraph {self._subgraphs[number].index} of {self._session.model.name}"
        return node_error(InvokeError, self._segments[number].nodes[position], error, "failed to invoke", where)
