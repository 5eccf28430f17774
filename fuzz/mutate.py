"""Make a broken model of a valid one.

What is done follows from the seed model and a number alone, so that `mutated(seed, name, number)` is the name of a bug.
Most mutations are made on the decoded tables: the file stays a FlatBuffer, and the damage reaches the planner and the
kernels. Some make up for what the verifier would refuse (the buffer of a constant grows with its shape), because what
every check but the last one catches is not worth a million runs. The rest is damage to the bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from fuzz import bytewise, values
from fuzz.choices import Choices, SeededChoices
from oplet.errors import ModelError
from oplet.model.operator_options import options_class
from oplet.model.sizes import bytes_needed
from oplet.schema import tables
from oplet.schema.decode import decode
from oplet.schema.encode import encode
from oplet.schema.enums import BuiltinOperator, TensorType
from oplet.schema.options import BuiltinOptions
from oplet.schema.stablehlo_options import BuiltinOptions2
from oplet.schema.table import Field, Table

__all__ = ["mutate", "mutated"]

#: Constants grow to this many bytes at most; limits are tested by shapes of tensors that have none.
_LARGEST_BUFFER = 1 << 20


def mutated(seed: bytes, name: str, number: int) -> bytes:
    """The mutation of a seed model that has this number.

    Args:
        name: the seed's name, part of what decides.
    """
    return mutate(seed, SeededChoices(f"{name} {number}"))


def mutate(seed: bytes, choices: Choices) -> bytes:
    """A broken model: some mutations of the tables, of the bytes, or both."""
    kind = choices.below(100)
    data = seed
    if kind < 88:
        root = decode(tables.Model, memoryview(seed))
        for _ in range(_count(choices)):
            choices.choice(_MUTATIONS)(choices, root)
        try:
            data = encode(root)
        except ModelError:
            return bytewise.damage(seed, choices)
    if kind >= 84:
        for _ in range(_count(choices)):
            data = bytewise.damage(data, choices)
    return data


def _count(choices: Choices) -> int:
    count = 1
    while count < 8 and choices.chance(45):
        count += 1
    return count


# Parts -------------------------------------------------------------------------------------------------------


def _subgraph(choices: Choices, root: tables.Model) -> tables.SubGraph:
    subgraphs = root.subgraphs or []
    return choices.choice(subgraphs) if subgraphs else tables.SubGraph()


def _tensor(choices: Choices, root: tables.Model) -> tables.Tensor:
    tensors = _subgraph(choices, root).tensors or []
    return choices.choice(tensors) if tensors else tables.Tensor()


def _operator(choices: Choices, root: tables.Model) -> tables.Operator:
    operators = _subgraph(choices, root).operators or []
    return choices.choice(operators) if operators else tables.Operator()


def _constant(choices: Choices, root: tables.Model) -> tuple[tables.Tensor, tables.Buffer] | None:
    buffers = root.buffers or []
    found = [
        (tensor, buffers[tensor.buffer])
        for subgraph in root.subgraphs or []
        for tensor in subgraph.tensors or []
        if 0 < tensor.buffer < len(buffers) and buffers[tensor.buffer].data is not None
    ]
    return choices.choice(found) if found else None


def _index(choices: Choices, count: int) -> int:
    """An index, mostly a valid one."""
    return choices.below(count) if count and choices.chance(85) else values.int_value(choices, -(2**31), 2**31 - 1)


# Any field of any table --------------------------------------------------------------------------------------


def _flip_field(choices: Choices, table: Table, depth: int = 0) -> None:
    """Change one field of a table, or of a table below it."""
    if not table.fields:
        return
    field: Field = choices.choice(table.fields)
    value = getattr(table, field.name)
    deeper = value is not None and depth < 4 and choices.chance(75)
    if field.kind == "scalar":
        setattr(table, field.name, values.scalar_value(choices, field, value))
    elif field.kind == "string":
        setattr(table, field.name, values.text(choices))
    elif field.kind == "vector":
        setattr(table, field.name, values.vector_value(choices, field.dtype, value))
    elif field.kind == "tables":
        if deeper and value:
            _flip_field(choices, choices.choice(value), depth + 1)
        else:
            setattr(table, field.name, _list_value(choices, field, value))
    elif deeper:
        _flip_field(choices, value, depth + 1)
    elif field.kind == "table":
        setattr(table, field.name, None if value is not None or field.table is None else _fresh(choices, field.table))
    else:
        members = list((field.members or {}).values())
        setattr(table, field.name, _fresh(choices, choices.choice(members)) if choices.chance(70) else None)


def _list_value(choices: Choices, field: Field, value: list[Any] | None) -> list[Any] | None:
    kind = choices.below(8)
    items = list(value or [])
    if kind == 0:
        return None
    if kind == 1:
        return []
    if kind == 2 and items:
        del items[choices.below(len(items))]
    elif kind == 3 and items:
        items.insert(choices.below(len(items) + 1), choices.choice(items))
    elif kind == 4 and len(items) > 1:
        i, j = choices.below(len(items)), choices.below(len(items))
        items[i], items[j] = items[j], items[i]
    elif kind == 5 and items:
        items = (items * 50)[:500]
    elif field.table is not None:
        items.append(_fresh(choices, field.table))
    return items


def _fresh(choices: Choices, cls: type[Table]) -> Table:
    """A table with some fields set, mostly to sizes and members that make sense."""
    table = cls()
    for field in cls.fields:
        if field.kind == "scalar" and choices.chance(80):
            name = field.flags.__name__
            if field.enum is not None:
                setattr(table, field.name, choices.choice(list(field.enum)))
            elif name == "BoolFlags":
                setattr(table, field.name, choices.chance(50))
            elif name == "Float32Flags":
                setattr(table, field.name, choices.choice((1.0, 0.5, values.float_value(choices))))
            else:
                value = values.small_int(choices)
                setattr(table, field.name, max(value, int(field.flags.min_val)))
        elif field.kind == "vector" and choices.chance(50):
            array = np.zeros(choices.below(5), field.dtype)
            values.fill_array(choices, array)
            setattr(table, field.name, array)
    return table


def _anything(choices: Choices, root: tables.Model) -> None:
    _flip_field(choices, root)


# Tensors -----------------------------------------------------------------------------------------------------


def _tensor_field(choices: Choices, root: tables.Model) -> None:
    _flip_field(choices, _tensor(choices, root))


def _shape(choices: Choices, root: tables.Model) -> None:
    tensor = _tensor(choices, root)
    tensor.shape = values.vector_value(choices, np.dtype("<i4"), tensor.shape)
    if choices.chance(70):
        _refit(choices, root, tensor)


def _small_shape(choices: Choices, root: tables.Model) -> None:
    """A shape that fits into memory and says something else than the node expects."""
    tensor = _tensor(choices, root)
    dims = [] if tensor.shape is None else tensor.shape.tolist()
    kind = choices.below(5)
    if kind == 0:
        dims = [choices.choice((0, 1, 2, 3, 4, 5)) for _ in range(choices.below(7))]
    elif kind == 1 and dims:
        dims[choices.below(len(dims))] = choices.choice((0, 1, 2, 3, 5, 8, 17))
    elif kind == 2:
        dims.insert(choices.below(len(dims) + 1), choices.choice((0, 1, 2)))
    elif kind == 3 and dims:
        del dims[choices.below(len(dims))]
    else:
        dims = dims[::-1]
    tensor.shape = np.array(dims, np.int32)
    _refit(choices, root, tensor)


def _type(choices: Choices, root: tables.Model) -> None:
    tensor = _tensor(choices, root)
    tensor.type = choices.choice(list(TensorType))
    if choices.chance(90):
        _refit(choices, root, tensor)


def _same_type(choices: Choices, root: tables.Model) -> None:
    """Another type for all tensors of the type of one: what checks that types agree lets it pass."""
    old, new = _tensor(choices, root).type, choices.choice(list(TensorType))
    for subgraph in root.subgraphs or []:
        for tensor in subgraph.tensors or []:
            if tensor.type == old:
                tensor.type = new
                _refit(choices, root, tensor)


def _refit(choices: Choices, root: tables.Model, tensor: tables.Tensor) -> None:
    """Give a constant the bytes that its shape and type ask for."""
    buffers = root.buffers or []
    if not 0 < tensor.buffer < len(buffers):
        return
    shape = [] if tensor.shape is None else tensor.shape.tolist()
    if tensor.type not in TensorType.__members__.values() or min(shape, default=0) < 0:
        return
    needed = bytes_needed(shape, TensorType(tensor.type))
    data = buffers[tensor.buffer].data
    if needed is None or needed > _LARGEST_BUFFER or data is None or needed == data.size:
        return
    buffers.append(tables.Buffer(data=np.resize(data, needed) if data.size else np.zeros(needed, np.uint8)))
    tensor.buffer = len(buffers) - 1


def _quantization(choices: Choices, root: tables.Model) -> None:
    tensor = _tensor(choices, root)
    quantization = tensor.quantization = tensor.quantization or tables.QuantizationParameters()
    kind = choices.below(9)
    if kind == 0:
        tensor.quantization = None
    elif kind <= 2:
        quantization.scale = values.vector_value(choices, np.dtype("<f4"), quantization.scale)
    elif kind == 3:
        quantization.zero_point = values.vector_value(choices, np.dtype("<i8"), quantization.zero_point)
    elif kind == 4:
        quantization.quantized_dimension = values.int_value(choices, -(2**31), 2**31 - 1)
    elif kind == 5:
        dims = [1] if tensor.shape is None or not tensor.shape.size else tensor.shape.tolist()
        axis = choices.below(len(dims))
        count = min(max(dims[axis], 0), 1000)
        quantization.quantized_dimension = axis
        quantization.scale = np.full(count, choices.choice((0.5, 1.0, 1e-9, 1e9)), np.float32)
        quantization.zero_point = np.full(count, choices.choice((0, 0, 1, -128)), np.int64)
    elif kind == 6:
        quantization.scale = np.array([values.float_value(choices)], np.float32)
        quantization.zero_point = np.array([values.int_value(choices, -(2**63), 2**63 - 1)], np.int64)
    elif kind == 7:
        quantization.scale = np.array([abs(values.float_value(choices)) or 1.0], np.float32)
        quantization.zero_point = np.array([choices.below(200) - 100], np.int64)
    else:
        _flip_field(choices, quantization)


def _all_quantized(choices: Choices, root: tables.Model) -> None:
    """One scale for every tensor: a quantized kernel in place of a float one."""
    type = choices.choice((TensorType.INT8, TensorType.UINT8, TensorType.INT16, TensorType.INT4, TensorType.INT32))
    scale = np.array([choices.choice((0.1, 1.0, 1e-6, 1e6))], np.float32)
    for subgraph in root.subgraphs or []:
        for tensor in subgraph.tensors or []:
            if tensor.type == TensorType.FLOAT32 and choices.chance(85):
                tensor.type = type
                tensor.quantization = tables.QuantizationParameters(scale=scale, zero_point=np.zeros(1, np.int64))
                _refit(choices, root, tensor)


def _sparsity(choices: Choices, root: tables.Model) -> None:
    found = [t for s in root.subgraphs or [] for t in s.tensors or [] if t.sparsity is not None]
    tensor = choices.choice(found) if found else _tensor(choices, root)
    if tensor.sparsity is None:
        rank = 0 if tensor.shape is None else tensor.shape.size
        dims = [] if tensor.shape is None else tensor.shape.tolist()
        tensor.sparsity = tables.SparsityParameters(
            traversal_order=np.arange(rank, dtype=np.int32),
            dim_metadata=[tables.DimensionMetadata(dense_size=dim) for dim in dims],
        )
    _flip_field(choices, tensor.sparsity)


# Constants ---------------------------------------------------------------------------------------------------


def _constant_values(choices: Choices, root: tables.Model) -> None:
    """Other values in a constant: axes, permutations, sizes, indices, weights."""
    found = _constant(choices, root)
    if found is None:
        return
    tensor, buffer = found
    data = np.array(buffer.data, np.uint8)
    dtype = _DTYPES.get(tensor.type)
    if dtype is None or data.size < dtype.itemsize:
        buffer.data = values.vector_value(choices, data.dtype, data)
        return
    array = data[: data.size // dtype.itemsize * dtype.itemsize].view(dtype)
    for _ in range(1 + choices.below(3)):
        at = choices.below(array.size)
        if dtype.kind in "iu" and choices.chance(60):
            info = np.iinfo(dtype)
            array[at] = min(max(values.small_int(choices), info.min), info.max)
        else:
            values.fill_array(choices, array[at : at + 1])
    buffer.data = data


_DTYPES: dict[TensorType, np.dtype[Any]] = {
    TensorType.FLOAT32: np.dtype("<f4"), TensorType.FLOAT16: np.dtype("<f2"), TensorType.INT32: np.dtype("<i4"),
    TensorType.UINT8: np.dtype("u1"), TensorType.INT64: np.dtype("<i8"), TensorType.BOOL: np.dtype("?"),
    TensorType.INT16: np.dtype("<i2"), TensorType.INT8: np.dtype("i1"), TensorType.FLOAT64: np.dtype("<f8"),
    TensorType.UINT64: np.dtype("<u8"), TensorType.UINT32: np.dtype("<u4"), TensorType.UINT16: np.dtype("<u2"),
    TensorType.COMPLEX64: np.dtype("<c8"), TensorType.STRING: np.dtype("<i4"),
}  # fmt: skip


def _buffer_bytes(choices: Choices, root: tables.Model) -> None:
    buffers = root.buffers or []
    if not buffers:
        return
    buffer = choices.choice(buffers)
    kind = choices.below(5)
    if kind == 0:
        buffer.offset = values.int_value(choices, 0, 2**64 - 1)
        buffer.size = values.int_value(choices, 0, 2**64 - 1)
        buffer.data = None
    elif kind == 1:
        buffer.data = None
    elif kind == 2 and buffer.data is not None:
        buffer.data = buffer.data[: choices.below(buffer.data.size + 1)]
    else:
        buffer.data = np.frombuffer(choices.raw(choices.choice((1, 4, 16, 100))), np.uint8)


def _share_buffer(choices: Choices, root: tables.Model) -> None:
    _tensor(choices, root).buffer = choices.below(len(root.buffers or []) + 1)


def _constant_to_input(choices: Choices, root: tables.Model) -> None:
    """What was known when the model was loaded comes only at run time: the checks of prepare must be in invoke too."""
    for subgraph in root.subgraphs or []:
        tensors = subgraph.tensors or []
        constants = [i for i, tensor in enumerate(tensors) if tensor.buffer]
        if constants and choices.chance(70):
            index = choices.choice(constants)
            tensors[index].buffer = 0
            inputs = [] if subgraph.inputs is None else subgraph.inputs.tolist()
            subgraph.inputs = np.array([*inputs, index], np.int32)


def _variable(choices: Choices, root: tables.Model) -> None:
    tensor = _tensor(choices, root)
    tensor.is_variable = not tensor.is_variable


# Nodes -------------------------------------------------------------------------------------------------------


def _options(choices: Choices, root: tables.Model) -> None:
    operator = _operator(choices, root)
    options = operator.builtin_options or operator.builtin_options_2
    if options is not None:
        _flip_field(choices, options)
    else:
        _flip_field(choices, operator)


def _new_options(choices: Choices, root: tables.Model) -> None:
    operator = _operator(choices, root)
    codes = root.operator_codes or []
    cls: type[Table] | None = None
    if operator.opcode_index < len(codes):
        number = max(int(codes[operator.opcode_index].builtin_code), codes[operator.opcode_index].deprecated_builtin_code)
        cls = options_class(BuiltinOperator(number)) if number in _OPERATORS else None
    if cls is None or choices.chance(15):
        cls = choices.choice(_all_options())
    _set_options(choices, operator, cls)


def _set_options(choices: Choices, operator: tables.Operator, cls: type[Table] | None) -> None:
    operator.builtin_options = operator.builtin_options_2 = None
    if cls is not None:
        options = _fresh(choices, cls)
        if cls in _second_options():
            operator.builtin_options_2 = options
        else:
            operator.builtin_options = options


_OPERATORS = frozenset(int(op) for op in BuiltinOperator)


@cache
def _all_options() -> list[type[Table]]:
    return [*BuiltinOptions.values(), *BuiltinOptions2.values()]


@cache
def _second_options() -> frozenset[type[Table]]:
    return frozenset(BuiltinOptions2.values())


def _other_op(choices: Choices, root: tables.Model) -> None:
    """Another operator on the same tensors, with options of its own."""
    codes = root.operator_codes = list(root.operator_codes or [])
    op = choices.choice(list(BuiltinOperator))
    codes.append(
        tables.OperatorCode(
            builtin_code=op, deprecated_builtin_code=min(int(op), 127), version=choices.choice((1, 1, 2, 3, 4, 5, 6, 7))
        )
    )
    operator = _operator(choices, root)
    operator.opcode_index = len(codes) - 1
    if choices.chance(80):
        _set_options(choices, operator, options_class(op))


def _version(choices: Choices, root: tables.Model) -> None:
    if root.operator_codes:
        code = choices.choice(root.operator_codes)
        if choices.chance(70):
            code.version = 1 + choices.below(12)
        else:
            _flip_field(choices, code)


def _node_tensors(choices: Choices, root: tables.Model) -> None:
    """Rewire a node."""
    subgraph = _subgraph(choices, root)
    if not subgraph.operators:
        return
    operator = choices.choice(subgraph.operators)
    name = choices.choice(("inputs", "inputs", "inputs", "outputs", "intermediates"))
    value = getattr(operator, name)
    items = [] if value is None else value.tolist()
    count = len(subgraph.tensors or [])
    kind = choices.below(7)
    if kind == 0 and items:
        items[choices.below(len(items))] = -1
    elif kind == 1 and items:
        items.pop()
    elif kind == 2:
        items.append(_index(choices, count))
    elif kind == 3 and len(items) > 1:
        items.reverse()
    elif kind == 4 and items:
        items = [items[0]] * len(items)
    elif items:
        items[choices.below(len(items))] = _index(choices, count)
    setattr(operator, name, np.array(items, np.int32))


def _nodes(choices: Choices, root: tables.Model) -> None:
    """Drop, duplicate, or reorder nodes."""
    subgraph = _subgraph(choices, root)
    operators = list(subgraph.operators or [])
    if not operators:
        return
    kind = choices.below(4)
    at = choices.below(len(operators))
    if kind == 0:
        del operators[at]
    elif kind == 1:
        operators.insert(choices.below(len(operators) + 1), operators[at])
    elif kind == 2:
        other = choices.below(len(operators))
        operators[at], operators[other] = operators[other], operators[at]
    else:
        operators.reverse()
    subgraph.operators = operators


def _chain(choices: Choices, root: tables.Model) -> None:
    """A second node after a node: another operator reads what it writes."""
    subgraph = _subgraph(choices, root)
    tensors, operators = subgraph.tensors, subgraph.operators
    outputs = [] if subgraph.outputs is None else subgraph.outputs.tolist()
    if not tensors or operators is None or not outputs or not 0 <= outputs[0] < len(tensors):
        return
    source = tensors[outputs[0]]
    subgraph.tensors = [
        *tensors,
        tables.Tensor(name="after", shape=source.shape, type=source.type, quantization=source.quantization),
    ]
    operand = [outputs[0]] * (1 + choices.below(3))
    subgraph.operators = [
        *operators, tables.Operator(inputs=np.array(operand, np.int32), outputs=np.array([len(tensors)], np.int32))
    ]  # fmt: skip
    subgraph.outputs = np.array([*outputs[1:], len(tensors)], np.int32)
    last = subgraph.operators[-1]
    codes = root.operator_codes = list(root.operator_codes or [])
    op = choices.choice(list(BuiltinOperator))
    codes.append(tables.OperatorCode(builtin_code=op, deprecated_builtin_code=min(int(op), 127), version=1 + choices.below(3)))
    last.opcode_index = len(codes) - 1
    _set_options(choices, last, options_class(op))


def _custom_options(choices: Choices, root: tables.Model) -> None:
    operator = _operator(choices, root)
    if operator.custom_options is not None and operator.custom_options.size and choices.chance(70):
        data = operator.custom_options.tobytes()
        operator.custom_options = np.frombuffer(bytewise.damage(data, choices), np.uint8)
    elif choices.chance(50):
        operator.custom_options = np.frombuffer(choices.raw(1 + choices.below(64)), np.uint8)
    else:
        operator.large_custom_options_offset = values.int_value(choices, 0, 2**64 - 1)
        operator.large_custom_options_size = values.int_value(choices, 0, 2**64 - 1)


# Subgraphs and signatures ------------------------------------------------------------------------------------


def _borders(choices: Choices, root: tables.Model) -> None:
    """Other inputs or outputs of a subgraph."""
    subgraph = _subgraph(choices, root)
    name = choices.choice(("inputs", "outputs"))
    value = getattr(subgraph, name)
    items = [] if value is None else value.tolist()
    kind = choices.below(5)
    if kind == 0 and items:
        items.pop(choices.below(len(items)))
    elif kind == 1:
        items.append(_index(choices, len(subgraph.tensors or [])))
    elif kind == 2 and items:
        items.append(items[0])
    elif items:
        items[choices.below(len(items))] = _index(choices, len(subgraph.tensors or []))
    setattr(subgraph, name, np.array(items, np.int32))


def _calls(choices: Choices, root: tables.Model) -> None:
    """Other subgraphs for control flow to call."""
    subgraphs = root.subgraphs or []
    found = [
        (options, field)
        for subgraph in subgraphs
        for operator in subgraph.operators or []
        for options in (operator.builtin_options, operator.builtin_options_2)
        if options is not None
        for field in options.fields
        if "subgraph" in field.name
    ]
    if found:
        options, field = choices.choice(found)
        index = _index(choices, len(subgraphs))
        setattr(options, field.name, index if field.kind == "scalar" else np.full(1 + choices.below(3), index, field.dtype))
    elif len(subgraphs) == 1:
        root.subgraphs = [*subgraphs, decode(tables.SubGraph, memoryview(encode(subgraphs[0])))]
        _other_op(choices, root)


def _subgraph_field(choices: Choices, root: tables.Model) -> None:
    _flip_field(choices, _subgraph(choices, root), 3)


def _signature(choices: Choices, root: tables.Model) -> None:
    if not root.signature_defs:
        index = _index(choices, len(root.subgraphs or []))
        subgraph = (root.subgraphs or [tables.SubGraph()])[0]
        names = {
            role: [
                tables.TensorMap(name=f"{role}{i}", tensor_index=max(t, 0))
                for i, t in enumerate([] if value is None else value.tolist())
            ]
            for role, value in (("inputs", subgraph.inputs), ("outputs", subgraph.outputs))
        }
        root.signature_defs = [tables.SignatureDef(signature_key="serve", subgraph_index=max(index, 0), **names)]
    if choices.chance(70):
        _flip_field(choices, choices.choice(root.signature_defs))


def _metadata(choices: Choices, root: tables.Model) -> None:
    entries = root.metadata = list(root.metadata or [])
    if not entries or choices.chance(30):
        name = choices.choice(("min_runtime_version", "CONTROL_DEPENDENCIES", "x", "stablehlo"))
        buffers = root.buffers = list(root.buffers or [])
        buffers.append(tables.Buffer(data=np.frombuffer(choices.raw(choices.choice((0, 1, 8, 16, 40))), np.uint8)))
        entries.append(tables.Metadata(name=name, buffer=len(buffers) - 1))
    else:
        _flip_field(choices, choices.choice(entries))


Mutation = Callable[[Choices, tables.Model], None]

#: What is done, as often as it stands here.
_MUTATIONS: tuple[Mutation, ...] = (
    *[_options] * 6, *[_new_options] * 2, *[_small_shape] * 5, *[_shape] * 3, *[_type] * 3, *[_same_type] * 2,
    *[_quantization] * 4, *[_all_quantized] * 1, *[_constant_values] * 6, *[_constant_to_input] * 4, *[_buffer_bytes] * 2,
    *[_share_buffer] * 1, *[_tensor_field] * 2, *[_variable] * 1, *[_sparsity] * 1, *[_other_op] * 4, *[_version] * 1,
    *[_node_tensors] * 4, *[_nodes] * 2, *[_chain] * 2, *[_custom_options] * 1, *[_borders] * 2, *[_calls] * 2,
    *[_subgraph_field] * 1, *[_signature] * 1, *[_metadata] * 1, *[_anything] * 1,
)  # fmt: skip
