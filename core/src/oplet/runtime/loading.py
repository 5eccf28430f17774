"""Loading: what an interpreter is given becomes a model, and its tables the tensors and nodes that run."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Hashable, Iterator, Sequence
from enum import Enum
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.errors import ModelError, TensorError
from oplet.model.model import Model
from oplet.model.reachability import made_tensors, observable_tensors
from oplet.ops.context import Node
from oplet.ops.shared_values import Computed, NodeValues, SharedValues, address_of
from oplet.ops.strings import ELEMENT_BITS, PACKED_BITS, read_strings, strings_nbytes
from oplet.ops.tensor import Allocation, Array, Quantization, Tensor, numpy_dtype
from oplet.plugins.selection import selecting_environment
from oplet.runtime.subgraph import Subgraph, provide_scratch, stated_signature
from oplet.schema import tables
from oplet.schema.columns import Columns, LazyTables, as_lazy_tables
from oplet.schema.enums import TensorType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oplet.plugins.manager import PluginManager
    from oplet.runtime.memory.accounting import MemoryAccount

__all__ = [
    "OpResolverType",
    "check_types",
    "load_nodes",
    "load_subgraph",
    "load_tensors",
    "manager_of",
    "open_model",
    "unpack",
]

#: Types with the same layout in a file as in memory.
_PLAIN = frozenset(ELEMENT_BITS) - frozenset(PACKED_BITS)


class OpResolverType(Enum):
    """LiteRT's kernel sets; here, whose results to reproduce: of its default delegate (AUTO, BUILTIN) or of its own kernels."""

    AUTO = 0
    BUILTIN = 1
    BUILTIN_REF = 2
    BUILTIN_WITHOUT_DEFAULT_DELEGATES = 3


def check_types(op_resolver_type: object, num_threads: object) -> None:
    """Check the types of arguments as LiteRT does.

    Raises:
        TensorError: an argument has a wrong type or value; the message is LiteRT's.
    """
    if not isinstance(op_resolver_type, Enum) or op_resolver_type.name not in OpResolverType.__members__:
        raise TensorError(f"Unrecognized passed in op resolver type: {op_resolver_type}")
    if num_threads is not None:
        if not isinstance(num_threads, int):
            raise TensorError("type of num_threads should be int")
        if num_threads < 1:
            raise TensorError("num_threads should >= 1")


def open_model(path: str | os.PathLike[str] | None, content: bytes | memoryview | Model | None, use_mmap: bool = True) -> Model:
    """Open the model that an interpreter is given, from a file or from bytes, unless it is open already.

    Raises:
        ModelError: both are given or none, or the model cannot be read.
    """
    if path and content:
        raise ModelError("Can't both provide `model_path` and `model_content`")
    if path:
        return Model.open(path, use_mmap=use_mmap, verified=True)
    if content:
        return content if isinstance(content, Model) else Model.from_bytes(content, verified=True)
    raise ModelError("`model_path` or `model_content` must be specified.")


def manager_of(plugins: PluginManager | Sequence[str] | None) -> PluginManager:
    """Return the plugin manager for an interpreter's argument `plugins`; None stands for all installed plugins.

    The same names give the same manager again, as discovering plugins and merging their operators takes longer than opening a model.
    """
    from oplet.plugins.manager import PluginManager, default_manager

    if plugins is None:
        return default_manager()
    if isinstance(plugins, PluginManager):
        return plugins
    names = plugins if isinstance(plugins, str) else tuple(plugins)
    if not all(isinstance(name, str) for name in names):
        return PluginManager.named(names, "plugins")  # which refuses them
    return _named_manager(names, selecting_environment(os.environ), tuple(sys.path), default_manager())


@lru_cache(maxsize=8)
def _named_manager(names: str | tuple[str, ...], *_key: object) -> PluginManager:
    """Return a manager of the plugins with these names, cached by these and `_key`: variables, import path, default manager."""
    from oplet.plugins.manager import PluginManager

    return PluginManager.named(names, "plugins")


def load_subgraph(model: Model, index: int, table: tables.SubGraph, memory: MemoryAccount) -> Subgraph:
    """Return the `Subgraph` of a table; its nodes have no registrations yet.

    Args:
        model: the model.
        index: the subgraph's index.
        table: the subgraph's table.
        memory: the memory account, which counts constants that are no views of the file.
    """
    tensors = load_tensors(model, table, memory)
    nodes = load_nodes(model, table, tensors)
    shared = model.shared_values
    if shared is not None:
        values = NodeValues(shared, index)
        for node in nodes:
            node.shared = values
    inputs: list[int] = [] if table.inputs is None else table.inputs.tolist()
    outputs: list[int] = [] if table.outputs is None else table.outputs.tolist()
    provide_scratch(table, nodes, inputs)
    return Subgraph(index, table.name or "", tensors, nodes, inputs, outputs, observable_tensors(model.lazy_root, index))


def load_tensors(model: Model, subgraph: tables.SubGraph, memory: MemoryAccount) -> list[Tensor]:
    """Return the `Tensor` objects of a subgraph; constants are read when they are first used.

    Args:
        model: the model.
        subgraph: the subgraph's table.
        memory: counts constants that are no views of the file.
    """
    rows = as_lazy_tables(subgraph.tensors)
    tensors: list[Tensor] = [None] * len(rows)  # type: ignore[list-item]
    for index, table in rows.singles:
        tensors[index] = _load_tensor(model, index, table, memory)
    for group in rows.groups:
        _load_group(model, group, tensors, memory)
    made = made_tensors(subgraph)
    for index in made:
        if tensors[index].allocation is Allocation.CONSTANT:
            # It has bytes in the file, too (onnx2tf's ScatterElements): what the node writes is its value, and the bytes are nobody's.
            tensors[index] = _without_bytes(tensors[index])
    for index, details in _blockwise_details(rows):
        tensors[index].quantization = _blockwise(tensors, details, tensors[index])
    empty = [tensor for tensor in tensors if 0 in tensor.shape and tensor.allocation is Allocation.ARENA]
    if empty:
        made.update(() if subgraph.inputs is None else subgraph.inputs.tolist())
    for tensor in empty:
        if tensor.index not in made:
            # An empty tensor that nothing writes is a constant: having no bytes, it has no buffer that would say so.
            tensor.allocation = Allocation.CONSTANT
            tensor.set_memory(np.empty(tensor.shape, tensor.dtype))
    rows.release()
    return tensors


def _without_bytes(tensor: Tensor) -> Tensor:
    """Return a copy of a tensor without the constant data that the file has for it: a node writes the tensor."""
    return Tensor(
        tensor.index,
        tensor.name,
        tensor.type,
        tensor.shape,
        shape_signature=tensor.shape_signature,
        quantization=tensor.quantization,
    )


def _load_tensor(model: Model, index: int, table: tables.Tensor, memory: MemoryAccount) -> Tensor:
    shape = () if table.shape is None else tuple(table.shape.tolist())
    tensor = Tensor(index, table.name or "", table.type, shape)
    if (signature := table.shape_signature) is not None and len(signature):
        tensor.shape_signature = stated_signature(tuple(signature.tolist()))
    if (params := table.quantization) is not None and params.scale is not None:
        tensor.quantization = _quantization(params.scale, params.zero_point, params.quantized_dimension)
    tensor.sparsity = table.sparsity
    if table.is_variable:
        tensor.is_variable = True
        tensor.allocation = Allocation.PERSISTENT
    if (raw := model.tensor_bytes(table)) is not None:
        _provide_constant(tensor, raw, model, memory)
    return tensor


def _load_group(model: Model, group: Columns[tables.Tensor], tensors: list[Tensor], memory: MemoryAccount) -> None:
    """Make the tensors of tables that have the same fields, column by column, which is faster than one by one."""
    numbers, column, values = group.positions.tolist(), group.column, group.values
    shapes: dict[tuple[int, ...], tuple[int, ...]] = {}  # one tuple for all tensors of a shape
    for index, name, type, shape in zip(numbers, column("name"), column("type"), column("shape")):
        tensors[index] = Tensor(index, name or "", type, shapes.setdefault(shape, shape) if shape else ())
    for index, signature in zip(numbers, values["shape_signature"].tuples() if "shape_signature" in values else ()):
        if signature:
            tensors[index].shape_signature = stated_signature(signature)
    for index, sparsity in zip(numbers, values.get("sparsity", ())):
        tensors[index].sparsity = sparsity
    for index, is_variable in zip(numbers, values.get("is_variable", ())):
        if is_variable:
            tensors[index].is_variable = True
            tensors[index].allocation = Allocation.PERSISTENT
    if "buffer" in values or "external_buffer" in values:
        constant = model.constant
        for index, buffer, external in zip(numbers, column("buffer"), column("external_buffer")):
            if (buffer or external) and (raw := constant(buffer, external)) is not None:
                _provide_constant(tensors[index], raw, model, memory)
    for row, quantization in _quantizations(as_lazy_tables(values.get("quantization"))):
        tensors[numbers[row]].quantization = quantization


def _provide_constant(tensor: Tensor, raw: NDArray[np.uint8], model: Model, memory: MemoryAccount) -> None:
    tensor.allocation = Allocation.CONSTANT
    shared = model.shared_values
    if shared is not None and tensor.type in _PLAIN and not shared.is_new:
        # Another interpreter may have read it: then there is nothing to keep for the time when it is read.
        found = shared.get(_constant_key(raw, tensor.type, tensor.shape, tensor.sparsity is not None))
        if found is not None:
            tensor.set_memory(found)
            return
    type, shape, sparse = tensor.type, tensor.shape, tensor.sparsity is not None
    if type in _PLAIN and not sparse:
        tensor.set_loader(partial(_view, shared, raw, type, tensor.dtype, shape))
    elif type in PACKED_BITS:
        computed = Computed(None, True, (raw.size * 8 // PACKED_BITS[type],) if sparse else shape)
        if shared is not None:
            computed = shared.keep(_constant_key(raw, type, shape, sparse), computed)
        memory.unpacks = True
        tensor.set_loader(partial(_unpacked, computed, raw, type, tensor.index, tensor.name, memory), computed)
    else:
        tensor.set_loader(partial(_read_constant, shared, raw, type, shape, tensor.index, tensor.name, memory))


def _constant_key(raw: NDArray[np.uint8], type: TensorType, shape: tuple[int, ...], sparse: bool) -> Hashable:
    """Return the key of a constant among the model's shared values, equal for tensors of equal bytes, type and shape."""
    return address_of(raw), raw.size, type, shape, sparse


def _view(shared: SharedValues | None, raw: NDArray[np.uint8], type: TensorType, dtype: Any, shape: tuple[int, ...]) -> Array:
    """Return the values of a constant that are the same in memory as in the file: a view, the same one for all interpreters."""
    array: Array = np.ndarray(shape, dtype, raw)
    array.setflags(write=False)
    return array if shared is None else shared.keep(_constant_key(raw, type, shape, False), array)


def _unpacked(
    computed: Computed, raw: NDArray[np.uint8], type: TensorType, index: int, name: str, memory: MemoryAccount
) -> Array:
    """Return the unpacked values of a constant, for which `computed` stands: those that somebody has, or new ones. Once they are read,
    they count for as long as the interpreter lives.

    Raises:
        LimitError: they would take more memory than is allowed.
    """
    count = math.prod(computed.shape)
    memory.charge_constant(count, f"tensor {index} ('{name}')", computed)
    array = computed.get()
    if array is None:
        array = unpack(raw, type, count).reshape(computed.shape)
        array.flags.writeable = False
        computed.hold(array)
        computed.let_go()  # tensors that have read it keep it, until they let it go, too
    return array


def _quantizations(rows: LazyTables[tables.QuantizationParameters]) -> Iterator[tuple[int, Quantization | None]]:
    for row, table in rows.singles:
        if table.scale is not None:
            yield row, _quantization(table.scale, table.zero_point, table.quantized_dimension)
    for group in rows.groups:
        if "scale" in group.values:
            scales = group.values["scale"].views()
            found = map(_quantization, scales, group.views("zero_point"), group.column("quantized_dimension"))
            yield from zip(group.positions.tolist(), found)


def _quantization(scales: Array, zero_points: Array | None, dimension: int) -> Quantization | None:
    if not len(scales):
        return None
    return Quantization(scales, zero_points if zero_points is not None else np.zeros(len(scales), np.int64), dimension)


def _blockwise_details(rows: LazyTables[tables.Tensor]) -> Iterator[tuple[int, tables.BlockwiseQuantization]]:
    for index, table in rows.singles:
        if table.quantization is not None and isinstance(table.quantization.details, tables.BlockwiseQuantization):
            yield index, table.quantization.details
    for group in rows.groups:
        for row, quantization in as_lazy_tables(group.values.get("quantization")).with_fields("details"):
            if isinstance(quantization.details, tables.BlockwiseQuantization):
                yield int(group.positions[row]), quantization.details


def _blockwise(tensors: Sequence[Tensor], details: tables.BlockwiseQuantization, tensor: Tensor) -> Quantization:
    """Return the quantization of a tensor whose scales are in another tensor, one per block of values (float16 in the models seen).

    Raises:
        ModelError: that tensor is no constant, or the block size is wrong.
    """
    if not 0 <= details.scales < len(tensors) or not tensors[details.scales].is_constant:
        raise ModelError(f"{tensor} is quantized by blocks, with its scales in tensor {details.scales}, which is no constant.")
    if details.block_size < 1:
        raise ModelError(f"{tensor} is quantized by blocks of {details.block_size} values; a block has at least one.")
    with np.errstate(over="ignore", invalid="ignore"):  # kernels refuse scales that are not finite
        scales = np.atleast_1d(tensors[details.scales].data.astype(np.float32))
    zero_points = np.zeros(0, np.int64)
    points = tensors[details.zero_points] if 0 < details.zero_points < len(tensors) else None
    if points is not None and points.is_constant and points.dtype.kind in "iu":  # other types are ignored; LiteRT ignores all
        zero_points = points.data.astype(np.int64).ravel()
    return Quantization(scales, zero_points, block_size=details.block_size)


def _read_constant(
    shared: SharedValues | None,
    raw: NDArray[np.uint8],
    type: TensorType,
    shape: tuple[int, ...],
    index: int,
    name: str,
    memory: MemoryAccount,
) -> Array:
    """Return a constant's values: strings, or values that are stored sparse, which are flat.

    Raises:
        LimitError: they would take more memory than is allowed.
        ModelError: the type cannot be a constant, or strings are damaged.
    """
    what = f"tensor {index} ('{name}')"
    if type is TensorType.STRING:
        memory.charge_constant(strings_nbytes(math.prod(shape), raw.size), what)
        array: Array = read_strings(raw, what)
        if array.size != int(np.prod(shape)):
            raise ModelError(f"String {what} holds {array.size} strings for the shape {list(shape)}.")
        array = array.reshape(shape)
    else:
        if type not in _PLAIN:
            raise ModelError(f"{what} is of type {type.name}, which cannot be a constant.")
        dtype = numpy_dtype(type)
        array = raw[: raw.size // dtype.itemsize * dtype.itemsize].view(dtype)
    array.flags.writeable = False
    return array if shared is None or type not in _PLAIN else shared.keep(_constant_key(raw, type, shape, True), array)


def unpack(raw: NDArray[np.uint8], type: TensorType, count: int) -> Array:
    """Unpack int4, uint4 or int2 values into one byte each, int8 or uint8; the low bits of a byte come first."""
    spare, per_byte = 8 - PACKED_BITS[type], 8 // PACKED_BITS[type]
    words = raw.astype(f"<u{per_byte}")  # of as many bytes as there are values; each gets its value in its highest bits
    words <<= spare
    spread = words.copy()
    for _ in range(1, per_byte):
        words <<= spare
        spread |= words
    values: Array = spread.view(np.uint8 if type is TensorType.UINT4 else np.int8)[:count]
    values >>= spare
    return values


def load_nodes(model: Model, subgraph: tables.SubGraph, tensors: Sequence[Tensor]) -> list[Node]:
    """Return the `Node` objects of a subgraph; they have no registrations yet."""
    rows = as_lazy_tables(subgraph.operators)
    codes = rows.column("opcode_index")
    ops = {code: model.op_at(code) for code in set(codes)}
    given: Sequence[Tensor | None] = [*tensors, None]  # index -1 stands for an optional input that is left out
    inputs, outputs, options = rows.column("inputs"), rows.column("outputs"), rows.column("builtin_options")
    if rows.has_field("builtin_options_2"):
        options = [first if first is not None else second for first, second in zip(options, rows.column("builtin_options_2"))]
    nodes = []
    input_at, output_at = given.__getitem__, tensors.__getitem__
    for index, (code, read, written, of_node) in enumerate(zip(codes, inputs, outputs, options)):
        op, name, version = ops[code]
        nodes.append(Node(index, op, name, version, map(input_at, read or ()), map(output_at, written or ()), of_node))
    if rows.has_field("intermediates"):
        for node, between in zip(nodes, rows.column("intermediates")):
            node.intermediates = [tensors[i] for i in between or ()]
    for index, table in rows.with_fields("custom_options", "large_custom_options_offset"):
        nodes[index].custom_options = model.custom_options(table)
    rows.release()
    return nodes
