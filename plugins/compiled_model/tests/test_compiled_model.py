"""CompiledModel: what it tells of a model, and one sentence for what cannot be done, in LiteRT's form."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oplet.compiled_model
import pytest
from plugins.compiled_model.tests.models import F32, doubling, model_of

from oplet import Interpreter, ModelBuilder
from oplet.errors import StateError
from oplet_compiled_model import CompiledModel, CompiledModelError, Environment, HardwareAccelerator, Options, TensorBuffer
from oplet_testing import Spec, one_op_model


def subtracting() -> bytes:
    """A model of two signatures, of two subgraphs; the names are in the order of the graph, not of the alphabet."""
    builder = ModelBuilder()
    for number, op in enumerate(("SUB", "MUL")):
        graph = builder.add_subgraph(op)
        for name in ("z", "a", "out"):
            graph.add_tensor(f"{op}/{name}", F32, [None, 2])
        graph.add_operator(op, [0, 1], [2])
        graph.set_inputs(0, 1)
        graph.set_outputs(2)
        builder.add_signature(op.lower(), {"a": 1, "z": 0}, {"out": 2}, number)
    return builder.to_bytes()


@pytest.fixture
def model() -> CompiledModel:
    return CompiledModel.from_buffer(subtracting())


def test_it_is_a_name_of_oplet() -> None:
    assert oplet.compiled_model.CompiledModel is CompiledModel
    from oplet.tensor_buffer import TensorBuffer as same

    assert same is TensorBuffer


def test_signatures_have_the_graph_s_order_and_the_empty_key_is_the_first(model: CompiledModel) -> None:
    assert model.get_signature_list() == {
        "sub": {"inputs": ["z", "a"], "outputs": ["out"]},
        "mul": {"inputs": ["z", "a"], "outputs": ["out"]},
    }
    assert model.get_signature_by_index(1) == {"key": "mul", "inputs": ["z", "a"], "outputs": ["out"]}
    assert (model.get_num_signatures(), model.get_signature_index("mul"), model.get_signature_index("")) == (2, 1, 0)
    assert model.get_signature_index("nope") == -1
    details = model.get_input_tensor_details("mul")
    assert details["a"] == {"name": "MUL/a", "index": 1, "dtype": "float32", "shape": [1, 2]}
    assert model.get_input_tensor_details("") == model.get_input_tensor_details("sub")


def test_a_model_without_signatures_has_one_of_its_tensors_names() -> None:
    model = model_of("NEG", Spec(np.int64, [2]))
    assert model.get_signature_list() == {"<placeholder signature>": {"inputs": ["input_0"], "outputs": ["output_0"]}}
    inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
    inputs[0].write(np.array([-1, 2]))
    model.run_by_name("", {"input_0": inputs[0]}, {"output_0": outputs[0]})
    assert outputs[0].read(2, np.int64).tolist() == [1, -2]


def test_each_signature_runs_by_index_and_by_name_with_shapes_of_its_own(model: CompiledModel) -> None:
    for name in ("z", "a"):
        model.resize_input_tensor_by_name("mul", name, [3, 2])
    assert model.get_output_tensor_details("mul")["out"]["shape"] == [3, 2]
    assert model.get_output_tensor_details("sub")["out"]["shape"] == [1, 2]
    assert model.get_input_buffer_requirements(0, 1) == {"buffer_size": 24, "supported_types": [1]}
    assert model.get_output_buffer_requirements(0) == {"buffer_size": 8, "supported_types": [1]}
    for key, number, wanted in (("sub", 0, [1, 1]), ("mul", 1, [6, 2] * 3)):
        inputs, outputs = model.create_input_buffers(number), model.create_output_buffers(number)
        size = len(wanted)
        inputs[0].write(np.resize(np.array([3, 2], F32), size))
        inputs[1].write(np.resize(np.array([2, 1], F32), size))
        for run in range(2):
            if run:
                model.run_by_index(number, iter(inputs), tuple(outputs))
            else:
                model.run_by_name(key, {"a": inputs[1], "z": inputs[0], "more": inputs[0]}, {"out": outputs[0]})
            assert outputs[0].read(size, F32).tolist() == wanted


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m: m.get_signature_by_index(5), CompiledModelError, r"code=1000.*\n└ Signature index is out of range of signature keys: 5 of 2"),
        (lambda m: m.get_signature_by_index(-1), CompiledModelError, "code=1000"),
        (lambda m: m.get_input_tensor_details("nope"), CompiledModelError, "^CompiledModel error: code=6, message=Signature not found: nope$"),
        (lambda m: m.get_input_tensor_details(1), TypeError, "a str, not a int"),
        (lambda m: m.get_input_buffer_requirements(2), CompiledModelError, r"code=1000.*\n└ Input index out of range: 2 of 2"),
        (lambda m: m.get_output_buffer_requirements(-1), CompiledModelError, r"\n└ Output index out of range"),
        (lambda m: m.create_input_buffers(2), CompiledModelError, "code=1000"),
        (lambda m: m.create_output_buffers("a"), TypeError, "interpreted as an integer"),
        (lambda m: m.create_input_buffer_by_name("nope", "a"), CompiledModelError, r"code=6.*\n└ Signature not found: nope"),
        (lambda m: m.create_output_buffer_by_name("sub", "a"), CompiledModelError, r"code=6.*\n└ Output tensor not found: a"),
        (lambda m: m.run_by_index(0, [], []), CompiledModelError, r"code=3.*\n└ Input buffer size mismatch: number of inputs:2 vs buffers:0"),
        (lambda m: m.run_by_index(2, [], []), CompiledModelError, r"code=1000.*\n└ Signature index is out of range"),
        (lambda m: m.run_by_index(0, [1, 2], [3]), AttributeError, "'int' object has no attribute 'capsule'"),
        (lambda m: m.run_by_name("nope", {}, {}), CompiledModelError, "code=6, message=Failed to get signature_index"),
        (lambda m: m.run_by_name("sub", {}, {}), CompiledModelError, r"missing some output TensorBuffers\n└ out: "),
        (lambda m: m.run_by_name("sub", {}, {"out": 1}), CompiledModelError, r"missing some input TensorBuffers\n└ z, a: "),
        (lambda m: m.run_by_name("sub", {1: 1}, {}), CompiledModelError, "^input_map key not a string.$"),
        (lambda m: m.resize_input_tensor(0, [1, 3]), CompiledModelError, r"code=1.*\n└ New shape is not compatible with current shape. .*\[-1, 2\]"),
        (lambda m: m.resize_input_tensor(0, [1]), CompiledModelError, r"\n└ New shape rank does not match current shape rank."),
        (lambda m: m.resize_input_tensor(0, [], strict=False), CompiledModelError, r"\n└ New shape must not be empty."),
        (lambda m: m.resize_input_tensor(0, [0, 2], strict=False), CompiledModelError, r"\n└ Dimensions must be positive."),
        (lambda m: m.resize_input_tensor_by_name("no", "a", [1]), ValueError, "^Unknown signature: no$"),
        (lambda m: m.resize_input_tensor_by_name("sub", "no", [1]), ValueError, "^Unknown input 'no' for signature 'sub'$"),
        (lambda m: CompiledModel.from_buffer("text"), TypeError, "model_data is str"),
        (lambda m: CompiledModel.from_file(b"x"), TypeError, "model_path is bytes"),
        (lambda m: CompiledModel.from_buffer(b"garbage" * 9), CompiledModelError, r"^Failed to load model from buffer\n└ "),
        (lambda m: CompiledModel.from_file("/nope"), CompiledModelError, r"^Failed to load model from file\n└ .*/nope"),
        (lambda m: CompiledModel.from_file("", HardwareAccelerator.CPU, options=Options()), ValueError, "^Pass either options or"),
        (lambda m: CompiledModel.from_buffer(b"", environment="x"), AttributeError, "'str' object has no attribute 'capsule'"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_told_in_litert_s_form(
    model: CompiledModel, call: Callable[[CompiledModel], Any], error: type[Exception], text: str
) -> None:
    for _ in range(2):  # LiteRT repeats what it said before
        with pytest.raises(error, match=text) as caught:
            call(model)
        assert str(caught.value).count("└") <= 2


def test_an_error_has_its_number_and_survives_pickling(model: CompiledModel) -> None:
    with pytest.raises(CompiledModelError) as caught:
        model.create_input_buffers(7)
    assert caught.value.code == 1000
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.code) == (str(caught.value), 1000)
    assert str(CompiledModelError("a\x1b", "b\nc", code=1)) == "CompiledModel error: code=1, message=a\\x1b\n└ b\\nc"


def test_a_closed_model_says_so_and_leaves_buffers_and_environment() -> None:
    with doubling(2) as model:
        inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
        inputs[0].write(np.ones(2, F32))
        model.run_by_index(0, inputs, outputs)
        shared = copy.copy(model)
    model.close()
    for call in (model.get_num_signatures, lambda: model.run_by_index(0, inputs, outputs), lambda: model.interpreter):
        with pytest.raises(StateError, match="was closed"):
            call()
    assert isinstance(model.environment, Environment)
    assert outputs[0].read(2, F32).tolist() == [4, 4]
    inputs[0].destroy()
    assert shared.get_num_signatures() == 1


def test_an_environment_is_kept_and_a_closed_one_makes_no_more_models() -> None:
    with Environment.create("/folder") as environment:
        model = CompiledModel.from_buffer(subtracting(), environment=environment)
    assert model.environment is environment
    assert environment.options.runtime_path == "/folder"
    assert len(model.create_output_buffers(0)) == 1
    with pytest.raises(ValueError, match="^Environment is no longer valid$"):
        CompiledModel.from_buffer(subtracting(), environment=environment)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_bytes_and_any_path_are_models(tmp_path: Path, kind: Any) -> None:
    assert CompiledModel.from_buffer(kind(subtracting())).get_num_signatures() == 2
    path = tmp_path / "model.tflite"
    path.write_bytes(subtracting())
    for each in (path, str(path)):
        assert CompiledModel.from_file(each).get_num_signatures() == 2


def test_an_op_that_nobody_serves_is_named_with_every_error() -> None:
    model = CompiledModel.from_buffer(one_op_model("NobodysOp", [Spec(F32, [1])], [Spec(F32, [1])]))
    for call in (lambda: model.create_output_buffers(0), lambda: model.get_output_tensor_details("")):
        with pytest.raises(CompiledModelError, match=r"code=3, message=Failed to allocate tensors\n└ .*NobodysOp"):
            call()


def test_an_interpreter_of_the_program_s_own_ops_runs_on_buffers_too() -> None:
    from core.tests.chains import ADD_ONE, adding

    from oplet import MutableOpResolver

    resolver = MutableOpResolver()
    resolver.add_custom("AddOne", ADD_ONE)
    model = CompiledModel(Interpreter(model_content=adding(2), op_resolver=resolver))
    inputs, outputs = model.create_input_buffers(0), model.create_output_buffers(0)
    model.run_by_index(0, inputs, outputs)
    assert outputs[0].read(3, F32).tolist() == [2, 2, 2]


def test_a_signature_that_names_tensors_which_are_not_there_is_listed_and_cannot_run() -> None:
    from oplet import Model

    content = Model.from_bytes(subtracting())
    content.root.signature_defs[0].outputs[0].tensor_index = 99  # type: ignore[index]
    with pytest.warns(UserWarning, match="sub"):
        model = CompiledModel.from_buffer(content.to_bytes())
    assert list(model.get_signature_list()) == ["sub", "mul"]
    assert len(model.create_input_buffers(1)) == 2
    with pytest.raises(CompiledModelError, match="99"):
        model.run_by_index(0, [], [])
