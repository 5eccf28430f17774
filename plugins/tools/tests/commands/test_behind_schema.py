"""The schema's classes and the module that reads and writes with them do what LiteRT's own do, and write the same bytes."""

from __future__ import annotations

import subprocess
import sys
import typing
import zipfile
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import flatbuffers
import numpy as np
import pytest
from tests.children import run_child
from tests.places import CONFORMANCE

from oplet import Interpreter, ModelBuilder
from oplet_tools.behind.stand_ins import schema_py_generated as schema
from oplet_tools.behind.stand_ins.tools import flatbuffer_utils

needs_litert = pytest.mark.skipif(find_spec("ai_edge_litert") is None, reason="needs ai-edge-litert")
ARCHIVES = sorted(CONFORMANCE.glob("*/*.zip"))


def small(constants: Literal["inside", "outside"] = "inside") -> bytes:
    """Adds constants of several types; a custom operator, a variable and text in it."""
    builder = ModelBuilder("described")
    graph = builder.add_subgraph("main")
    x = graph.add_tensor("x", "float32", [4])
    weights = graph.add_tensor("weights", "float32", [4], data=np.arange(4, dtype=np.float32))
    graph.add_tensor("halves", "float16", [2], data=np.float16([1, 2]))
    graph.add_tensor("words", "bytes", [2], data=np.array([b"ab", b"c"], object))
    y, z = (graph.add_tensor(name, "float32", [4]) for name in "yz")
    graph.add_operator("ADD", [x, weights], [y])
    graph.add_operator("Mine", [y], [z], custom_options=b"options")
    graph.set_inputs(x)
    graph.set_outputs(z)
    builder.add_signature("run", {"x": x}, {"z": z})
    return builder.build().to_bytes(constants)


def packed(module: Any, data: bytes) -> bytes | str:
    """What the module's objects write of a model that they have read; the name of the error if they cannot."""
    builder = flatbuffers.Builder(1024)
    try:
        builder.Finish(module.ModelT.InitFromObj(module.Model.GetRootAsModel(data, 0)).Pack(builder), b"TFL3")
        return bytes(builder.Output())
    except Exception as error:
        return type(error).__name__


def public(found: type) -> dict[str, Any]:
    return {name: value for name, value in vars(found).items() if not name.startswith("_")}


@needs_litert
def test_all_names_are_there_with_the_methods_numbers_and_defaults_of_litert_s() -> None:
    import ai_edge_litert.schema_py_generated as theirs

    names = {name for name in vars(theirs) if not name.startswith("_")}
    assert names - set(schema.__all__) == {"List", "Optional", "Union", "flatbuffers", "import_numpy", "np"}
    assert set(schema.__all__) <= names
    for name in schema.__all__:
        their, mine = getattr(theirs, name), getattr(schema, name)
        if not isinstance(their, type):
            continue
        if hasattr(their, "Pack"):
            assert list(vars(mine()).items()) == list(vars(their()).items()), name
        elif hasattr(their, "Init"):
            assert set(dir(mine)) >= set(dir(their)), name
        else:
            assert public(mine) == public(their), name


@needs_litert
@pytest.mark.sweep
@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.stem)
def test_the_recorded_models_are_written_as_litert_s_classes_write_them(archive: Path) -> None:
    import ai_edge_litert.schema_py_generated as theirs

    with zipfile.ZipFile(archive) as file:
        models = [file.read(name) for name in file.namelist() if name.endswith("model.tflite")]
    assert models
    for data in models:
        assert packed(schema, data) == packed(theirs, data)


@needs_litert
def test_a_table_written_field_by_field_has_the_bytes_of_litert_s() -> None:
    import ai_edge_litert.schema_py_generated as theirs

    def written(module: Any) -> bytes:
        builder = flatbuffers.Builder(64)
        name = builder.CreateString("w")
        module.TensorStartShapeVector(builder, 2)
        for size in (3, 2):
            builder.PrependInt32(size)
        shape = builder.EndVector()
        module.TensorStart(builder)
        module.TensorAddName(builder, name)
        module.TensorAddShape(builder, shape)
        module.TensorAddType(builder, module.TensorType.INT8)
        module.TensorAddHasRank(builder, True)
        builder.Finish(module.TensorEnd(builder))
        return bytes(builder.Output())

    data = written(schema)
    assert data == written(theirs)
    tensor = schema.Tensor.GetRootAs(data)
    assert (tensor.Name(), tensor.Shape(1), tensor.ShapeLength(), tensor.Type(), tensor.HasRank()) == (b"w", 3, 2, 9, True)
    assert (tensor.ShapeSignatureIsNone(), tensor.ShapeSignatureLength(), tensor.Quantization()) == (True, 0, None)
    with pytest.raises(TypeError, match=r"TensorT.__init__\(\) takes shape, type"):
        schema.TensorT(shapes=[1])


@needs_litert
def test_all_that_programs_take_of_the_module_is_there() -> None:
    from ai_edge_litert.tools import flatbuffer_utils as theirs

    names = {name for name, value in vars(theirs).items() if not name.startswith("_") and not isinstance(value, ModuleType)}
    missing = {name for name in names - set(dir(flatbuffer_utils)) if not hasattr(typing, name)}
    assert missing == {"OptsT"}  # of type checkers


@needs_litert
def test_models_become_the_objects_that_litert_makes_of_them(tmp_path: Path) -> None:
    from ai_edge_litert.tools import flatbuffer_utils as theirs

    path = tmp_path / "model.tflite"
    path.write_bytes(small("outside"))
    assert plain(flatbuffer_utils.read_model(path)) == plain(theirs.read_model(path))
    assert plain(flatbuffer_utils.read_model_with_mutable_tensors(path))["buffers"]  # at which LiteRT's fails
    path.write_bytes(small())
    models = [(module, module.read_model_with_mutable_tensors(path)) for module in (flatbuffer_utils, theirs)]
    mine, their = (plain(model) for _, model in models)
    assert mine == their
    for module, model in models:
        module.randomize_weights(model, 7, [2])
    assert plain(models[0][1]) == plain(models[1][1])
    assert plain(models[0][1])["buffers"] != mine["buffers"]
    swapped = [module.byte_swap_tflite_buffer(small(), "little", "big") for module, _ in models]
    assert swapped[0] == swapped[1] != small()
    for module, model in models:
        module.rename_custom_ops(model, {"Mine": "Yours"})
        module.strip_strings(model)
        assert module.opcode_to_name(model, 0) == "ADD"
        assert module.count_resource_variables(model) == 0
        assert model.operatorCodes[1].customCode == b"Yours"
    assert plain(models[0][1]) == plain(models[1][1])


def plain(value: Any) -> Any:
    """An object of the schema as dictionaries and lists."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, np.ndarray | memoryview):
        return np.asarray(value).tolist()
    return {name: plain(each) for name, each in vars(value).items()} if hasattr(value, "__dict__") else value


def test_a_model_that_was_changed_and_written_runs(tmp_path: Path) -> None:
    model = flatbuffer_utils.read_model_from_bytearray(small())
    graph = model.subgraphs[0]
    graph.operators.pop()
    graph.outputs = [graph.operators[0].outputs[0]]
    model.signatureDefs = None
    model.buffers[graph.tensors[1].buffer].data = np.full(4, 10, np.float32).view(np.uint8)
    flatbuffer_utils.write_model(model, tmp_path / "model.tflite")
    interpreter = Interpreter(tmp_path / "model.tflite")
    interpreter.allocate_tensors()
    interpreter.set_tensor(0, np.float32([1, 2, 3, 4]))
    interpreter.invoke()
    assert interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).tolist() == [11, 12, 13, 14]


def test_bytes_that_were_cut_off_are_told() -> None:
    data = small("outside")
    with pytest.raises(ValueError, match=r"The model has \d+ bytes, and speaks of \d+ from \d+ on"):
        flatbuffer_utils.read_model_from_bytearray(data[: len(data) - 40])


def test_tensorflow_s_schema_is_answered_only_where_tensorflow_is_made_up_and_missing() -> None:
    code = """
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] == "tensorflow" else PathFinder.find_spec(name, path, target)
sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]
from oplet_tools.behind.import_hooks import intercept_imports
for made_up in (True, False):
    with intercept_imports({}, (), without_tensorflow=made_up):
        try:
            from tensorflow.lite.python import schema_py_generated
            print(schema_py_generated.BuiltinOperator.CONV_2D)
        except ModuleNotFoundError:
            print("missing")
"""
    assert run_child([sys.executable, "-c", code]).stdout.split() == ["3", "missing"]


def test_the_benchmark_script_measures_a_compiled_model(tmp_path: Path) -> None:
    pytest.importorskip("oplet_compiled_model")
    builder = ModelBuilder()
    graph = builder.add_subgraph("main")
    for name in "xy":
        graph.add_tensor(name, "float32", [1024])
    graph.add_operator("ADD", [0, 0], [1])
    graph.set_inputs(0)
    graph.set_outputs(1)
    builder.save(tmp_path / "model.tflite")
    module = "oplet_tools.behind.stand_ins.tools.benchmark_litert_model"
    command = [sys.executable, "-m", module, f"--model={tmp_path / 'model.tflite'}", "--num_runs=3", "--warmup_runs=2"]
    done = run_child([*command, f"--result_json={tmp_path / 'result.json'}"])
    assert " BENCHMARK RESULTS" in done.stdout
    assert "(3 runs)" in done.stdout
    assert '"num_warmup_runs": 2' in (tmp_path / "result.json").read_text()
    failed = subprocess.run([*command, "--signature=none"], capture_output=True, text=True)
    assert failed.returncode == 1
    assert 'Signature "none" not found.' in failed.stderr
