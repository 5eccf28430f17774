"""What is read field by field says the same as the tables do."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest

from oplet.errors import ModelError
from oplet.model.builders.model_builder import ModelBuilder
from oplet.model.model import Model
from oplet.model.verify.verifier import verify
from oplet.runtime.loading import load_nodes, load_tensors
from oplet.runtime.memory.accounting import Limits, MemoryAccount
from oplet.schema import tables
from oplet.schema.columns import LazyTables, as_lazy_tables
from oplet.schema.decode import decode
from oplet.schema.encode import encode
from oplet.schema.enums import TensorType
from oplet.schema.options import AddOptions, ConcatenationOptions

#: More tensors and nodes than are read one by one.
MANY = 90


def chain() -> tables.Model:
    """Sums of constants, some tensors quantized as a whole, some along an axis, some with free dimensions."""
    builder = ModelBuilder("chain")
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", np.float32, [1, 3])
    graph.set_inputs(x)
    for step in range(MANY):
        c = graph.add_tensor(f"constant {step}", np.float32, [3], data=np.full(3, step, np.float32))
        y = graph.add_tensor("ü" * step, np.float32, [1, 3])
        options = AddOptions(fused_activation_function=step % 3) if step % 4 else None
        graph.add_operator("ADD", [x, c], [y], options)
        x = y
    graph.set_outputs(x)
    root = builder.build().root
    for index, tensor in enumerate(root.subgraphs[0].tensors):
        if index % 3 == 1:
            scales = np.float32([0.5]) if index % 2 else np.float32([0.5, 0.25, 1])
            axis = 0 if tensor.shape.size == 1 else 1
            tensor.quantization = tables.QuantizationParameters(
                scale=scales, zero_point=np.arange(scales.size), quantized_dimension=axis
            )
            tensor.type = TensorType.INT32
        elif index % 3 == 2:
            tensor.shape_signature = np.int32([-1, 3])
    return root


def grouped(data: bytes) -> Model:
    model = Model.from_bytes(data)
    [subgraph] = model.lazy_root.subgraphs
    assert isinstance(subgraph.tensors, LazyTables)
    assert subgraph.tensors.groups
    assert isinstance(subgraph.operators, LazyTables)
    assert subgraph.operators.groups
    return model


def listed(data: bytes) -> Model:
    return Model(decode(tables.Model, memoryview(data)), memoryview(data))


def test_the_tables_that_are_made_later_are_those_that_are_made_at_once() -> None:
    data = encode(chain())
    model = grouped(data)
    assert model.root == decode(tables.Model, memoryview(data))
    assert type(model.root.subgraphs[0].tensors) is list
    assert type(model.root.subgraphs[0].operators) is list


def test_one_row_and_a_column_say_what_the_tables_say() -> None:
    data = encode(chain())
    expected = decode(tables.Model, memoryview(data)).subgraphs[0].tensors
    rows = grouped(data).lazy_root.subgraphs[0].tensors
    assert [rows.table_at(number) for number in range(len(rows))] == expected
    assert rows.column("type") == [tensor.type for tensor in expected]
    assert rows.column("name") == [tensor.name for tensor in expected]
    assert rows.column("shape") == [tuple(tensor.shape.tolist()) for tensor in expected]
    assert [row or None for row in rows.column("shape_signature")] == [
        None if tensor.shape_signature is None else tuple(tensor.shape_signature.tolist()) for tensor in expected
    ]
    assert {number for number, _ in rows.with_fields("shape_signature")} == {
        number for number, tensor in enumerate(expected) if tensor.shape_signature is not None
    }
    assert list(as_lazy_tables(expected)) == list(rows) == expected
    assert rows[3] == expected[3]
    assert rows[:2] == expected[:2]
    assert list(islice(rows.groups[0].column("is_variable"), 2)) == [False, False]


def test_tensors_and_nodes_are_the_same_however_they_were_read() -> None:
    data = encode(chain())
    found = [load(model) for model in (grouped(data), listed(data))]
    assert found[0] == found[1]


def load(model: Model) -> list[object]:
    [subgraph] = model.lazy_root.subgraphs
    tensors = load_tensors(model, subgraph, MemoryAccount(Limits(), model))
    nodes = load_nodes(model, subgraph, tensors)
    return [
        *((t.index, t.name, t.type, t.shape, t.shape_signature, t.allocation, t.is_variable) for t in tensors),
        *((q.scales.tolist(), q.zero_points.tolist(), q.quantized_dimension) for t in tensors if (q := t.quantization)),
        *(t.data.tolist() for t in tensors if t.is_constant),
        *((n.index, n.op_name, n.version, n.raw_options, n.custom_options) for n in nodes),
        *([None if t is None else t.index for t in n.inputs] for n in nodes),
        *([t.index for t in n.outputs] for n in nodes),
    ]


def damage(change: Callable[[tables.SubGraph], None]) -> bytes:
    root = chain()
    change(root.subgraphs[0])
    return encode(root)


def set_tensor(**values: object) -> Callable[[tables.SubGraph], None]:
    return lambda graph: graph.tensors[22].__dict__.update(values)


def set_constant(**values: object) -> Callable[[tables.SubGraph], None]:
    return lambda graph: graph.tensors[21].__dict__.update(values)


def set_node(**values: object) -> Callable[[tables.SubGraph], None]:
    return lambda graph: graph.operators[14].__dict__.update(values)


def quantized(scale: object, zero_point: object = (0,), dimension: int = 0) -> tables.QuantizationParameters:
    zeros = None if zero_point is None else np.int64(zero_point)
    return tables.QuantizationParameters(scale=np.float32(scale), zero_point=zeros, quantized_dimension=dimension)


@pytest.mark.parametrize(
    "change",
    [
        set_tensor(buffer=10_000),
        set_tensor(shape=np.int32([1, -3])),
        set_tensor(shape=np.int32([1] * 65)),
        set_tensor(shape=np.int32([2**31 - 1] * 4)),
        set_tensor(shape=np.int32([2**31 - 1] * 63)),
        set_tensor(type=99),
        set_constant(shape=np.int32([4])),
        set_constant(is_variable=True),
        set_constant(type=TensorType.STRING),
        set_constant(sparsity=tables.SparsityParameters()),
        set_constant(external_buffer=7),
        set_tensor(quantization=quantized([-1])),
        set_tensor(quantization=quantized([np.nan])),
        set_tensor(quantization=quantized([1, np.inf, 1], [0, 0, 0], 1)),
        set_tensor(quantization=quantized([1, 1, 1], [0, 0, 0], 2)),
        set_tensor(quantization=quantized([1, 1], [0, 0], 1)),
        set_tensor(quantization=quantized([1], [0, 0])),
        set_tensor(quantization=quantized([1], None)),
        set_tensor(quantization=quantized([1], [2**40])),
        set_tensor(quantization=quantized([1], [128]), type=TensorType.INT8),
        set_tensor(quantization=tables.QuantizationParameters(details=tables.BlockwiseQuantization(scales=1000, block_size=1))),
        set_node(opcode_index=7),
        set_node(inputs=np.int32([1000, 1])),
        set_node(inputs=np.int32([-2, 1])),
        set_node(inputs=np.int32([40, 1])),
        set_node(inputs=np.int32([30, 1])),
        set_node(outputs=np.int32([1000])),
        set_node(outputs=np.int32([-1])),
        set_node(outputs=np.int32([0])),
        set_node(outputs=np.int32([21])),
        set_node(outputs=np.int32([6])),
        set_node(outputs=np.int32([30, 30])),
        set_node(outputs=None),
        set_node(intermediates=np.int32([1000])),
        set_node(builtin_options=AddOptions(fused_activation_function=77)),
        set_node(builtin_options=ConcatenationOptions(fused_activation_function=77)),
        set_node(large_custom_options_offset=10**6, large_custom_options_size=4),
    ],
)
def test_a_broken_rule_among_many_has_the_same_message_however_the_model_was_read(
    change: Callable[[tables.SubGraph], None],
) -> None:
    data = damage(change)
    with pytest.raises(ModelError) as one_by_one:
        verify(listed(data))
    with pytest.raises(ModelError) as together:
        verify(grouped(data))
    assert str(together.value) == str(one_by_one.value)


@pytest.mark.parametrize(
    "change",
    [
        set_tensor(shape=np.int32([]), quantization=None),
        set_tensor(shape=None, quantization=None),
        set_tensor(shape=np.int32([0, 3])),
        set_tensor(is_variable=True),
        set_tensor(quantization=quantized([], [])),
        set_tensor(quantization=quantized([0, 1, 2], [-5, 0, 5], 1)),
        set_constant(shape=np.int32([2])),
        set_node(inputs=np.int32([28, -1])),
        set_node(intermediates=np.int32([5])),
        set_node(custom_options=np.uint8([1, 2, 3])),
    ],
)
def test_what_is_unusual_among_many_passes_however_the_model_was_read(change: Callable[[tables.SubGraph], None]) -> None:
    data = damage(change)
    assert load(verified(grouped(data))) == load(verified(listed(data)))


def verified(model: Model) -> Model:
    verify(model)
    return model


def test_names_outside_ascii_are_read_among_many() -> None:
    names = [tensor.name for tensor in grouped(encode(chain())).root.subgraphs[0].tensors]
    assert names[2::2] == ["ü" * step for step in range(MANY)]
