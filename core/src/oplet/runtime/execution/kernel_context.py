"""The context of kernels: the `Context` of one subgraph, carried out on its data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.errors import ImmutableGraphError, OpletError, PrepareError, failures
from oplet.ops.context import Context, EnsureError, Node, ensure
from oplet.ops.node import Thunk
from oplet.ops.tensor import Allocation, Array, Tensor, TensorBuilder, tensor_type
from oplet.runtime.execution.checks import checked_shape, ensure_temporary
from oplet.runtime.execution.session import Session
from oplet.runtime.memory.values import let_go
from oplet.runtime.subgraph import Subgraph
from oplet.schema.enums import TensorType

if TYPE_CHECKING:
    from oplet.ops.callee import Callee

__all__ = ["KernelContext"]

_ARENA = Allocation.ARENA
#: Allocations whose memory other nodes were bound to, so that it must not be replaced while the graph runs.
_PLANNED = (Allocation.ARENA, Allocation.PERSISTENT, Allocation.CONSTANT, Allocation.COMPUTED)
#: The most bytes of a constant, computed from shapes, that is compared with those of other interpreters.
_SMALL = 4096


class KernelContext(Context):
    """The context of one subgraph's kernels; its executor holds it and passes it to them.

    Attributes:
        session: the state that the subgraphs of the interpreter share.
        subgraph: the subgraph.
        preparing: whether a kernel's `prepare` runs now.
        asked: the node that is being prepared while the subgraph is allocated; None otherwise, to hold no reference to it.
        offered: arrays that kernels of the segment (part of the plan being allocated) have offered as memory of tensors.
        readers: by tensor index, the nodes of the plan that read a computed constant; None until first needed.
        were_dynamic: outputs of the node that is being prepared that were dynamic before.
    """

    def __init__(self, session: Session, subgraph: Subgraph) -> None:
        self.session = session
        self.subgraph = subgraph
        self.num_threads = session.num_threads
        self.default_delegates = session.default_delegates
        self.checkpoint_folder = session.checkpoint_folder
        self.preparing = False
        self.asked: Node | None = None
        self.offered: dict[Tensor, Array] = {}
        self.readers: dict[int, list[Node]] | None = None
        self.were_dynamic: set[Tensor] = set()

    @property
    def tensors(self) -> Sequence[Tensor]:
        return self.subgraph.tensors

    @property
    def max_while_iterations(self) -> int:  # type: ignore[override]
        return self.session.max_while_iterations

    @property
    def resources(self) -> dict[Any, Any]:
        return self.session.resources

    def record_operator(self, node: Node, start: float, seconds: float) -> None:
        profiler = self.session.profiler
        if profiler is not None and profiler.enabled and not self.session.force_delegate_profiling:
            from oplet.runtime.describe.profiler import Event

            profiler.record(Event(self.subgraph.index, node.index, node.op_name, node.op_name, start, seconds, node.origin))

    def parallel(self, parts: Sequence[Thunk]) -> Thunk:
        return super().parallel(parts) if self.num_threads == 1 or len(parts) < 2 else partial(self.session.workers.run, parts)

    def callee(self, index: int) -> Callee:
        subgraphs = self.session.subgraphs
        ensure(0 <= index < len(subgraphs), f"there is no subgraph {index} to call; the model has {len(subgraphs)}.")
        self.session.check_not_active(subgraphs[index])
        if not self.session.callees:
            from oplet.runtime.execution.subgraph_callee import SubgraphCallee  # imported late: few models have calls

            self.session.callees = [SubgraphCallee(self.session, subgraph) for subgraph in subgraphs]
        return self.session.callees[index]

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        wanted = checked_shape(tensor, shape)
        if not self.preparing:
            data = tensor.data if tensor.has_data else None
            if data is None or (tensor.shape, data.shape, data.dtype) != (wanted, wanted, tensor.dtype):
                ensure(
                    tensor.allocation not in _PLANNED,
                    lambda: (
                        f"{tensor} cannot take the shape {list(wanted)} while the graph runs; say in `prepare` that its shape depends "
                        "on data, with context.set_dynamic."
                    ),
                )
                tensor.shape = wanted
                tensor.set_memory(self.new_array(tensor))
                tensor.resized = True
            return
        if tensor in self.were_dynamic:
            self.were_dynamic.remove(tensor)
            tensor.allocation = Allocation.ARENA
        if tensor.shape != wanted:
            if tensor.allocation is Allocation.CONSTANT:
                raise EnsureError(f"Attempting to resize a fixed-size tensor: {tensor} is a constant.")
            tensor.shape = wanted
            self.session.memory.check_tensor(tensor)  # before the kernel computes tables of that size
        else:
            tensor.shape = wanted

    def set_dynamic(self, tensor: Tensor) -> None:
        if not tensor.is_dynamic and tensor not in self.were_dynamic:
            tensor.set_memory(None)  # its memory is in the arena, which other tensors share
        self.were_dynamic.discard(tensor)
        tensor.allocation = Allocation.DYNAMIC

    def set_constant(self, tensor: Tensor, value: Array) -> None:
        array = np.array(value, tensor.dtype)
        before = tensor.data if tensor.has_data else None
        tensor.shape = array.shape
        tensor.allocation = Allocation.COMPUTED
        if before is not None and not before.flags.writeable and np.array_equal(before, array):
            return  # keep the array, so that nodes which were folded from it stay valid
        array.flags.writeable = False
        shared = self.session.model.shared_values
        if shared is not None and array.nbytes <= _SMALL and not array.dtype.hasobject:
            # One array in all interpreters, so that they share what is folded from it, too.
            array = shared.keep((array.dtype, array.shape, array.tobytes()), array)
        tensor.set_memory(array)

    def add_tensor(self, builder: TensorBuilder) -> int:
        if self.subgraph.delegated.immutable and not self.preparing:
            raise ImmutableGraphError(
                f"AddTensors is disallowed when graph is immutable. A kernel of {self.subgraph} adds one while running."
            )
        ensure_temporary(builder.allocation)
        index = len(self.subgraph.tensors)
        tensor = Tensor(
            index, builder.name, tensor_type(builder.type), (), quantization=builder.quantization, allocation=builder.allocation
        )  # fmt: skip
        tensor.shape = tensor.shape_signature = checked_shape(tensor, builder.shape)
        self.subgraph.tensors.append(tensor)
        return index

    def add_temporary(
        self,
        node: Node,
        shape: Sequence[int],
        type: Any = TensorType.FLOAT32,
        *,
        allocation: Allocation = Allocation.ARENA,
        name: str = "",
    ) -> Tensor:
        if allocation is not Allocation.ARENA:
            ensure_temporary(allocation)
        kind = type if type.__class__ is TensorType else tensor_type(type)
        tensor = Tensor(len(self.subgraph.tensors) + len(node.temporaries), name, kind, (), allocation=allocation)
        tensor.shape = checked_shape(tensor, shape)
        self.session.memory.check_tensor(tensor)
        if allocation is Allocation.PERSISTENT:
            tensor = node.persistent(tensor)
        node.temporaries.append(tensor)
        return tensor

    def offer_memory(self, tensor: Tensor, array: Array) -> None:
        fits = (array.shape, array.dtype) == (tensor.shape, tensor.dtype) and array.flags.writeable and array.flags.c_contiguous
        ensure(fits, f"the memory that is offered, an array of {array.dtype} {list(array.shape)}, does not fit {tensor}.")
        self.offered.setdefault(tensor, array)

    def drop_computed(self, node: Node) -> None:
        params = self.subgraph.delegated.kernels.get(node.index)
        if params is None:
            return
        self.subgraph.forget_folded(params.nodes)
        inner = {tensor for replaced in params.nodes for tensor in replaced.outputs}.difference(params.output_tensors)
        for tensor in inner:
            if tensor.allocation is Allocation.COMPUTED:
                self.session.memory.release(tensor)
                tensor.set_memory(None)

    # For the runtime -----------------------------------------------------------------------------------------

    def new_array(self, tensor: Tensor, *, zeroed: bool = True) -> Array:
        """Return a new array for a tensor, counted against the memory limits, see `MemoryAccount.new_array`."""
        return self.session.memory.new_array(tensor, zeroed=zeroed)

    def readers_of(self, tensor: Tensor) -> Sequence[Node]:
        """Return the nodes of the plan that read a constant that was computed when the graph was prepared."""
        if self.readers is None:
            self.readers = {}
            nodes = self.subgraph.nodes
            for index in self.subgraph.execution_plan:
                for each in nodes[index].inputs:
                    if each is not None:
                        self.readers.setdefault(each.index, []).append(nodes[index])
        return self.readers.get(tensor.index, ())

    def let_go(self, node: Node, position: int) -> None:
        """Release large computed constants that no node after this one needs ("letting go", `memory.values`)."""
        if self.session.checks or self.session.preserve_all_tensors:
            return
        for reader in (node, *node.absorbed) if node.absorbed else (node,):
            for tensor in reader.inputs:
                if tensor is not None and tensor.allocation is not _ARENA and tensor.is_computed:
                    let_go(self.subgraph, reader, tensor, position, self.readers_of)

    def node_error(self, cls: type[OpletError], node: Node, error: BaseException, what: str) -> OpletError:
        """Return an error of class `cls` that names the node and says `what` happened; `error` is what its kernel raised."""
        from oplet.runtime.describe.node_errors import node_error  # most nodes have none

        return node_error(cls, node, error, what, f"subgraph {self.subgraph.index} of {self.session.model.name}")

    def free(self, nodes: Iterable[Node]) -> None:
        """Call `free` for each of the nodes that is initialized, in node order; the first error is raised at the end."""
        initialized = self.subgraph.initialized
        failure: OpletError | None = None
        for node in sorted(nodes, key=lambda node: node.index):
            if node not in initialized:
                continue
            for number, registration in initialized.pop(node).items():
                if registration.free is not None:
                    try:
                        registration.free(self, node.data_of(number))
                    except failures() as error:
                        failure = failure or self.node_error(PrepareError, node, error, "failed to free")
            node.user_data = None
        if failure is not None:
            raise failure
