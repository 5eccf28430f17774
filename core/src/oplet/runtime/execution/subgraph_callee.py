"""The callee of a subgraph: the interface by which kernels of control-flow ops prepare and run it (see `oplet.ops.callee`)."""

from __future__ import annotations

from oplet.ops.callee import Callee
from oplet.ops.context import Node, ensure
from oplet.ops.serving.registration import Thunk
from oplet.ops.tensor import Shape
from oplet.runtime.execution.session import Session
from oplet.runtime.subgraph import Subgraph
from oplet.schema.enums import BuiltinOperator, TensorType

__all__ = ["SubgraphCallee"]


class SubgraphCallee(Callee):
    """A subgraph of the session for the nodes that call it; `Session.runners` has what runs it."""

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
        ensure(not tensor.is_constant, f"{self} has the constant {tensor} as input {position}, which nothing can be copied into.")
        self._session.runners[self.index].resize_input(tensor.index, shape, type)

    def prepare(self) -> None:
        self._session.runners[self.index].allocate()

    def bind(self) -> Thunk:
        return self._session.runners[self.index].bind()

    def restart(self) -> None:
        self._session.runners[self.index].restart()

    def release(self) -> None:
        self._session.runners[self.index].release()
