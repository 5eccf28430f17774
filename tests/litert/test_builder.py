"""Whatever the builder writes, LiteRT loads; what LiteRT can run gives oplet's numbers; and all of it reads back equal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budgets import examples

from oplet import Interpreter, Model, OpResolverType
from oplet.builder import (
    BlockwiseQuantization,
    CustomQuantization,
    ModelBuilder,
    QuantizationParameters,
    SubgraphBuilder,
    TensorType,
    pack_values,
    sparsify,
)
from oplet.model.verify.verifier import verify
from oplet.schema import tables
from oplet.schema.options import (
    AddOptions,
    AssignVariableOptions,
    CallOnceOptions,
    ConcatenationOptions,
    FullyConnectedOptions,
    IfOptions,
    MulOptions,
    ReadVariableOptions,
    ReshapeOptions,
    SoftmaxOptions,
    TransposeOptions,
    VarHandleOptions,
)
from oplet_testing import invoke, litert_interpreter

schema = pytest.importorskip("ai_edge_litert.schema_py_generated")

#: How many examples a property gets; LiteRT's interpreter and both runs take milliseconds each.
EXAMPLES = settings(max_examples=examples(100), deadline=None)

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
SHAPES = st.lists(st.integers(1, 3), min_size=1, max_size=3)


class Written(NamedTuple):
    """A model, and what the builder's tables said when it was written."""

    data: bytes
    root: tables.Model
    custom: bool


def load(data: bytes) -> Any:
    """LiteRT's interpreter, without delegates, by the kernels that define the numbers."""
    return litert_interpreter("BUILTIN_REF")(model_content=data)


def run(interpreter: Any, seed: int) -> list[Any]:
    random = np.random.default_rng(seed)
    values = [random.integers(-3, 4, d["shape"]).astype(d["dtype"]) for d in interpreter.get_input_details()]
    return invoke(interpreter, *values)


# A graph grows by steps: each takes a float32 tensor that exists and adds nodes that make another.

Step = Callable[[st.DataObject, SubgraphBuilder, int, list[int], str], tuple[int, list[int]]]


def constant_of(data: st.DataObject, graph: SubgraphBuilder, shape: list[int], name: str) -> int:
    """A float32 constant: written once, in a buffer that an earlier one has, or in an unusual type that is cast."""
    values = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape) % 5 - 2
    kind = data.draw(st.sampled_from(["data", "bytes", "buffer"]))
    if kind == "buffer":
        buffer = graph.model.add_buffer(pack_values(values, TensorType.FLOAT32))
        graph.add_tensor(f"{name} twin", np.float32, shape, buffer=buffer)
        return graph.add_tensor(name, np.float32, shape, buffer=buffer)
    return graph.add_tensor(name, np.float32, shape, data=values if kind == "data" else values.tobytes())


def unary(data: st.DataObject, graph: SubgraphBuilder, x: int, shape: list[int], name: str) -> tuple[int, list[int]]:
    op = data.draw(st.sampled_from(["RELU", "RELU6", "ABS", "NEG", "FLOOR", "SQUARE", "RELU_N1_TO_1", "SIGN"]))
    y = graph.add_tensor(name, np.float32, shape)
    graph.add_operator(op, [x], [y])
    return y, shape


def binary(data: st.DataObject, graph: SubgraphBuilder, x: int, shape: list[int], name: str) -> tuple[int, list[int]]:
    op, options = data.draw(st.sampled_from([("ADD", AddOptions()), ("MUL", MulOptions())]))
    other = constant_of(data, graph, shape, f"{name} other") if data.draw(st.booleans()) else x
    y = graph.add_tensor(name, np.float32, shape)
    graph.add_operator(op, [x, other], [y], options)
    return y, shape


def reshape(data: st.DataObject, graph: SubgraphBuilder, x: int, shape: list[int], name: str) -> tuple[int, list[int]]:
    target = [int(np.prod(shape))]
    sizes = graph.add_tensor(f"{name} sizes", np.int32, [1], data=target)
    options = data.draw(st.sampled_from([None, ReshapeOptions(new_shape=np.array(target, np.int32))]))
    y = graph.add_tensor(name, np.float32, target)
    graph.add_operator("RESHAPE", [x, sizes], [y], options)
    return y, target


def transpose(data: st.DataObject, graph: SubgraphBuilder, x: int, shape: list[int], name: str) -> tuple[int, list[int]]:
    order = data.draw(st.permutations(range(len(shape))))
    permutation = graph.add_tensor(f"{name} order", np.int32, [len(shape)], data=order)
    y = graph.add_tensor(name, np.float32, made := [shape[i] for i in order])
    graph.add_operator("TRANSPOSE", [x, permutation], [y], TransposeOptions())
    return y, made


def concatenation(data: st.DataObject, graph: SubgraphBuilder, x: int, shape: list[int], name: str) -> tuple[int, list[int]]:
    axis = data.draw(st.integers(0, len(shape) - 1))
    made = [n * (2 if i == axis else 1) for i, n in enumerate(shape)]
    y = graph.add_tensor(name, np.float32, made)
    graph.add_operator("CONCATENATION", [x, x], [y], ConcatenationOptions(axis=axis))
    return y, made


def softmax(data: st.DataObject, graph: SubgraphBuilder, x: int, shape: list[int], name: str) -> tuple[int, list[int]]:
    y = graph.add_tensor(name, np.float32, shape)
    graph.add_operator("SOFTMAX", [x], [y], SoftmaxOptions(beta=1.0))
    return y, shape


def quantized(data: st.DataObject, graph: SubgraphBuilder, x: int, shape: list[int], name: str) -> tuple[int, list[int]]:
    """There and back, through a type that is quantized as a whole."""
    type = data.draw(st.sampled_from([TensorType.INT8, TensorType.UINT8, TensorType.INT16]))
    zero_point = 0 if type is TensorType.INT16 else data.draw(st.integers(0, 5))
    inner = graph.add_tensor(f"{name} q", type, shape, scale=data.draw(st.sampled_from([0.5, 1.0])), zero_point=zero_point)
    y = graph.add_tensor(name, np.float32, shape)
    graph.add_operator("QUANTIZE", [x], [inner])
    graph.add_operator("DEQUANTIZE", [inner], [y])
    return y, shape


def hybrid(data: st.DataObject, graph: SubgraphBuilder, x: int, shape: list[int], name: str) -> tuple[int, list[int]]:
    """A fully connected layer whose weights are float, int8 or int4, quantized as a whole or by row."""
    type = data.draw(st.sampled_from([TensorType.FLOAT32, TensorType.INT8, TensorType.INT4]))
    rows, depth = 3, shape[-1]
    values = np.arange(rows * depth).reshape(rows, depth) % 7 - 3
    many = type is TensorType.INT8 and data.draw(st.booleans())
    scale: Any = None if type is TensorType.FLOAT32 else [0.5, 1, 2] if many else 0.5
    w = graph.add_tensor(f"{name} w", type, [rows, depth], data=values, scale=scale)
    made = [int(np.prod(shape[:-1])), rows]
    y = graph.add_tensor(name, np.float32, made)
    graph.add_operator("FULLY_CONNECTED", [x, w, None], [y], FullyConnectedOptions())
    return y, made


STEPS: list[Step] = [unary, binary, reshape, transpose, concatenation, softmax, quantized, hybrid]


def decorate(data: st.DataObject, builder: ModelBuilder, graph: SubgraphBuilder) -> None:
    """Tensors that no node reads, of every kind: readers must take them all the same."""
    for number in range(data.draw(st.integers(0, 3))):
        name, shape = data.draw(NAMES), data.draw(SHAPES)
        kind = data.draw(st.sampled_from(["axis", "range", "custom", "constant", "variable", "sparse", "blocks", "scalar"]))
        if kind == "axis":
            axis = data.draw(st.integers(0, len(shape) - 1))
            scales = np.arange(1, shape[axis] + 1) / 8
            values = np.zeros(shape, np.int8)
            graph.add_tensor(name, "int8", shape, data=values, scale=scales, quantized_dimension=axis)
        elif kind == "range":
            graph.add_tensor(name, "float32", shape, minimum=-1.0, maximum=1.0)
        elif kind == "custom":
            graph.add_tensor(name, "int8", shape, details=CustomQuantization(custom=np.array([1, 2], np.uint8)))
        elif kind == "constant":
            type = data.draw(st.sampled_from(CONSTANT_TYPES))
            graph.add_tensor(name, type, shape, data=np.zeros(shape, object if type is TensorType.STRING else np.int8).astype(
                "S1" if type is TensorType.STRING else np.int8))  # fmt: skip
        elif kind == "variable":
            graph.add_tensor(name, "float32", shape, is_variable=True)
        elif kind == "sparse":
            sparse = sparsify(np.eye(3, 4, k=number, dtype=np.float32))
            graph.add_tensor(name, "float32", [3, 4], data=sparse.values, sparsity=sparse.sparsity)
        elif kind == "blocks":
            scales = graph.add_tensor(f"{name} scales", "float16", [2, 1], data=np.ones((2, 1)))
            details = BlockwiseQuantization(scales=scales, zero_points=-1, block_size=32)
            graph.add_tensor(name, TensorType.INT4, [2, 32], data=np.ones((2, 32)), details=details)
        else:
            graph.add_tensor(name, data.draw(st.sampled_from(["float32", "int64", "bool"])), [], data=1)


CONSTANT_TYPES = [
    TensorType.FLOAT16, TensorType.FLOAT32, TensorType.FLOAT64, TensorType.INT4, TensorType.INT8, TensorType.INT16,
    TensorType.INT32, TensorType.INT64, TensorType.UINT8, TensorType.UINT16, TensorType.UINT32, TensorType.UINT64,
    TensorType.BOOL, TensorType.COMPLEX64, TensorType.COMPLEX128, TensorType.STRING,
]  # fmt: skip


def graph_of(data: st.DataObject, builder: ModelBuilder, name: str, steps: int) -> SubgraphBuilder:
    graph = builder.add_subgraph(name)
    shape = data.draw(SHAPES)
    free = data.draw(st.booleans())
    x = graph.add_tensor("x", "float32", [None if free and i == 0 else n for i, n in enumerate(shape)])
    shape = [1 if free and i == 0 else n for i, n in enumerate(shape)]
    graph.set_inputs(x)
    y = x
    for number in range(steps):
        y, shape = data.draw(st.sampled_from(STEPS))(data, graph, y, shape, f"t{number}")
    decorate(data, builder, graph)
    graph.set_outputs(y)
    return graph


def written(data: st.DataObject, custom: bool = False) -> Written:
    """Any model: one to three subgraphs, signatures, metadata; the first subgraph runs."""
    builder = ModelBuilder(data.draw(st.text(max_size=5)), minimum_runtime=data.draw(st.booleans()))
    for number in range(data.draw(st.integers(1, 3))):
        graph = graph_of(data, builder, data.draw(st.sampled_from(["main", "", f"g{number}"])), data.draw(st.integers(1, 4)))
        if data.draw(st.booleans()):
            table = graph.table
            builder.add_signature(f"s{number}", {data.draw(NAMES): table.inputs[0]}, {"y": table.outputs[0]}, graph)  # type: ignore[index]
        if custom:
            z = graph.add_tensor("z", "float32", [1])
            options = data.draw(st.sampled_from([b"", b"\1\2", {"a": [1, 2.5], "b": "c"}, {}]))
            graph.add_operator("Made.Up", [0], [z], custom_options=options, version=data.draw(st.sampled_from([None, 3])))
    for name in data.draw(st.lists(NAMES.filter(lambda n: n != "min_runtime_version"), max_size=2, unique=True)):
        builder.add_metadata(name, data.draw(st.binary(max_size=40)))
    return Written(builder.to_bytes(), builder.root, custom)


def reads_back(model: Written) -> None:
    read = Model.from_bytes(model.data)
    verify(read)
    assert read.root == model.root
    assert read.to_bytes() == model.data


@EXAMPLES
@given(st.data())
def test_what_the_builder_writes_loads_runs_and_reads_back(data: st.DataObject) -> None:
    model = written(data)
    reads_back(model)
    kernels = OpResolverType.BUILTIN_REF
    ours = run(Interpreter(model_content=model.data, experimental_op_resolver_type=kernels), 1)
    theirs = run(load(model.data), 1)
    for expected, found in zip(theirs, ours, strict=True):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@EXAMPLES
@given(st.data())
def test_custom_ops_read_back_through_litert_s_own_tables(data: st.DataObject) -> None:
    model = written(data, custom=True)
    reads_back(model)
    theirs = schema.ModelT.InitFromPackedBuf(model.data, 0)
    for subgraph, expected in zip(theirs.subgraphs, model.root.subgraphs or [], strict=True):
        for tensor, wanted in zip(subgraph.tensors, expected.tensors or [], strict=True):
            same_tensor(tensor, wanted)
        for operator, node in zip(subgraph.operators, expected.operators or [], strict=True):
            code = theirs.operatorCodes[operator.opcodeIndex]
            ours = (model.root.operator_codes or [])[node.opcode_index]
            assert (code.builtinCode, code.version) == (ours.builtin_code, ours.version)
            assert (code.customCode or b"").decode() == (ours.custom_code or "")
            assert listed(operator.inputs) == listed(node.inputs)
            assert listed(operator.outputs) == listed(node.outputs)
            assert listed(operator.customOptions) == listed(node.custom_options)
            assert type(operator.builtinOptions).__name__.removesuffix("T") == type(node.builtin_options).__name__ or (
                node.builtin_options is None and operator.builtinOptions is None
            )
    given_names = [(entry.name or "", entry.buffer) for entry in model.root.metadata or []]
    assert [(entry.name.decode(), entry.buffer) for entry in theirs.metadata or []] == given_names


def listed(values: Any) -> list[Any]:
    return [] if values is None else np.asarray(values).tolist()


def same_tensor(found: Any, expected: tables.Tensor) -> None:
    assert (found.type, found.buffer, found.isVariable, found.hasRank) == (
        expected.type, expected.buffer, expected.is_variable, expected.has_rank,
    )  # fmt: skip
    assert listed(found.shape) == listed(expected.shape)
    assert listed(found.shapeSignature) == listed(expected.shape_signature)
    theirs, ours = found.quantization, expected.quantization or QuantizationParameters()
    if theirs is not None:
        for name in ("scale", "zeroPoint", "min", "max"):
            assert listed(getattr(theirs, name)) == listed(getattr(ours, {"zeroPoint": "zero_point"}.get(name, name)))
        assert theirs.quantizedDimension == ours.quantized_dimension
        assert type(theirs.details).__name__.removesuffix("T") == type(ours.details).__name__ or ours.details is None
    assert (found.sparsity is None) == (expected.sparsity is None)
    if expected.sparsity is not None:
        assert listed(found.sparsity.traversalOrder) == listed(expected.sparsity.traversal_order)
        for level, wanted in zip(found.sparsity.dimMetadata, expected.sparsity.dim_metadata or [], strict=True):
            assert (level.format, level.denseSize) == (wanted.format, wanted.dense_size)
            for vector, own in ((level.arraySegments, wanted.array_segments), (level.arrayIndices, wanted.array_indices)):
                assert listed(getattr(vector, "values", None)) == listed(getattr(own, "values", None))


def test_subgraphs_variables_and_branches_run_in_both() -> None:
    """A condition chooses between two subgraphs; a counter is initialised once by a third and kept between runs."""
    builder = ModelBuilder()
    main, double, negate, start = (builder.add_subgraph(name) for name in ("main", "double", "negate", "start"))
    for graph, op, args in ((double, "ADD", [0, 0]), (negate, "NEG", [0])):
        graph.set_inputs(graph.add_tensor("x", "float32", [2]))
        graph.set_outputs(graph.add_tensor("y", "float32", [2]))
        graph.add_operator(op, args, [1], AddOptions() if op == "ADD" else None)
    handle = VarHandleOptions(container="", shared_name="count")

    def variable(graph: SubgraphBuilder) -> int:
        index = graph.add_tensor("handle", TensorType.RESOURCE, [])
        graph.add_operator("VAR_HANDLE", [], [index], handle)
        return index

    start.set_inputs()
    start.set_outputs()
    zero = start.add_tensor("zero", "float32", [2], data=[0, 0])
    start.add_operator("ASSIGN_VARIABLE", [variable(start), zero], [], AssignVariableOptions())

    choice, x = main.add_tensor("choice", "bool", []), main.add_tensor("x", "float32", [2])
    chosen, before, after = (main.add_tensor(name, "float32", [2]) for name in ("chosen", "before", "after"))
    main.set_inputs(choice, x)
    main.set_outputs(chosen, after)
    main.add_operator("CALL_ONCE", [], [], CallOnceOptions(init_subgraph_index=start.index))
    main.add_operator("IF", [choice, x], [chosen], IfOptions(then_subgraph_index=double.index, else_subgraph_index=negate.index))
    count = variable(main)
    main.add_operator("READ_VARIABLE", [count], [before], ReadVariableOptions())
    main.add_operator("ADD", [before, chosen], [after], AddOptions())
    main.add_operator("ASSIGN_VARIABLE", [count, after], [], AssignVariableOptions())
    data = builder.to_bytes()
    for interpreter in (load(data), Interpreter(model_content=data)):
        interpreter.allocate_tensors()
        seen = []
        for condition in (True, False, True):
            interpreter.set_tensor(choice, np.array(condition))
            interpreter.set_tensor(x, np.array([1, 2], np.float32))
            interpreter.invoke()
            seen.append([interpreter.get_tensor(index).tolist() for index in (chosen, after)])
        assert seen == [[[2, 4], [2, 4]], [[-1, -2], [1, 2]], [[2, 4], [3, 6]]]


@EXAMPLES
@given(st.data())
def test_sparsify_equals_the_format_converter(data: st.DataObject) -> None:
    converter = pytest.importorskip("ai_edge_litert.format_converter_wrapper_pybind11")
    rank = data.draw(st.integers(1, 4))
    blocks = {d: data.draw(st.integers(1, 3)) for d in range(rank) if data.draw(st.booleans())}
    shape = [data.draw(st.integers(1, 3)) * blocks.get(d, 1) for d in range(rank)]
    size = int(np.prod(shape))
    zeros = data.draw(st.floats(0, 1))
    random = np.random.default_rng(data.draw(st.integers(0, 2**16)))
    array = (random.integers(1, 9, size) * (random.random(size) > zeros)).astype(np.float32).reshape(shape)
    format = data.draw(st.lists(st.sampled_from(["DENSE", "SPARSE_CSR"]), min_size=rank, max_size=rank))
    order = [*data.draw(st.permutations(range(rank))), *(rank + d for d in data.draw(st.permutations(range(len(blocks)))))]
    ours = sparsify(array, format, traversal_order=order, block_map=list(blocks), block_size=list(blocks.values()))
    kinds = [getattr(converter.TfLiteDimensionType, f"TF_LITE_DIM_{kind}") for kind in format]
    theirs = converter.FormatConverterFp32(shape, order, kinds, list(blocks.values()), list(blocks))
    theirs.DenseToSparse(array.ravel().data)
    assert ours.values.tolist() == np.asarray(theirs.GetData()).tolist()
    metadata = [list(level) for level in theirs.GetDimMetadata()]
    for number, level in enumerate(ours.sparsity.dim_metadata or []):
        if level.array_segments is None:
            assert metadata[2 * number] == [level.dense_size]
        else:
            assert metadata[2 * number] == level.array_segments.values.tolist()  # type: ignore[attr-defined]
            assert metadata[2 * number + 1] == level.array_indices.values.tolist()  # type: ignore[union-attr]


SPARSE = [
    {},
    {"format": ["SPARSE_CSR", "SPARSE_CSR"]},
    {"traversal_order": [1, 0], "format": ["SPARSE_CSR", "DENSE"]},
    {"block_map": [0, 1], "block_size": [4, 4]},
    {"block_map": [1], "block_size": [4]},
]


@pytest.mark.parametrize("arguments", SPARSE)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_densify_gives_the_array_back(arguments: dict[str, Any], dtype: str) -> None:
    array = np.zeros((8, 8), dtype)
    array[1, 2:6], array[5, 0], array[7, 7] = [1, 2, 3, 4], 5, 6
    sparse = sparsify(array, **arguments)
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    graph.set_inputs()
    weights = graph.add_tensor("w", dtype, array.shape, data=sparse.values, sparsity=sparse.sparsity)
    graph.set_outputs(dense := graph.add_tensor("dense", dtype, array.shape))
    graph.add_operator("DENSIFY", [weights], [dense])
    for interpreter in (load(builder.to_bytes()), Interpreter(model_content=builder.to_bytes())):
        np.testing.assert_array_equal(run(interpreter, 0)[0], array)


@pytest.mark.parametrize("arguments", [{}, {"block_map": [1], "block_size": [4]}])
def test_a_sparse_layer_computes_what_the_dense_one_does(arguments: dict[str, Any]) -> None:
    array = np.zeros((8, 16), np.float32)
    array[1, 4:8], array[5, 12:], array[7, 0] = [1, 2, 3, 4], 5, 6
    sparse = sparsify(array, **arguments)
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = graph.add_tensor("x", "float32", [2, 16]), graph.add_tensor("y", "float32", [2, 8])
    weights = graph.add_tensor("w", "float32", array.shape, data=sparse.values, sparsity=sparse.sparsity)
    bias = graph.add_tensor("b", "float32", [8], data=np.arange(8))
    graph.set_inputs(x)
    graph.set_outputs(y)
    graph.add_operator("FULLY_CONNECTED", [x, weights, bias], [y], FullyConnectedOptions())
    data = builder.to_bytes()
    fed = np.random.default_rng(3).integers(-3, 4, (2, 16)).astype(np.float32)
    # LiteRT has no sparse kernel among its reference ones; its optimised one needs blocks of four at most.
    default = litert_interpreter("BUILTIN_WITHOUT_DEFAULT_DELEGATES")(model_content=data)
    for interpreter in (default, Interpreter(model_content=data)):
        np.testing.assert_allclose(run(interpreter, 3)[0], fed @ array.T + np.arange(8), rtol=1e-6)


def test_free_dimensions_resize_in_both() -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = graph.add_tensor("x", "float32", [None, 2]), graph.add_tensor("y", "float32", [None, 2])
    graph.set_inputs(x)
    graph.set_outputs(y)
    graph.add_operator("RELU", [x], [y])
    for interpreter in (load(builder.to_bytes()), Interpreter(model_content=builder.to_bytes())):
        [detail] = interpreter.get_input_details()
        assert detail["shape_signature"].tolist() == [-1, 2]
        interpreter.resize_tensor_input(x, [5, 2], strict=True)
        assert run(interpreter, 0)[0].shape == (5, 2)


def test_a_tensor_of_unknown_rank_loads_in_both() -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = graph.add_tensor("x", "float32", None), graph.add_tensor("y", "float32", None)
    graph.set_inputs(x)
    graph.set_outputs(y)
    graph.add_operator("RELU", [x], [y])
    for interpreter in (load(builder.to_bytes()), Interpreter(model_content=builder.to_bytes())):
        interpreter.resize_tensor_input(x, [2, 3])
        assert run(interpreter, 0)[0].shape == (2, 3)
