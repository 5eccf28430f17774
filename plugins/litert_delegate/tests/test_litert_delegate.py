"""The litert delegate: found by name, gives LiteRT's numbers, leaves the rest to oplet and says why, and moves no more than it must."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from tests.children import run_child

from oplet import Interpreter, Model, ModelBuilder, TensorType, load_delegate
from oplet.errors import InvokeError
from oplet.schema.enums import Padding
from oplet.schema.options import (
    AddOptions,
    Conv2DOptions,
    FullyConnectedOptions,
    GatherOptions,
    ReshapeOptions,
    ShapeOptions,
    SVDFOptions,
)
from oplet_testing import DelegateContract, Graph, Op, Spec, graph_model, invoke, one_op_model

F32 = np.float32
random = np.random.default_rng(5)


def opened(content: bytes, **options: Any) -> Interpreter:
    interpreter = Interpreter(model_content=content, experimental_delegates=[load_delegate("litert", options)])
    interpreter.allocate_tensors()
    return interpreter


def plan(interpreter: Interpreter) -> list[str]:
    return [report.op for report in interpreter.explain()]


def litert(content: bytes) -> Any:
    interpreter = LiteRT(model_content=content)
    interpreter.allocate_tensors()
    return interpreter


def conv(batch: int | None = 1) -> bytes:
    """CONV_2D and RELU."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", F32, [batch, 5, 5, 2])
    weights = graph.add_tensor("w", F32, [3, 3, 3, 2], data=random.standard_normal((3, 3, 3, 2)))
    bias = graph.add_tensor("b", F32, [3], data=[0.5, 0, -0.5])
    y, z = (graph.add_tensor(name, F32, [batch, 5, 5, 3]) for name in "yz")
    graph.add_operator("CONV_2D", [x, weights, bias], [y], Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1))
    graph.add_operator("RELU", [y], [z])
    graph.set_inputs(x)
    graph.set_outputs(z)
    return builder.to_bytes()


class TestContract(DelegateContract):
    delegate = "litert"
    model = conv(batch=None)
    inputs = (np.linspace(-1, 1, 50, dtype=F32).reshape(1, 5, 5, 2),)


class TestContractOfPartitions(DelegateContract):
    """Two of them, with a node of oplet's own between."""

    delegate = "litert"
    V = Spec("float32", [4])
    model = graph_model(
        Graph(
            {"x": V, "a": V, "b": V, "c": V, "shape": np.array([4], np.int32), "r": V},
            "x",
            "c b",
            [Op("ABS", "x", "a"), Op("RANDOM_UNIFORM", "shape", "r"), Op("EXP", "a", "b"), Op("ADD", "b a", "c", AddOptions())],
        )
    )
    inputs = (np.array([-1, 0, 1, 2], F32),)


def test_a_model_that_litert_serves_runs_as_one_node_with_litert_s_numbers() -> None:
    content, x = conv(), random.standard_normal((1, 5, 5, 2)).astype(F32)
    interpreter = opened(content)
    assert plan(interpreter) == ["litert"]
    np.testing.assert_array_equal(invoke(interpreter, x), invoke(litert(content), x))


V = Spec("float32", [3])
CHAIN = graph_model(
    Graph(
        {**dict.fromkeys("xabcy", V), "shape": np.array([3], np.int32), "r": V},
        "x",
        "y",
        [
            Op("ABS", "x", "a"),
            Op("RANDOM_UNIFORM", "shape", "r"),
            Op("ADD", "a r", "b", AddOptions()),
            Op("NEG", "b", "c"),
            Op("EXP", "c", "y"),
        ],
    )
)


def test_what_has_a_state_stays_with_oplet_and_the_report_says_so() -> None:
    interpreter = opened(CHAIN)
    assert sorted(plan(interpreter)) in (["RANDOM_UNIFORM", "litert", "litert"], ["RANDOM_UNIFORM", "litert"])
    [report] = interpreter.delegation_reports()
    assert report.unsupported == {1: "it has a state, which oplet keeps"}


def test_a_node_that_litert_does_not_know_is_given_back_with_the_reason() -> None:
    ids = np.array([0, 0, 1], np.int32)
    content = graph_model(
        Graph(
            {"x": V, "a": V, "ids": ids, "b": Spec("float32", [2]), "y": Spec("float32", [2])},
            "x",
            "y",
            [Op("ABS", "x", "a"), Op("SEGMENT_SUM", "a ids", "b"), Op("NEG", "b", "y")],
        )
    )
    interpreter = opened(content)
    assert plan(interpreter) == ["litert", "SEGMENT_SUM", "litert"]
    [report] = interpreter.delegation_reports()
    assert report.unsupported == {1: "LiteRT knows the shape of tensor 3 'b' (FLOAT32 [2]) only while running"}
    np.testing.assert_array_equal(invoke(interpreter, np.array([-1, 2, -3], F32)), [[-3, -3]])


@pytest.mark.parametrize(("axes", "taken"), [([0, 1], True), ([-1, 1], True), ([2, 1], True), ([0, 2], False), ([0, -1], False)])
def test_axes_that_litert_refuses_while_running_are_reversed_by_oplet(axes: list[int], taken: bool) -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", F32, [2, 3, 4])
    fixed = graph.add_tensor("axes", np.int32, [2], data=np.array(axes, np.int32))
    y = graph.add_tensor("y", F32, [2, 3, 4])
    graph.add_operator("REVERSE_V2", [x, fixed], [y])
    graph.set_inputs(x)
    graph.set_outputs(y)
    value = random.standard_normal((2, 3, 4)).astype(F32)
    interpreter = opened(builder.to_bytes())
    assert ("litert" in plan(interpreter)) == taken
    np.testing.assert_array_equal(invoke(interpreter, value)[0], np.flip(value, axes))


def test_many_nodes_that_litert_refuses_are_given_back_in_a_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    from oplet_litert_delegate import delegate as module

    count, rounds, check = 100, [], module.Engine
    monkeypatch.setattr(module, "Engine", lambda *args, **more: rounds.append(1) or check(*args, **more))
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    ids = graph.add_tensor("ids", "int32", [2], data=[0, 1])
    tensors = [graph.add_tensor(f"t{i}", F32, [2]) for i in range(2 * count + 1)]
    for i in range(0, 2 * count, 2):
        graph.add_operator("NEG", [tensors[i]], [tensors[i + 1]])
        graph.add_operator("SEGMENT_SUM", [tensors[i + 1], ids], [tensors[i + 2]])
    graph.set_inputs(tensors[0])
    graph.set_outputs(tensors[-1])
    interpreter = opened(builder.to_bytes())
    assert plan(interpreter) == ["litert", "SEGMENT_SUM"] * count
    assert len(rounds) < 2 * count


def test_it_takes_what_another_delegate_leaves() -> None:
    content, x = conv(), random.standard_normal((1, 5, 5, 2)).astype(F32)
    interpreter = Interpreter(model_content=content, experimental_delegates=[load_delegate("example"), load_delegate("litert")])
    interpreter.allocate_tensors()
    assert plan(interpreter) == ["example", "litert"]
    np.testing.assert_allclose(invoke(interpreter, x), invoke(litert(content), x), rtol=1e-5, atol=1e-6)


def test_a_custom_op_stays_with_the_package_that_brings_it() -> None:
    content = graph_model(
        Graph(dict.fromkeys("xaby", V), "x", "y", [Op("ABS", "x", "a"), Op("Atan", "a", "b"), Op("NEG", "b", "y")])
    )
    interpreter = opened(content)
    assert plan(interpreter) == ["litert", "Atan", "litert"]
    np.testing.assert_allclose(invoke(interpreter, np.array([-1, 0, 2], F32)), [-np.arctan([1, 0, 2])], rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "taken"),
    [({"min_nodes": 3}, [[2, 3, 4]]), ({"max_partitions": 1}, [[2, 3, 4]]), ({"xnnpack": 0, "num_threads": 2}, [[0], [2, 3, 4]])],
)
def test_options_limit_the_partitions(options: dict[str, Any], taken: list[list[int]]) -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, a, b, c, d, y = (graph.add_tensor(name, F32, [3]) for name in "xabcdy")
    graph.add_operator("ABS", [x], [a])
    graph.add_operator("Atan", [a], [b])
    for source, target in ((b, c), (c, d), (d, y)):
        graph.add_operator("NEG", [source], [target])
    graph.set_inputs(x)
    graph.set_outputs(y)
    interpreter = opened(builder.to_bytes(), **options)
    assert interpreter.delegation_reports()[0].partitions == taken
    np.testing.assert_allclose(invoke(interpreter, np.ones(3, F32)), [-np.arctan(np.ones(3))], rtol=1e-6)


@pytest.mark.parametrize(("key", "value"), [("min_nodes", "many"), ("num_threads", -1), ("threads", 1), ("xnnpack", 2)])
def test_an_option_that_makes_no_sense_is_refused(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=rf"Failed to load delegate from litert: .*'{key}={value}'"):
        load_delegate("litert", {key: value})


def test_border_tensors_live_in_litert_s_memory() -> None:
    interpreter = opened(conv())
    subgraph = interpreter._subgraphs[0]
    engine = subgraph.nodes[-1].user_data._current
    for port in (*engine.inputs, *engine.outputs):
        assert port.tensor.data is port.view
    interpreter.set_tensor(0, np.ones((1, 5, 5, 2), F32))
    assert (engine.inputs[0].view == 1).all()


def test_a_view_of_litert_s_memory_outlives_the_interpreter() -> None:
    interpreter = opened(conv())
    invoke(interpreter, np.ones((1, 5, 5, 2), F32))
    index = interpreter.get_output_details()[0]["index"]
    copy, view = interpreter.get_tensor(index), interpreter.tensor(index)()
    interpreter.close()
    del interpreter
    gc.collect()
    np.testing.assert_array_equal(view, copy)


def test_an_output_that_only_passes_an_input_on_is_not_the_same_memory() -> None:
    content = graph_model(
        Graph({"x": V, "y": Spec("float32", [3, 1])}, "x", "y", [Op("RESHAPE", "x", "y", ReshapeOptions(new_shape=[3, 1]))])
    )
    interpreter = opened(content)
    [y] = invoke(interpreter, np.array([1, 2, 3], F32))
    interpreter.set_tensor(0, np.zeros(3, F32))
    np.testing.assert_array_equal(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]), y)


@pytest.mark.parametrize("shape", [[], [1], [2, 3]])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_values_of_any_rank_cross_the_border(shape: list[int], dtype: str) -> None:
    spec = Spec(dtype, shape)
    content = graph_model(Graph({"x": spec, "z": spec, "y": Spec("bool", shape)}, "x z", "y", [Op("NOT_EQUAL", "x z", "y")]))
    interpreter = opened(content)
    assert plan(interpreter) == ["litert"]
    x, z = (random.integers(0, 2, shape).astype(dtype) for _ in "xz")
    np.testing.assert_array_equal(invoke(interpreter, x, z), [x != z])


def test_a_resized_model_runs_in_litert_and_an_empty_one_in_oplet() -> None:
    content = conv(batch=None)
    interpreter = opened(content)
    for batch in (1, 3, 0, 2, 1):
        interpreter.resize_tensor_input(0, [batch, 5, 5, 2])
        interpreter.allocate_tensors()
        assert plan(interpreter) == (["litert"] if batch else ["CONV_2D", "RELU"])
        x = random.standard_normal((batch, 5, 5, 2)).astype(F32)
        [y] = invoke(interpreter, x)
        assert y.shape == (batch, 5, 5, 3)
        if batch:
            reference = litert(content)
            reference.resize_tensor_input(0, x.shape)
            reference.allocate_tensors()
            np.testing.assert_array_equal(y, invoke(reference, x)[0])


def test_shapes_that_oplet_works_out_for_a_part_are_worked_out_again_after_a_resize() -> None:
    """SHAPE stays with oplet, which knows its result before the model runs; the part has it as a constant."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, flat = graph.add_tensor("x", F32, [None, 2]), graph.add_tensor("flat", F32, [2])
    like, shape = graph.add_tensor("like", F32, [2]), graph.add_tensor("shape", "int32", [1])
    y = graph.add_tensor("y", F32, [2])
    graph.add_operator("SHAPE", [like], [shape], ShapeOptions(out_type=TensorType.INT32))
    graph.add_operator("RESHAPE", [x, shape], [flat])
    graph.add_operator("NEG", [flat], [y])
    graph.set_inputs(x, like)
    graph.set_outputs(y)
    interpreter = opened(builder.to_bytes())
    for rows in (3, 1, 4):
        interpreter.resize_tensor_input(x, [rows, 2])
        interpreter.resize_tensor_input(like, [rows * 2])
        interpreter.allocate_tensors()
        assert "litert" in plan(interpreter)
        value = random.standard_normal((rows, 2)).astype(F32)
        np.testing.assert_array_equal(invoke(interpreter, value, np.zeros(rows * 2, F32)), [-value.ravel()])


def svdf() -> bytes:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", F32, [1, 3])
    features = graph.add_tensor("features", F32, [4, 3], data=random.standard_normal((4, 3)))
    time = graph.add_tensor("time", F32, [4, 2], data=random.standard_normal((4, 2)))
    state = graph.add_tensor("state", F32, [1, 8], is_variable=True)
    y = graph.add_tensor("y", F32, [1, 4])
    graph.add_operator("SVDF", [x, features, time, None, state], [y], SVDFOptions(rank=1))
    graph.set_inputs(x)
    graph.set_outputs(y)
    return builder.to_bytes()


def test_a_state_of_one_node_is_kept_from_run_to_run_and_reset_with_oplet_s() -> None:
    content = svdf()
    interpreter, reference = opened(content), litert(content)
    assert plan(interpreter) == ["litert"]
    for _ in range(2):
        for _ in range(3):
            x = random.standard_normal((1, 3)).astype(F32)
            np.testing.assert_allclose(invoke(interpreter, x), invoke(reference, x), rtol=1e-5, atol=1e-6)
        interpreter.reset_all_variables()
        reference.reset_all_variables()


def test_float16_weights_are_unpacked_by_litert() -> None:
    """Also by the second of two partitions that use them."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, a, b, y = (graph.add_tensor(name, F32, [1, 3]) for name in "xaby")
    narrow = graph.add_tensor("narrow", "float16", [3, 3], data=random.standard_normal((3, 3)).astype(np.float16))
    wide = graph.add_tensor("wide", F32, [3, 3])
    graph.add_operator("DEQUANTIZE", [narrow], [wide])
    graph.add_operator("FULLY_CONNECTED", [x, wide, None], [a], FullyConnectedOptions())
    graph.add_operator("Atan", [a], [b])
    graph.add_operator("FULLY_CONNECTED", [b, wide, None], [y], FullyConnectedOptions())
    graph.set_inputs(x)
    graph.set_outputs(y)
    content = builder.to_bytes()
    interpreter = opened(content)
    assert plan(interpreter)[-3:] == ["litert", "Atan", "litert"]
    for kernel in interpreter._subgraphs[0].nodes[-2:]:
        part = Model.from_bytes(kernel.user_data._current.part.content)
        assert [part.op_of(operator)[1] for operator in part.root.subgraphs[0].operators] == ["DEQUANTIZE", "FULLY_CONNECTED"]
    value = random.standard_normal((1, 3)).astype(F32)
    plain = Interpreter(model_content=content)
    plain.allocate_tensors()
    np.testing.assert_allclose(invoke(interpreter, value), invoke(plain, value), rtol=1e-5, atol=1e-6)


def test_weights_that_litert_unpacks_are_not_kept_unpacked_by_oplet() -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y, wide = (graph.add_tensor(name, F32, shape) for name, shape in (("x", [None, 3]), ("y", [None, 3]), ("wide", [3, 3])))
    narrow = graph.add_tensor("narrow", "float16", [3, 3], data=np.eye(3, dtype=np.float16))
    graph.add_operator("DEQUANTIZE", [narrow], [wide])
    graph.add_operator("FULLY_CONNECTED", [x, wide, None], [y], FullyConnectedOptions())
    graph.set_inputs(x)
    graph.set_outputs(y)
    interpreter = opened(builder.to_bytes())
    for rows in (1, 4):
        interpreter.resize_tensor_input(x, [rows, 3])
        interpreter.allocate_tensors()
        assert plan(interpreter) == ["litert"]
        assert not interpreter._subgraphs[0].tensors[wide].has_data
        value = random.standard_normal((rows, 3)).astype(F32)
        np.testing.assert_allclose(invoke(interpreter, value), [value], rtol=1e-6)
    interpreter.remove_all_delegates()
    np.testing.assert_allclose(invoke(interpreter, value), [value], rtol=1e-6)


def test_a_constant_is_written_once_however_many_nodes_read_it() -> None:
    weights = random.standard_normal((64, 64)).astype(F32)
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, a, y = (graph.add_tensor(name, F32, [1, 64]) for name in "xay")
    shared = builder.add_buffer(weights.view(np.uint8).ravel())
    first, second = (graph.add_tensor(name, F32, [64, 64], buffer=shared) for name in ("first", "second"))
    graph.add_operator("FULLY_CONNECTED", [x, first, None], [a], FullyConnectedOptions())
    graph.add_operator("FULLY_CONNECTED", [a, second, None], [y], FullyConnectedOptions())
    graph.set_inputs(x)
    graph.set_outputs(y)
    interpreter = opened(builder.to_bytes())
    kernel = interpreter._subgraphs[0].nodes[-1]
    assert len(kernel.user_data._current.part.content) < 1.5 * weights.nbytes


def test_what_fails_in_litert_while_running_is_told_with_the_node_of_the_graph() -> None:
    i32 = Spec("int32", [2])
    content = graph_model(
        Graph(
            dict.fromkeys("xzby", i32),
            "x z",
            "y",
            [Op("ABS", "z", "b"), Op("GATHER", "x b", "y", GatherOptions())],
        )
    )
    interpreter = opened(content)
    with pytest.raises(InvokeError, match=r"LiteRT says: .*\(in node 1 \(GATHER\)\)"):
        invoke(interpreter, np.ones(2, np.int32), np.array([0, 2], np.int32))
    np.testing.assert_array_equal(invoke(interpreter, np.array([4, 6], np.int32), np.array([1, 0], np.int32)), [[6, 4]])


INT8 = {"scale": 0.5, "zero_point": 0}


@pytest.mark.parametrize(
    ("op", "tensors", "why"),
    [
        ("BROADCAST_ARGS", [("int32", [2], {}), ("int32", [2], {}), ("int32", [2], {})], "ends the process where the shapes"),
        ("GREATER", [("int8", [2], {}), ("int8", [2], {}), ("bool", [2], {})], "a scale is missing"),
        ("LESS", [("uint16", [2], {}), ("uint16", [2], {}), ("bool", [2], {})], "does not compare UINT16"),
        ("NEG", [("float32", [0, 2], {}), ("float32", [0, 2], {})], "is empty"),
        ("DIV", [("int32", [2], {}), ("int32", [2], {}), ("int32", [2], {})], "divided by -1"),
        ("RESHAPE", [("float32", [2], {}), ("float32", [2], {})], "no shape is given"),
        ("SUB", [("int8", [2], INT8), ("int8", [2], INT8), ("int8", [2], {"scale": 1e-7, "zero_point": 0})], "differ so much"),
        ("ABS", [("int8", [2], {"scale": [0.5, 0.5]}), ("int8", [2], INT8)], "has several scales"),
        ("SVDF", [("int8", [1, 2], INT8)] * 6, "writes past its end"),
    ],
)  # fmt: skip
def test_what_litert_dies_on_it_does_not_see(op: str, tensors: list[Any], why: str) -> None:
    """Asked directly: some of these would not get past the built-in kernels."""
    from oplet_litert_delegate.claims import refuses

    builder = ModelBuilder()
    graph = builder.add_subgraph()
    made = [graph.add_tensor(f"t{i}", type, shape, **more) for i, (type, shape, more) in enumerate(tensors)]
    graph.add_operator(op, made[:-1], made[-1:])
    graph.set_inputs(*made[:-1])
    graph.set_outputs(made[-1])
    [node] = Interpreter(model_content=builder.to_bytes())._subgraphs[0].nodes
    assert why in refuses(node, ())


@pytest.mark.parametrize(
    ("op", "inputs", "output", "options", "taken"),
    [
        ("RFFT2D", [Spec(F32, [1, 80]), np.array([1, 80], np.int32)], Spec("complex64", [1, 41]), None, False),
        ("RFFT2D", [Spec(F32, [1, 64]), np.array([1, 64], np.int32)], Spec("complex64", [1, 33]), None, True),
        ("RFFT2D", [Spec(F32, [1, 64]), Spec("int32", [2])], Spec("complex64", [1, 33]), None, False),
        ("SQUARED_DIFFERENCE", [Spec("int16", [3], 0.1, 0)] * 2, Spec("int16", [3], 0.1, 0), None, False),
        ("SQUARED_DIFFERENCE", [Spec("int8", [3], 0.1, 0)] * 2, Spec("int8", [3], 0.1, 0), None, True),
        *(
            (
                "CONV_2D",
                [
                    Spec("int16", [1, 2, 2, 1], 0.1, 0),
                    Spec("int8", [1, 1, 1, 1], [0.1], [0], 0, data=np.ones((1, 1, 1, 1), np.int8)),
                    Spec("int32", [1], [0.01], [0], 0, data=np.ones(1, np.int32)),
                ],
                Spec("int16", [1, 2, 2, 1], 0.1, 0),
                Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1, **said),
                bool(said),
            )
            for said in ({}, {"quantized_bias_type": TensorType.INT32})
        ),
    ],
)
def test_what_oplet_runs_and_litert_does_not_stays_with_oplet(
    op: str, inputs: list[Any], output: Any, options: Any, taken: bool
) -> None:
    version = {"CONV_2D": 8, "SQUARED_DIFFERENCE": 2}.get(op, 1)
    interpreter = opened(one_op_model(op, inputs, [output], options, version=version))
    assert (plan(interpreter) != [op]) == taken
    for details in interpreter.get_input_details():
        value = [1, 64] if details["dtype"] is np.int32 else np.ones(details["shape"])
        interpreter.set_tensor(details["index"], np.array(value, details["dtype"]))
    interpreter.invoke()


def test_a_slice_to_an_offset_stays_with_oplet() -> None:
    """LiteRT reads where the offset leads, inside or not."""
    from oplet.schema.options import StridedSliceOptions
    from oplet_litert_delegate.claims import refuses

    fixed = [np.array(values, np.int32) for values in ([0], [2], [1])]
    content = one_op_model("STRIDED_SLICE", [V, *fixed], [Spec("float32", [2])], StridedSliceOptions(offset=True), version=8)
    [node] = Interpreter(model_content=content)._subgraphs[0].nodes
    assert "counts from the begin" in refuses(node, ())


def test_nobody_imports_it_or_litert_unless_asked() -> None:
    code = (
        "import sys, oplet; i = oplet.Interpreter(model_content=sys.stdin.buffer.read()); i.allocate_tensors(); i.invoke();"
        "print([m for m in sys.modules if m.startswith(('oplet_litert_delegate.', 'ai_edge_litert'))])"
    )
    done = run_child([sys.executable, "-c", code], input=conv(), text=False)
    assert done.stdout.strip() == b"[]"


def test_it_is_told_how_many_threads_the_interpreter_has() -> None:
    from oplet_litert_delegate.delegate import LiteRTDelegate
    from oplet_litert_delegate.settings import Settings

    assert LiteRTDelegate({"num_threads": 3}).settings == Settings(num_threads=3)
