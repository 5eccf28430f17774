"""Runs one claimed partition by the delegate's kernel, directly on the tensors' memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oplet import Context, DelegateParams, Node, Tensor
from oplet.errors import InvokeError
from oplet_native_ops.delegates.graph import DelegateGraph, int_array
from oplet_native_ops.delegates.shared import Shared
from oplet_native_ops.ops.entry import Kernel
from oplet_native_ops.ops.node import NativeNode
from oplet_native_ops.shim.graph import int_values
from oplet_native_ops.shim.layouts import (
    NO_BUFFER_HANDLE,
    Memory,
    NativeDelegateParams,
    NativeOpaqueDelegateParams,
    array_values,
)

if TYPE_CHECKING:
    from oplet_native_ops.delegates.delegate import NativeDelegate

__all__ = ["PartitionNode"]


class PartitionNode(NativeNode):
    """State of one partition's kernel: returned by the registration's `init`, used by its other methods.

    Args:
        delegate: the delegate that claimed the partition.
        kernel: the library's functions that run it.
        graph: the library's view of the subgraph, in C structs.
        context: oplet's view of the subgraph.
        params: the partition: its nodes, inputs and outputs.
    """

    def __init__(
        self, delegate: NativeDelegate, kernel: Kernel, graph: DelegateGraph, context: Context, params: DelegateParams
    ) -> None:
        self._delegate = delegate
        self._subgraph = graph
        self._shared: list[Shared] = [graph, delegate]
        self._lists = [
            int_array(each.index for each in group) for group in (params.nodes, params.input_tensors, params.output_tensors)
        ]
        outer = {*params.input_tensors, *params.output_tensors}
        used = (tensor for node in params.nodes for tensor in (*node.inputs, *node.outputs) if tensor is not None)
        self._inner = [tensor for tensor in dict.fromkeys(used) if tensor not in outer]
        if delegate.is_opaque:
            made: ctypes.Structure = NativeOpaqueDelegateParams(delegate.pointer, delegate.data, *self._lists)
        else:
            made = NativeDelegateParams(delegate.pointer, *self._lists)
        for each in self._shared:
            each.use()
        try:
            super().__init__(kernel, context, made, graph)
        except BaseException:
            self._let_go()
            raise

    @property
    def _options_length(self) -> int:
        return ctypes.sizeof(self._options) if self._options is not None else 0

    def close(self) -> None:
        """Call the kernel's free function."""
        try:
            super().close()
        finally:
            for index in [index for index, owner in self._subgraph.dynamic.items() if owner is self]:
                del self._subgraph.dynamic[index]
            self._let_go()

    def _let_go(self) -> None:
        lists, self._lists = self._lists, []
        for array in lists:
            self._shim.TfLiteIntArrayFree(array)
        shared, self._shared = self._shared, []
        for each in shared:
            each.release()

    def prepare(self, context: Context, node: Node) -> None:
        """Let the library set the shapes of the partition's outputs and, if it likes, of inner tensors."""
        for tensor in self._inner:
            self._subgraph.set_shape(tensor)
            self._subgraph.take_memory(tensor)
        for index in [index for index, owner in self._subgraph.dynamic.items() if owner is self]:
            del self._subgraph.dynamic[index]
        super().prepare(context, node)
        for tensor in self._inner:
            shape = array_values(self._graph.tensor(tensor.index).dims)
            if not tensor.is_constant and shape != list(tensor.shape):
                context.resize_tensor(tensor, shape)
        self._subgraph.dynamic.update((tensor.index, self) for tensor in self._dynamic)

    def _check_types(self, tensors: list[Tensor]) -> None:
        """Do nothing: nodes with unsupported tensor types were hidden from the library, see `withheld`."""

    def _connect(self, node: Node, own: list[Tensor]) -> None:
        super()._connect(node, own)
        self._node.contents.delegate = self._delegate.pointer

    def _adopt(self, context: Context, tensor: Tensor, *, unknown: bool) -> None:
        found = self._graph.tensor(tensor.index)
        if not unknown and found.allocation_type in (Memory.CUSTOM, Memory.NON_CPU):
            # It keeps the value in a buffer of its own. Whoever else reads the tensor needs memory all the same.
            context.resize_tensor(tensor, array_values(found.dims))
        else:
            super()._adopt(context, tensor, unknown=unknown)

    # Buffers of the delegate's ------------------------------------------------------------------------------------------

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        """Return a function that invokes the partition, and then records which tensors are in the delegate's buffers."""
        run = super().bind(context, node)
        moving = list(dict.fromkeys(t for t in (*node.inputs, *node.outputs) if t is not None and not t.is_constant))
        outputs = [tensor for tensor in node.outputs if tensor in moving]
        indices = int_values([tensor.index for tensor in outputs])
        count, graph, in_buffers = len(outputs), self._graph.pointer, self._shim.oplet_native_handles
        delegate = self._delegate

        def run_with_buffers() -> None:
            for tensor in moving:
                if tensor.buffer_handle is not None and tensor.delegate is delegate:
                    self._tell_handle(tensor)
            run()
            if in_buffers(graph, count, indices):
                for tensor in outputs:
                    self._take_handle(tensor)

        return run_with_buffers

    def _tell_handle(self, tensor: Tensor) -> None:
        found = self._graph.tensor(tensor.index)
        found.buffer_handle = delegate_handle(self._delegate.name, tensor.buffer_handle)
        found.data_is_stale = tensor.data_is_stale
        found.delegate = self._delegate.pointer

    def _take_handle(self, tensor: Tensor) -> None:
        found = self._graph.tensor(tensor.index)
        if found.buffer_handle == NO_BUFFER_HANDLE:
            if found.data_is_stale:
                raise InvokeError(self._said(f"says that the data of {tensor} is stale, and names no buffer with its value"))
            tensor.buffer_handle = None
        else:
            tensor.delegate = self._delegate
            tensor.buffer_handle = found.buffer_handle
        tensor.data_is_stale = found.data_is_stale

    def _fetch(self, context: Context, tensor: Tensor) -> None:
        if not self._graph.tensor(tensor.index).data_is_stale:
            super()._fetch(context, tensor)

    def fetch(self, context: Context, tensor: Tensor) -> None:
        """Copy a dynamic output from the library's memory into oplet's tensor."""
        super()._fetch(context, tensor)


def delegate_handle(name: str, handle: Any) -> int:
    """Return a buffer handle as C's int32; raise if it is not one.

    Raises:
        InvokeError: the handle is not an integer of 32 bits.
    """
    if not isinstance(handle, int) or not -(2**31) <= handle < 2**31:
        raise InvokeError(
            f"{name} is given the buffer handle {handle!r}; the handles of compiled delegates are numbers of 32 bits."
        )
    return int(handle)
