"""A subgraph as a delegate library sees it: all tensors and nodes as C structs with stable addresses."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from oplet import Allocation, BuiltinOperator, DelegateContext, Node, Tensor, TensorType
from oplet.errors import DelegateError
from oplet_native_ops.delegates.shared import Shared
from oplet_native_ops.ops.entry import Kernel
from oplet_native_ops.shim.graph import NativeGraph, address_of, int_values
from oplet_native_ops.shim.layouts import IntArray, Memory, array_values
from oplet_native_ops.shim.library import shim
from oplet_native_ops.values.builtin_data import builtin_data
from oplet_native_ops.values.types import TYPE_NUMBERS

if TYPE_CHECKING:
    from oplet_native_ops.delegates.kernel import PartitionNode

__all__ = ["DelegateGraph", "int_array"]

_PACKED = (TensorType.INT4, TensorType.INT2, TensorType.UINT4)
_OBJECTS = (TensorType.RESOURCE, TensorType.VARIANT)


def withheld(node: Node) -> str:
    """Return why a delegate library must see an unknown custom op in place of the node; "" if it may see the node itself.

    The reason is a tensor that LiteRT's C API cannot represent.
    """
    for tensor in (*node.inputs, *node.outputs, *node.intermediates):
        if tensor is not None and (why := _why(tensor)):
            return why
    return ""


def _why(tensor: Tensor) -> str:
    if tensor.type not in TYPE_NUMBERS:
        return f"{tensor} is of a type that LiteRT's C API does not have"
    if tensor.type in _OBJECTS:
        return f"{tensor} is an object of oplet's, which compiled delegates cannot be given"
    if tensor.type in _PACKED and not tensor.is_constant:
        return f"the values of {tensor} are packed in LiteRT and not here, so compiled delegates cannot be given them"
    if tensor.sparsity is not None:
        return f"{tensor} is stored sparsely, which compiled delegates are not told"
    if tensor.quantization is not None and tensor.quantization.block_size:
        return f"{tensor} is quantized by blocks, which compiled delegates are not told"
    return ""


_SIDE_EFFECTS = (BuiltinOperator.IF, BuiltinOperator.WHILE, BuiltinOperator.CALL_ONCE)


class _Shown(NamedTuple):
    """A TfLiteNode and the memory that it points to."""

    struct: Any
    options: ctypes.Structure | ctypes.Array[ctypes.c_char] | None


def int_array(values: Iterable[int]) -> Any:
    """Allocate a TfLiteIntArray with these values; the receiver frees it."""
    numbers = list(values)
    made = shim().TfLiteIntArrayCreate(len(numbers))
    if not made:
        raise MemoryError
    if numbers:
        _write(made, numbers)
    return made


def _write(array: Any, values: list[int]) -> None:
    start = ctypes.addressof(array.contents) + ctypes.sizeof(IntArray)
    ctypes.memmove(start, int_values(values), 4 * len(values))


class DelegateGraph(Shared, NativeGraph):
    """The C view of one subgraph of one interpreter for one delegate; it lives as long as the interpreter.

    Attributes:
        withheld: the nodes that the library sees as unknown custom ops: the reason by node index.
        others: the C views of other subgraphs that the library requested from this one, by subgraph index.
        dynamic: the outputs in memory that the library allocates: the partition that writes one, by tensor index.
        earlier: the previous view, of fewer tensors, kept alive because the library may still read it; None if there is none.
    """

    def __init__(self, context: DelegateContext) -> None:
        super().__init__(len(context.tensors), context.num_threads)
        self.withheld: dict[int, str] = {}
        self.dynamic: dict[int, PartitionNode] = {}
        self.others: dict[int, DelegateGraph] = {}
        self.earlier: DelegateGraph | None = None
        self._count = len(context.tensors)
        self._described: set[int] = set()
        self._nodes: dict[int, _Shown] = {}
        self._names: dict[str, bytes] = {}
        self._kept: list[Any] = []
        self._kernels: list[int] = []
        self._operators: list[int] = []

    def close(self) -> None:
        """Do nothing: the library may use the graph as long as the interpreter lives; `dispose` frees it."""

    def dispose(self) -> None:
        """Free all C memory of the graph."""
        if self.pointer is None:
            return
        super().close()
        for shown in self._nodes.values():
            self._shim.oplet_native_node_free(shown.struct)
        for kernel in self._kernels:
            self._shim.oplet_native_kernel_free(kernel)
        for operator in self._operators:
            _owned[operator] -= 1
            if not _owned[operator]:
                del _owned[operator]
                self._shim.TfLiteOperatorDelete(operator)

    def _end(self) -> None:
        self.dispose()

    # Tensors ---------------------------------------------------------------------------------------------------------

    def describe(self, tensor: Tensor) -> None:
        """Copy a tensor's fixed properties to C; the second time only its type, as the library may hold pointers to the rest."""
        if tensor.index not in self._described:
            self._described.add(tensor.index)
            super().describe(tensor)
        elif not tensor.is_constant:
            self.tensor(tensor.index).type = TYPE_NUMBERS[tensor.type]

    def set_shape(self, tensor: Tensor, memory: int | None = None) -> None:
        """Copy a tensor's present shape to C, unless it is unchanged or the tensor is in memory that the library allocates."""
        if tensor.allocation is Allocation.CONSTANT or (memory is None and tensor.index in self.dynamic):
            return
        kind = memory
        if kind is None:
            kind = Memory.ARENA_RW_PERSISTENT if tensor.allocation is Allocation.PERSISTENT else Memory.ARENA_RW
        found = self.tensor(tensor.index)
        if found.allocation_type == kind != Memory.DYNAMIC and array_values(found.dims) == list(tensor.shape) and found.dims:
            return
        super().set_shape(tensor, kind)

    def give(self, tensor: Tensor, index: int | None = None) -> int:
        """Point the C tensor at oplet's memory, and return the address; constants and tensors in the library's memory stay."""
        if index is None and (tensor.allocation is Allocation.CONSTANT or tensor.index in self.dynamic):
            return int(self.tensor(tensor.index).data or 0)
        return super().give(tensor, index)

    def take_memory(self, tensor: Tensor) -> None:
        """Set the C tensor's data pointer to null: inner values of a partition belong to the delegate's kernel, as in LiteRT."""
        if not tensor.is_constant and tensor.index not in self.dynamic:
            self._shim.oplet_native_data(self.pointer, tensor.index, None, self.tensor(tensor.index).bytes)

    # The whole ---------------------------------------------------------------------------------------------------------

    def has_all_of(self, context: DelegateContext) -> bool:
        """Return whether the graph has all tensors that the nodes of the context's execution plan use."""
        nodes = (context.node(index) for index in context.execution_plan)
        used = (tensor for node in nodes for tensor in (*node.inputs, *node.outputs, *node.intermediates) if tensor is not None)
        return max((tensor.index for tensor in used), default=-1) < self._count

    def show(self, context: DelegateContext) -> None:
        """Copy the present state of oplet's tensors and nodes to the C structs, before the library reads them."""
        new = set(range(self._count)) - self._described
        for tensor in context.tensors[: self._count]:
            self.describe(tensor)
            if tensor.allocation is Allocation.CONSTANT:
                if tensor.index in new:
                    self._show_constant(context, tensor)
            elif tensor.index in self.dynamic:
                continue
            elif tensor.is_dynamic or tensor.type is TensorType.STRING:
                super().set_shape(tensor, Memory.DYNAMIC)
            else:
                self.set_shape(tensor)
                self.take_memory(tensor)
        self.show_nodes(context)

    def show_nodes(self, context: DelegateContext) -> None:
        """Copy the execution plan, and the nodes that are new in it, to the C structs."""
        plan = context.execution_plan
        variables = [tensor.index for tensor in context.tensors[: self._count] if tensor.is_variable]
        name = (context.model.root.subgraphs or [])[context.subgraph_index].name or ""
        lists = [int_array(values) for values in (plan, context.inputs, context.outputs, variables)]
        count = max(plan, default=-1) + 1
        if not self._shim.oplet_native_graph_nodes(self.pointer, count, *lists, _c_text(name)):
            raise MemoryError
        for index in plan:
            self._show_node(context.node(index))

    def take_inputs(self, context: DelegateContext) -> None:
        """Apply the library's rewiring of node inputs to oplet's nodes: float16 constants in place of DEQUANTIZE outputs.

        Raises:
            DelegateError: the library makes a node read a tensor that does not exist.
        """
        for index in context.execution_plan:
            shown = self._nodes.get(index)
            node = context.node(index)
            if shown is None or node.op is BuiltinOperator.DELEGATE or index in self.withheld:
                continue
            wanted = array_values(shown.struct.contents.inputs)
            if wanted == _indices(node.inputs):
                continue
            for tensor in wanted:
                if not -1 <= tensor < self._count:
                    raise DelegateError(f"It makes node {index} read tensor {tensor}, which there is not.")
            node.inputs = [None if tensor == -1 else context.tensors[tensor] for tensor in wanted]  # type: ignore[misc]

    def left(self, index: int) -> str:
        """Return why the library left a node unclaimed, as far as is known; "" otherwise."""
        if reason := self.withheld.get(index):
            return reason
        if said := self._shim.oplet_native_node_said(self.pointer, index).decode("utf-8", "replace").strip():
            return f"it says: {said}"
        if self._shim.oplet_native_node_asked(self.pointer, index):
            return "it looked at it, and did not claim it"
        return "it did not look at it"

    def keep(self, kernel: Kernel, operator: int | None) -> None:
        """Keep a kernel and its TfLiteOperator (None if it has none) alive until `dispose` frees them."""
        self._kernels.append(kernel.pointer)
        if operator is not None and operator not in self._operators:
            self._operators.append(operator)
            _owned[operator] = _owned.get(operator, 0) + 1

    def hold(self, content: bytes) -> ctypes.Array[ctypes.c_char]:
        """Copy bytes to memory that lives as long as the graph; return the buffer."""
        made = ctypes.create_string_buffer(content, len(content))
        self._kept.append(made)
        return made

    def _show_constant(self, context: DelegateContext, tensor: Tensor) -> None:
        """Point a constant tensor at the model file's bytes, in LiteRT's layout (packed sub-byte types and strings, too)."""
        super().set_shape(tensor, Memory.MMAP_RO)
        table = ((context.model.root.subgraphs or [])[context.subgraph_index].tensors or [])[tensor.index]
        content = context.model.tensor_bytes(table)
        if content is not None:
            content = np.ascontiguousarray(content)
            self._kept.append(content)
            self._shim.oplet_native_data(self.pointer, tensor.index, address_of(content), content.nbytes)

    def _show_node(self, node: Node) -> None:
        index = node.index
        if index in self._nodes:  # the library may hold it; only what it reads may be otherwise
            _write(self._nodes[index].struct.contents.inputs, _indices(node.inputs))
            return
        code, name = int(node.op), None
        options: ctypes.Structure | ctypes.Array[ctypes.c_char] | None = None
        reason = withheld(node)
        if not reason and node.op not in (BuiltinOperator.CUSTOM, BuiltinOperator.DELEGATE):
            try:
                options = builtin_data(node.op, node.raw_options)
            except ValueError as error:
                reason = str(error)
        if reason:
            self.withheld[index] = reason
            code = int(BuiltinOperator.CUSTOM)
        if code in (BuiltinOperator.CUSTOM, BuiltinOperator.DELEGATE):
            name = self._names.setdefault(node.op_name, _c_text(node.op_name))
            if custom := bytes(node.custom_options or b"") if not reason else b"":
                options = ctypes.create_string_buffer(custom, len(custom))
        lists = [_indices(tensors) for tensors in (node.inputs, node.outputs, node.intermediates)]
        made = self._shim.oplet_native_node(*(part for values in lists for part in (int_values(values), len(values))))
        if not made:
            raise MemoryError
        self._nodes[index] = _Shown(made, options)
        struct = made.contents
        struct.might_have_side_effect = node.op in _SIDE_EFFECTS or any(
            tensor.type is TensorType.RESOURCE for tensor in (*node.inputs, *node.outputs) if tensor is not None
        )
        if isinstance(options, ctypes.Structure):
            struct.builtin_data = ctypes.addressof(options)
        elif options is not None:
            struct.custom_initial_data = ctypes.addressof(options)
            struct.custom_initial_data_size = ctypes.sizeof(options)
        self._shim.oplet_native_graph_node(self.pointer, index, ctypes.addressof(struct), code, name, node.version)


#: How many graphs an operator serves: LiteRT, too, deletes what a delegate replaced nodes by.
_owned: dict[int, int] = {}


def _indices(tensors: Iterable[Tensor | None]) -> list[int]:
    return [-1 if tensor is None else tensor.index for tensor in tensors]


def _c_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape").replace(b"\0", b"")
