"""What TensorFlow's tests of its interpreter ask, in our own words: of oplet's and of LiteRT's, which shows that the facts are right."""

from __future__ import annotations

import csv
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import ai_edge_litert.interpreter as litert
import numpy as np
import pytest

import oplet.interpreter
from oplet import MutableOpResolver, Registration
from oplet.builder import ModelBuilder
from oplet.schema import options as o

HERE = Path(__file__).parent

Engine = Any


@pytest.fixture(params=[litert, oplet.interpreter], ids=["litert", "oplet"])
def engine(request: pytest.FixtureRequest) -> Engine:
    """A module with the interpreter's names."""
    return request.param


def turning(dtype: str = "float32") -> bytes:
    """A model that turns a row of four round: a fully connected layer of floats, or of bytes whose scale is 1."""
    builder = ModelBuilder("turning")
    graph = builder.add_subgraph("main")
    units: dict[str, Any] = {} if dtype == "float32" else {"scale": 1.0, "zero_point": 0}
    x = graph.add_tensor("input", dtype, [1, 4], **units)
    w = graph.add_tensor("weights", dtype, [4, 4], data=np.eye(4, dtype=dtype)[::-1], **units)
    y = graph.add_tensor("output", dtype, [1, 4], **units)
    graph.add_operator("FULLY_CONNECTED", [x, w, None], [y], o.FullyConnectedOptions())
    graph.set_inputs(x)
    graph.set_outputs(y)
    return builder.build().to_bytes()


def gathering(shape: list[int]) -> bytes:
    """A model that picks strings by number."""
    builder = ModelBuilder("gathering")
    graph = builder.add_subgraph("main")
    x = graph.add_tensor("input", "bytes", shape)
    i = graph.add_tensor("indices", "int64", [3])
    y = graph.add_tensor("output", "bytes", [3])
    graph.add_operator("GATHER", [x, i], [y], o.GatherOptions())
    graph.set_inputs(x, i)
    graph.set_outputs(y)
    return builder.build().to_bytes()


def free() -> bytes:
    """A model of two additions, the number of rows free, and of a product, each a signature."""
    builder = ModelBuilder("free")
    for key, op, steps, options in (("add", "ADD", 2, o.AddOptions()), ("multiply", "MUL", 1, o.MulOptions())):
        graph = builder.add_subgraph(key)
        tensors = [graph.add_tensor(f"{key}_{n}", "float32", [None, 2]) for n in range(steps + 1)]
        for source, target in pairwise(tensors):
            graph.add_operator(op, [source, source], [target], options)
        graph.set_inputs(tensors[0])
        graph.set_outputs(tensors[-1])
        builder.add_signature(key, {"x": tensors[0]}, {"y": tensors[-1]}, graph)
    return builder.build().to_bytes()


def opened(engine: Engine, content: bytes, **arguments: Any) -> Any:
    interpreter = engine.Interpreter(model_content=content, **arguments)
    interpreter.allocate_tensors()
    return interpreter


ROW = np.array([[1, 2, 3, 4]], np.float32)


def test_a_path_opens_a_model(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "turning.tflite").write_bytes(turning())
    for path in (tmp_path / "turning.tflite", str(tmp_path / "turning.tflite")):
        engine.Interpreter(model_path=path).allocate_tensors()


@pytest.mark.parametrize("kind", ["BUILTIN", "BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES", "AUTO"])
@pytest.mark.parametrize("threads", [None, 2])
def test_every_set_of_kernels_turns_a_row_round(engine: Engine, kind: str, threads: int | None) -> None:
    kernels = engine.OpResolverType[kind]
    interpreter = opened(engine, turning(), experimental_op_resolver_type=kernels, num_threads=threads)
    [taken], [given] = interpreter.get_input_details(), interpreter.get_output_details()
    for name, detail in (("input", taken), ("output", given)):
        assert (detail["name"], detail["dtype"], detail["shape"].tolist()) == (name, np.float32, [1, 4])
        assert detail["quantization"] == (0.0, 0)
        assert not detail["quantization_parameters"]["scales"].size
    interpreter.set_tensor(taken["index"], ROW)
    interpreter.invoke()
    assert interpreter.get_tensor(given["index"]).tolist() == [[4, 3, 2, 1]]


def test_bytes_are_turned_round_and_described(engine: Engine) -> None:
    interpreter = opened(engine, turning("uint8"))
    [taken], [given] = interpreter.get_input_details(), interpreter.get_output_details()
    for detail in (taken, given):
        assert (detail["dtype"], detail["quantization"]) == (np.uint8, (1.0, 0))
        parameters = detail["quantization_parameters"]
        assert [parameters["scales"].tolist(), parameters["zero_points"].tolist(), parameters["quantized_dimension"]] == [
            [1],
            [0],
            0,
        ]
    interpreter.resize_tensor_input(taken["index"], (1, 4))
    interpreter.allocate_tensors()
    interpreter.set_tensor(taken["index"], ROW.astype(np.uint8))
    interpreter.invoke()
    assert interpreter.get_tensor(given["index"]).tolist() == [[4, 3, 2, 1]]


def test_strings_are_gathered(engine: Engine) -> None:
    interpreter = opened(engine, gathering([10]))
    words, numbers = interpreter.get_input_details()
    assert [(d["name"], d["dtype"], d["shape"].tolist()) for d in (words, numbers, *interpreter.get_output_details())] == [
        ("input", np.bytes_, [10]),
        ("indices", np.int64, [3]),
        ("output", np.bytes_, [3]),
    ]
    interpreter.set_tensor(numbers["index"], np.array([1, 2, 3], np.int64))
    interpreter.set_tensor(words["index"], np.array(list("abcdefghij")))
    interpreter.invoke()
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist() == [b"b", b"c", b"d"]


def test_one_string_keeps_its_trailing_zeros(engine: Engine) -> None:
    builder = ModelBuilder("one string")
    graph = builder.add_subgraph("main")
    x, y = graph.add_tensor("x", "bytes", []), graph.add_tensor("y", "bytes", [1])
    graph.add_operator("RESHAPE", [x, graph.add_tensor("shape", "int32", [1], data=[1])], [y], o.ReshapeOptions())
    graph.set_inputs(x)
    graph.set_outputs(y)
    interpreter = opened(engine, builder.build().to_bytes())
    data = b"abcd" + bytes(16)
    interpreter.set_tensor(x, np.array(data))
    assert len(interpreter.get_tensor(x).item(0)) == len(data)


def test_scales_of_channels_and_sparse_weights_are_described(engine: Engine) -> None:
    builder = ModelBuilder("described")
    graph = builder.add_subgraph("main")
    x = graph.add_tensor("x", "float32", [1, 4])
    scales = np.linspace(0.5, 1.5, 8).astype(np.float32)
    w = graph.add_tensor("w", "int8", [8, 4], data=np.ones((8, 4), np.int8), scale=scales, zero_point=[0] * 8)
    y = graph.add_tensor("y", "float32", [1, 8])
    graph.add_operator("FULLY_CONNECTED", [x, w, None], [y], o.FullyConnectedOptions(asymmetric_quantize_inputs=True))
    graph.set_inputs(x)
    graph.set_outputs(y)
    detail = opened(engine, builder.build().to_bytes()).get_tensor_details()[w]
    assert detail["quantization_parameters"]["scales"].tolist() == scales.tolist()
    assert detail["quantization"] == (0.0, 0)
    assert detail["sparsity_parameters"] == {}


def test_functions_register_operators() -> None:
    calls = []

    def register(ops: MutableOpResolver) -> None:
        calls.append(ops)
        ops.add_custom("Nothing", Registration(invoke=lambda context, node: None))

    assert oplet.interpreter.InterpreterWithCustomOps([register], model_content=turning())._safe_to_run()
    assert len(calls) == 1
    assert oplet.interpreter.InterpreterWithCustomOps(model_content=turning())._safe_to_run()


#: What is done, and what LiteRT says to it.
MISTAKES = {
    "num_threads should >= 1": lambda e: e.Interpreter(model_content=turning(), num_threads=-1),
    "type of num_threads should be int": lambda e: e.Interpreter(model_content=turning(), num_threads=4.2),
    "Unrecognized passed in op resolver type: test": lambda e: e.Interpreter(
        model_content=turning(), experimental_op_resolver_type="test"
    ),
    "The model is not a valid Flatbuffer buffer": lambda e: e.Interpreter(model_content=b"short"),
    "The model is not a valid Flatbuffer buffer ": lambda e: e.Interpreter(model_content=b"wrong_identifier"),
    "Could not open 'totally_invalid_file_name'": lambda e: e.Interpreter(model_path="totally_invalid_file_name"),
    "`model_path` or `model_content` must be specified.": lambda e: e.Interpreter(model_path=None, model_content=None),
    "Invoke called on model that is not ready": lambda e: e.Interpreter(model_content=turning()).invoke(),
    "Invalid tensor index 4 exceeds max tensor index 3": lambda e: opened(e, turning())._get_tensor_details(4, 0),
    "Invalid node index": lambda e: opened(e, turning())._get_op_details(4),
    "subgraph_index is out of range": lambda e: e.Interpreter(model_content=turning()).get_tensor_details(subgraph_index=1),
    "subgraph_index is out of range ": lambda e: e.Interpreter(model_content=turning()).get_tensor_details(subgraph_index=-1),
    "Looking up symbol 'Bogus' failed": lambda e: e.InterpreterWithCustomOps(["Bogus"], model_content=turning()),
    "Tensor is unallocated": lambda e: e.Interpreter(model_content=turning()).set_tensor(0, ROW),
    "Tensor data is null": lambda e: e.Interpreter(model_content=turning()).get_tensor(2),
    "Cannot set tensor: Got value of type FLOAT64 but expected type FLOAT32": lambda e: opened(e, turning()).set_tensor(
        0, ROW.astype(np.float64)
    ),
}


@pytest.mark.parametrize("words", MISTAKES)
def test_what_is_used_wrongly_is_told_in_litert_s_words(engine: Engine, words: str) -> None:
    with pytest.raises((ValueError, RuntimeError), match=re.escape(words.strip())):
        MISTAKES[words](engine)


def test_a_delegate_that_is_not_there_is_told_by_name() -> None:
    with pytest.raises(ValueError, match="Failed to load delegate from nothing.so"):
        oplet.load_delegate("nothing.so")


def test_views_write_and_copies_stay(engine: Engine) -> None:
    interpreter = opened(engine, turning())
    np.copyto(interpreter.tensor(0)(), ROW)
    copy = interpreter.get_tensor(0)
    assert copy.tolist() == ROW.tolist()
    interpreter.set_tensor(0, ROW + 1)
    assert copy.tolist() == ROW.tolist()
    assert interpreter.get_tensor(0).tolist() == (ROW + 1).tolist()


def test_views_hold_the_interpreter_up(engine: Engine) -> None:
    interpreter = opened(engine, turning())
    function = interpreter.tensor(0)
    assert interpreter._safe_to_run()
    view = function()
    assert not interpreter._safe_to_run()
    for run in (interpreter.allocate_tensors, interpreter.invoke):
        with pytest.raises(RuntimeError, match="There is at least 1 reference"):
            run()
    del view
    assert interpreter._safe_to_run()
    interpreter.allocate_tensors()


def test_nodes_are_described(engine: Engine) -> None:
    kernels = engine.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    [node] = opened(engine, turning(), experimental_op_resolver_type=kernels)._get_ops_details()
    assert (node["index"], node["op_name"], list(node["inputs"]), list(node["outputs"])) == (
        0,
        "FULLY_CONNECTED",
        [0, 1, -1],
        [2],
    )
    assert node["operand_types"] == [np.float32, np.float32]
    assert node["result_types"] == [np.float32]


def test_signatures_have_subgraphs(engine: Engine) -> None:
    assert engine.Interpreter(model_content=turning()).num_subgraphs() == 1
    interpreter = engine.Interpreter(model_content=free())
    assert interpreter.num_subgraphs() == 2
    for subgraph, name, count in ((0, "add_0", 3), (1, "multiply_0", 2)):
        details = interpreter.get_tensor_details(subgraph_index=subgraph)
        assert (len(details), details[0]["name"]) == (count, name)
    assert interpreter.get_signature_runner("multiply")(x=np.full((3, 2), 3, np.float32))["y"].tolist() == [[9, 9]] * 3


def test_a_strict_resize_changes_free_dimensions_only(engine: Engine) -> None:
    interpreter = engine.Interpreter(model_content=free())
    interpreter.resize_tensor_input(0, [5, 2], strict=True)
    interpreter.allocate_tensors()
    assert interpreter.get_input_details()[0]["shape"].tolist() == [5, 2]
    with pytest.raises(RuntimeError, match="only allows mutating unknown dimensions"):
        interpreter.resize_tensor_input(0, [5, 3], strict=True)


@pytest.mark.parametrize("keep", [False, True])
def test_intermediate_tensors_are_kept_on_request(keep: bool) -> None:
    interpreter = opened(oplet, free(), experimental_preserve_all_tensors=keep)
    interpreter.set_tensor(0, np.ones((1, 2), np.float32))
    interpreter.invoke()
    if keep:
        assert interpreter.get_tensor(1).tolist() == [[2, 2]]
    else:
        with pytest.raises(ValueError, match=r"Tensor data is null\..*experimental_preserve_all_tensors"):
            interpreter.get_tensor(1)


# The table of TensorFlow's tests -------------------------------------------------------------------------------


def test_each_of_tensorflow_s_tests_has_a_counterpart_that_exists_or_a_reason() -> None:
    with (HERE / "tensorflow_tests.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 279
    assert len({(row["suite"], row["class"], row["test"]) for row in rows}) == len(rows)
    cases = set(re.findall(r"^@case\ndef (\w+)", (HERE / "convert.py").read_text(), re.MULTILINE))
    tests = set(re.findall(r"^def (test_\w+)", (HERE / "test_interpreter.py").read_text(), re.MULTILINE))
    used = set()
    for row in rows:
        for name in row["counterpart"].split(", "):
            if " " in name or name == "test_debugged":
                continue  # a reason, or the test of the debugger
            file, _, test = name.rpartition("::")
            assert (test in tests) if file else (name in cases), row
            used.add(name)
    assert cases <= used
