"""What kernels ask of the subgraph that they are part of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from oplet.errors import ImmutableGraphError, LimitError
from oplet.ops.callee import Callee
from oplet.ops.context import Context, EnsureError, Node, ensure
from oplet.ops.registration import Thunk
from oplet.ops.tensor import Allocation, Array, Shape, Tensor, TensorBuilder
from oplet.runtime.describe.profiler import Event
from oplet.runtime.execution.checks import checked_shape, ensure_temporary
from oplet.runtime.execution.session import Session
from oplet.runtime.memory.arrays import new_array
from oplet.schema.enums import TensorType

__all__ = ["KernelContext"]


class KernelContext(Context):
    """The tensors of a subgraph, and what kernels do with them.

    Attributes:
        session: what the subgraphs of the interpreter share.
        index: the subgraph's number in the model.
        immutable: whether a delegate that knows static shapes only has claimed nodes; a resize undoes it.
    """

    def __init__(self, session: Session, index: int, tensors: list[Tensor]) -> None:
        self.session = session
        self.index = index
        self.num_threads = session.num_threads
        self.immutable = False
        self._tensors = tensors
        self._preparing = False
        self._offered: dict[Tensor, Array] = {}  # by kernels that are being prepared
        self._were_dynamic: set[Tensor] = set()  # outputs of the kernel being prepared that were dynamic before

    @property
    def tensors(self) -> Sequence[Tensor]:
        return self._tensors

    @property
    def max_while_iterations(self) -> int:  # type: ignore[override]
        return self.session.max_while_iterations

    @property
    def resources(self) -> dict[Any, Any]:
        return self.session.resources

    def record_operator(self, node: Node, start: float, seconds: float) -> None:
        profiler = self.session.profiler
        if profiler is not None and profiler.enabled and not self.session.force_delegate_profiling:
            profiler.record(Event(self.index, node.index, node.op_name, node.op_name, start, seconds))

    def parallel(self, parts: Sequence[Thunk]) -> Thunk:
        return super().parallel(parts) if self.num_threads == 1 or len(parts) < 2 else partial(self.session.workers.run, parts)

    def callee(self, index: int) -> Callee:
        subgraphs = self.session.subgraphs
        ensure(0 <= index < len(subgraphs), f"there is no subgraph {index} to call; the model has {len(subgraphs)}.")
        self.session.check_not_active(subgraphs[index])
        return subgraphs[index].as_callee

    def resize_tensor(self, tensor: Tensor, shape: Sequence[int]) -> None:
        wanted = checked_shape(tensor, shape)
        if not self._preparing:
            data = tensor.data if tensor.has_data else None
            if data is None or (tensor.shape, data.shape, data.dtype) != (wanted, wanted, tensor.dtype):
                tensor.shape = wanted
                tensor.provide(self.new_array(tensor))
                tensor.resized = True
            return
        if tensor in self._were_dynamic:
            self._were_dynamic.remove(tensor)
            tensor.allocation = Allocation.ARENA
        if tensor.shape != wanted:
            if tensor.allocation is Allocation.CONSTANT:
                raise EnsureError(f"Attempting to resize a fixed-size tensor: {tensor} is a constant.")
            tensor.shape = wanted
            self.session.memory.check_tensor(tensor)  # before the kernel plans its work for it
        else:
            tensor.shape = wanted

    def set_dynamic(self, tensor: Tensor) -> None:
        if not tensor.is_dynamic and tensor not in self._were_dynamic:
            tensor.provide(None)  # its memory was planned, and is shared with others
        self._were_dynamic.discard(tensor)
        tensor.allocation = Allocation.DYNAMIC

    def set_constant(self, tensor: Tensor, value: Array) -> None:
        array = np.array(value, tensor.dtype)
        before = tensor.data if tensor.has_data else None
        tensor.shape = array.shape
        tensor.allocation = Allocation.COMPUTED
        if before is not None and not before.flags.writeable and np.array_equal(before, array):
            return  # the same array as before, so that what was folded from it stays valid
        array.flags.writeable = False
        tensor.provide(array)

    def add_tensor(self, builder: TensorBuilder) -> int:
        if self.immutable and not self._preparing:
            raise ImmutableGraphError(
                f"AddTensors is disallowed when graph is immutable. A kernel of {self} adds one while running."
            )
        ensure_temporary(builder.allocation)
        index = len(self._tensors)
        tensor = Tensor(
            index, builder.name, builder.type, (), quantization=builder.quantization, allocation=builder.allocation
        )  # fmt: skip
        tensor.shape = tensor.shape_signature = checked_shape(tensor, builder.shape)
        self._tensors.append(tensor)
        return index

    def add_temporary(
        self,
        node: Node,
        shape: Shape,
        type: TensorType = TensorType.FLOAT32,
        *,
        allocation: Allocation = Allocation.ARENA,
        name: str = "",
    ) -> Tensor:
        ensure_temporary(allocation)
        tensor = Tensor(len(self._tensors) + len(node.temporaries), name, type, (), allocation=allocation)
        tensor.shape = checked_shape(tensor, shape)
        self.session.memory.check_tensor(tensor)
        if allocation is Allocation.PERSISTENT:
            tensor = node.persistent(tensor)
        node.temporaries.append(tensor)
        return tensor

    def offer_memory(self, tensor: Tensor, array: Array) -> None:
        fits = (array.shape, array.dtype) == (tensor.shape, tensor.dtype) and array.flags.writeable and array.flags.c_contiguous
        ensure(fits, f"the memory that is offered, an array of {array.dtype} {list(array.shape)}, does not fit {tensor}.")
        self._offered.setdefault(tensor, array)

    def new_array(self, tensor: Tensor, *, zeroed: bool = True) -> Array:
        """Memory of its own for a tensor.

        Args:
            zeroed: whether its values are 0 to begin with; else they are whatever was there.

        Raises:
            LimitError: it is more than is allowed, or than there is.
        """
        self.session.memory.take(tensor)
        try:
            return new_array(tensor, zeroed=zeroed)
        except (MemoryError, ValueError):
            raise self.too_much(tensor.nbytes, tensor) from None

    def too_much(self, nbytes: int, tensor: Tensor) -> LimitError:
        """The error for memory that the machine does not have."""
        return LimitError(f"There is no memory for {nbytes} bytes in {self.session.model.name}; the largest part is {tensor}.")
