"""One node served by a library's operator: C context, tensors, and the operator's user data."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oplet import Allocation, Context, Node, Tensor, TensorType, decline
from oplet.errors import InvokeError, PrepareError
from oplet_native_ops.ops.entry import Kernel
from oplet_native_ops.shim import layouts
from oplet_native_ops.shim.graph import NativeGraph, address_of, int_values
from oplet_native_ops.shim.layouts import Call, Memory, Status, array_values
from oplet_native_ops.shim.library import shim
from oplet_native_ops.values.strings import unpack_strings
from oplet_native_ops.values.types import REFUSED, TYPE_NUMBERS, TYPES, type_label

__all__ = ["NativeNode"]

_INIT_FAILED = ctypes.c_void_p(-1).value
_ALLOCATIONS = {Memory.ARENA_RW: Allocation.ARENA, Memory.ARENA_RW_PERSISTENT: Allocation.PERSISTENT}


class NativeNode:
    """State of one node: returned by the registration's `init`, used by its other methods.

    Args:
        kernel: the operator.
        context: the context of its subgraph.
        options: a custom op's options as the file has them, or the struct of a built-in operator's; None for none.
        graph: the TfLiteContext that the library gets; None for a new one, for this node alone.
    """

    def __init__(
        self,
        kernel: Kernel,
        context: Context,
        options: bytes | ctypes.Structure | None,
        graph: NativeGraph | None = None,
    ) -> None:
        self._shim = shim()
        self._kernel = kernel
        self._graph = NativeGraph(len(context.tensors), context.num_threads) if graph is None else graph
        self._custom = isinstance(options, bytes)
        # The library may keep the address.
        self._options = (
            ctypes.create_string_buffer(options, len(options)) if isinstance(options, bytes) and options else options or None
        )
        self._node: Any = None
        self._own: list[Tensor] = []
        self._added: list[tuple[Tensor, int]] = []
        self._dynamic: list[Tensor] = []
        self._call = Call()
        self._kept: tuple[Any, ...] = ()
        self._user_data: int | None = None
        try:
            self._init()
        except BaseException:
            self._graph.close()
            raise

    def _init(self) -> None:
        made = self._shim.oplet_native_init(
            self._kernel.pointer, self._graph.pointer, self._options_address, self._options_length
        )
        if made == _INIT_FAILED:
            raise PrepareError(self._said("fails to initialize", self._graph.error))
        self._user_data = made

    @property
    def _options_address(self) -> int | None:
        return None if self._options is None else ctypes.addressof(self._options)

    @property
    def _options_length(self) -> int:
        """Return the buffer length passed to init: 0 for a built-in operator's struct, as in LiteRT."""
        return ctypes.sizeof(self._options) if self._options is not None and self._custom else 0

    def close(self) -> None:
        """Call the operator's free function, and free all C memory."""
        if self._graph.pointer is None:
            return
        user_data, self._user_data = self._user_data, None
        try:
            self._shim.oplet_native_free(self._kernel.pointer, self._graph.pointer, user_data)
        finally:
            node, self._node = self._node, None
            if node is not None:
                self._shim.oplet_native_node_free(node)
            self._graph.close()

    # Preparing -------------------------------------------------------------------------------------------------------

    def prepare(self, context: Context, node: Node) -> None:
        """Let the library check the node, set output shapes and request temporaries."""
        own = list(dict.fromkeys(tensor for tensor in (*node.inputs, *node.outputs, *node.intermediates) if tensor is not None))
        self._check_types(own)
        if self._node is None:
            self._connect(node, own)
        outputs = [tensor for tensor in node.outputs if not tensor.is_constant and not tensor.is_variable]
        for tensor in own:
            is_text = tensor.type is TensorType.STRING
            self._graph.set_shape(tensor, (Memory.DYNAMIC if is_text else Memory.ARENA_RW) if tensor in outputs else None)
            if tensor.is_constant:
                self._graph.give(tensor)
        status = self._shim.oplet_native_prepare(self._kernel.pointer, self._graph.pointer, self._node)
        if status not in (Status.OK, Status.OUTPUT_SHAPE_NOT_KNOWN):
            raise PrepareError(self._said("refuses it", self._graph.error, status))
        self._dynamic = []
        for tensor in outputs:
            self._adopt(context, tensor, unknown=status == Status.OUTPUT_SHAPE_NOT_KNOWN)
        self._adopt_temporaries(context, node)

    def _check_types(self, tensors: list[Tensor]) -> None:
        for tensor in tensors:
            if tensor.type in REFUSED:
                decline(f"{tensor} is of a type that compiled operators cannot be given.")
            if tensor.quantization is not None and tensor.quantization.block_size:
                decline(f"{tensor} is quantized by blocks, which compiled operators cannot be told.")
            if tensor.type not in TYPE_NUMBERS:
                decline(f"{tensor} is of a type that LiteRT's C API does not have.")

    def _connect(self, node: Node, own: list[Tensor]) -> None:
        """Create the C struct of the node, once."""

        def indices(tensors: Sequence[Tensor | None]) -> list[int]:
            return [-1 if tensor is None else tensor.index for tensor in tensors]

        for tensor in own:
            self._graph.describe(tensor)
        lists = [indices(tensors) for tensors in (node.inputs, node.outputs, node.intermediates)]
        made = self._shim.oplet_native_node(*(part for values in lists for part in (int_values(values), len(values))))
        if not made:
            raise MemoryError
        self._node = made
        struct: layouts.Node = made.contents
        struct.user_data = self._user_data
        if self._custom:
            struct.custom_initial_data = self._options_address
            struct.custom_initial_data_size = 0 if self._options is None else ctypes.sizeof(self._options)
        else:
            struct.builtin_data = self._options_address

    def _adopt(self, context: Context, tensor: Tensor, *, unknown: bool) -> None:
        """Copy an output's shape and type as the library set them to oplet's tensor."""
        found = self._graph.tensor(tensor.index)
        if found.type != TYPE_NUMBERS[tensor.type]:
            made = TYPES.get(found.type)
            if made is None or made in REFUSED:
                raise PrepareError(self._said(f"makes {tensor} a tensor of {type_label(found.type)}, which is refused"))
            context.set_type(tensor, made)
        if found.allocation_type == Memory.DYNAMIC or unknown:
            if unknown:
                found.allocation_type = Memory.DYNAMIC
            context.resize_tensor(tensor, array_values(found.dims))
            context.set_dynamic(tensor)
            self._dynamic.append(tensor)
        elif found.allocation_type == Memory.ARENA_RW:
            context.resize_tensor(tensor, array_values(found.dims))
        else:
            raise PrepareError(self._said(f"gives {tensor} memory of kind {found.allocation_type}, which outputs cannot have"))

    def _adopt_temporaries(self, context: Context, node: Node) -> None:
        """Request memory for the temporaries that the library listed; dynamic ones are allocated by C."""
        self._added = []
        known = {tensor.index for tensor in self._own_tensors(node)}
        for index in dict.fromkeys(array_values(self._node.contents.temporaries)):
            if index in known or index == -1:
                continue
            if not 0 <= index < self._graph.tensor_count:
                raise PrepareError(self._said(f"lists tensor {index} among its temporaries, which there is not"))
            found = self._graph.tensor(index)
            allocation = _ALLOCATIONS.get(found.allocation_type)
            if allocation is None:
                continue
            type = TYPES.get(found.type)
            if type is None or type in REFUSED or type is TensorType.STRING:
                raise PrepareError(self._said(f"asks for a temporary of {type_label(found.type)}, which is refused"))
            temporary = context.add_temporary(node, array_values(found.dims), type, allocation=allocation)
            if found.is_variable and allocation is Allocation.PERSISTENT:
                temporary.is_variable = True
            self._added.append((temporary, index))

    @staticmethod
    def _own_tensors(node: Node) -> list[Tensor]:
        return [tensor for tensor in (*node.inputs, *node.outputs, *node.intermediates) if tensor is not None]

    # Running -----------------------------------------------------------------------------------------------------------

    def bind(self, context: Context, node: Node) -> Callable[[], None]:
        """Return a function that invokes the library's operator directly on the tensors' memory."""
        dynamic = self._dynamic
        texts = [t for t in node.inputs if t is not None and t.type is TensorType.STRING and not t.is_constant]
        fixed: dict[int, int] = {}
        for tensor in dict.fromkeys((*node.inputs, *node.outputs)):
            if tensor is None or tensor in dynamic or tensor in texts:
                continue
            address = self._graph.give(tensor)
            if tensor in node.outputs:
                fixed[tensor.index] = address
        for tensor, index in self._added:
            fixed[index] = self._graph.give(tensor, index)
        indices, addresses = int_values(list(fixed)), (ctypes.c_void_p * len(fixed))(*fixed.values())
        self._kept = indices, addresses
        node_address = ctypes.addressof(self._node.contents)
        call = self._call = Call(self._kernel.pointer, self._graph.pointer, node_address, len(fixed), indices, addresses)
        at = ctypes.addressof(call)
        invoke = self._shim.oplet_native_invoke
        named = list(fixed)

        def run() -> None:
            status = invoke(at)
            if status:
                raise InvokeError(self._failed(status, named))

        if not dynamic and not texts:
            return run

        def run_dynamic() -> None:
            for tensor in texts:
                self._graph.give(tensor)
            run()
            for tensor in dynamic:
                self._fetch(context, tensor)

        return run_dynamic

    def _fetch(self, context: Context, tensor: Tensor) -> None:
        """Copy a dynamic output from the library's memory."""
        found = self._graph.tensor(tensor.index)
        shape = array_values(found.dims)
        if found.type != TYPE_NUMBERS[tensor.type]:
            raise InvokeError(self._said(f"makes {tensor} a tensor of {type_label(found.type)} while it runs, which is refused"))
        size, count = int(found.bytes), math.prod(shape)
        if size and not found.data:
            raise InvokeError(self._said(f"says that {tensor} has {size} bytes, and gives none"))
        if tensor.type is TensorType.STRING:
            try:
                strings = unpack_strings(ctypes.string_at(found.data, size) if found.data else b"")
            except ValueError as error:
                raise InvokeError(self._said(f"writes no strings into {tensor}: {error}")) from error
            if len(strings) != count:
                raise InvokeError(self._said(f"gives {tensor} the shape {shape} and {len(strings)} strings"))
            context.resize_tensor(tensor, shape)
            values = np.empty(count, object)
            values[:] = strings
            tensor.data[...] = values.reshape(tensor.shape)
            return
        if size != count * tensor.dtype.itemsize:
            raise InvokeError(self._said(f"gives {tensor} the shape {shape} and {size} bytes, which do not go together"))
        context.resize_tensor(tensor, shape)
        if size:
            ctypes.memmove(address_of(tensor.data), found.data, size)

    # Messages ------------------------------------------------------------------------------------------------------------

    def _failed(self, status: int, fixed: list[int]) -> str:
        if status < 0:
            where = f"tensor {fixed[-1 - status]}"
            return self._said(f"puts memory of its own in the place of {where}; only a dynamic tensor may have another")
        return self._said("fails", self._graph.error, status)

    def _said(self, what: str, text: str = "", status: int = 0) -> str:
        if text:
            return f"{self._kernel.source} {what}: {text}"
        if status:
            return f"{self._kernel.source} {what}, with {Status.NAMES.get(status, f'status {status}')} and without a reason."
        return f"{self._kernel.source} {what}."
