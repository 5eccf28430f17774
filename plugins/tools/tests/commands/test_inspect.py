"""`oplet inspect` and `oplet plugins`."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from oplet import BuiltinOperator, ModelBuilder, PluginManager
from oplet.schema.enums import ActivationFunctionType, TensorType
from oplet.schema.options import AddOptions, ReducerOptions
from oplet_tools.describing.inspect import inspect_model


def _serving(op: str, version: int) -> str:
    """The package that serves an operator here."""
    found = PluginManager().resolver().find_op(BuiltinOperator[op], version)
    assert found is not None
    return found.provenance.distribution


def test_a_model_is_described_in_json(oplet, examples):
    model = examples / "digits" / "digits_int8.tflite"
    described = json.loads(oplet("inspect", model, "--json").out)
    assert described == inspect_model(model)
    assert described["schema_version"] == 3
    assert described["description"] == "MLIR Converted."
    assert described["min_runtime_version"] == "1.14.0"
    [signature] = described["signatures"]
    assert signature == {"key": "serving_default", "subgraph": 0, "inputs": {"image": 0}, "outputs": {"probabilities": 20}}
    conv = next(op for op in described["ops"] if op["op"] == "CONV_2D")
    assert (conv["version"], conv["nodes"], conv["distribution"]) == (3, 2, _serving("CONV_2D", 3))
    [subgraph] = described["subgraphs"]
    image, first = subgraph["tensors"][0], subgraph["nodes"][0]
    assert (image["type"], image["shape"], image["bytes"], image["constant"]) == ("INT8", [1, 8, 8, 1], 64, False)
    assert image["quantization"]["zero_points"] == [-128]
    assert first["inputs"] == [0, 11, 10]
    assert first["options"]["padding"] == "SAME"
    weights = subgraph["tensors"][11]
    assert weights["constant"]
    assert weights["bytes"] == math.prod(weights["shape"])
    assert len(weights["quantization"]["scales"]) == 16


def test_a_model_is_described_in_tables(oplet, examples):
    model = examples / "digits" / "digits_int8.tflite"
    summary = oplet("inspect", model).out
    for words in (
        "MLIR Converted.",
        "min runtime version: 1.14.0",
        "serving_default",
        "image (0)",
        _serving("CONV_2D", 3),
        "0: INT8 [1, 8, 8, 1]",
    ):
        assert words in summary
    assert "16 scales" not in summary
    everything = oplet("inspect", model, "--nodes", "--tensors").out
    assert "16 scales" in everything
    assert "subgraph 0 'main': nodes" in everything


def lines_of(ran):
    return [line.split()[:2] for line in ran.out.splitlines() if line[:6].strip().isdecimal()]


def test_nodes_and_tensors_are_chosen_by_op_and_by_name(oplet, examples):
    model = examples / "digits" / "digits_int8.tflite"
    assert lines_of(oplet("inspect", model, "--op", "conv_2d", "--nodes")) == [["0", "CONV_2D"], ["3", "CONV_2D"]]
    assert lines_of(oplet("inspect", model, "--tensor", "17", "--nodes")) == [["5", "RESHAPE"], ["6", "FULLY_CONNECTED"]]
    assert lines_of(oplet("inspect", model, "--tensor", "17")) == [["5", "RESHAPE"], ["6", "FULLY_CONNECTED"], ["17", "INT8"]]
    named = oplet("inspect", model, "--tensor", "serving_default_image", "--tensors", "--subgraph", "0")
    assert lines_of(named) == [["0", "INT8"]]
    assert lines_of(oplet("inspect", model, "--op", "SOFTMAX", "--tensor", "20")) == [["8", "SOFTMAX"], ["20", "INT8"]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--op", "LSTM"], "has no node of the op 'LSTM'"),
        (["--tensor", "99"], "has no tensor '99'"),
        (["--tensor", ""], "it is empty"),
        (["--op", "SOFTMAX", "--tensor", "0"], "has no 'SOFTMAX' with a tensor '0'"),
        (["--subgraph", "1"], "has 1 subgraph, from 0 on"),
    ],
)
def test_what_is_not_in_the_model_is_said(oplet, examples, options, said):
    ran = oplet("inspect", examples / "digits" / "digits_int8.tflite", *options)
    assert ran.code == 2
    assert said in " ".join(ran.err.split())


def test_ops_that_nobody_serves_say_who_could(oplet, examples):
    model = examples / "atan" / "atan.tflite"
    served = {op["op"]: op for op in json.loads(oplet("inspect", model, "--json").out)["ops"]}
    assert served["Atan"]["distribution"] == "oplet-atan-op"
    assert served["Atan"]["custom"]
    ran = oplet("inspect", model, "-p", "no:atan_op")
    assert ran.code == 0
    row = next(line for line in ran.out.splitlines() if line.startswith("Atan"))
    assert "nobody" in row
    assert "oplet-atan-op" in row


def test_free_dimensions_variables_and_metadata(tmp_path, oplet):
    builder = ModelBuilder(minimum_runtime=False)
    main = builder.add_subgraph("main")
    main.add_tensor("x", "float32", [1, 4], shape_signature=[-1, 4])
    main.add_tensor("state", "float32", [4], is_variable=True)
    main.add_tensor("words", "object", [2], data=np.array([b"a", b"bc"], object))
    main.add_tensor("sum", "float32", [1, 4])
    main.add_operator("ADD", [0, 1], [3])
    main.set_inputs(0)
    main.set_outputs(3)
    builder.add_metadata("note", b"hello\0\0")
    builder.add_metadata("blob", bytes(range(256)))
    path = tmp_path / "m.tflite"
    path.write_bytes(builder.to_bytes())
    described = inspect_model(path)
    assert described["metadata"] == [{"name": "note", "bytes": 7, "text": "hello"}, {"name": "blob", "bytes": 256, "text": None}]
    assert described["min_runtime_version"] is None
    assert described["subgraphs"][0]["tensors"][0]["shape_signature"] == [-1, 4]
    out = oplet("inspect", path).out + oplet("inspect", path, "--tensors").out
    for words in ("[?, 4]", "variable", "constant", "STRING", "hello", "min runtime version: not said"):
        assert words in out


@pytest.mark.parametrize("content", [b"", b"short", b"\0\0\0\0TFL3" + bytes(40), b"version https://git-lfs.github.com/spec/v1"])
def test_what_is_no_model_is_one_line(oplet, tmp_path, content):
    path = tmp_path / "bad.tflite"
    path.write_bytes(content)
    ran = oplet("inspect", path)
    assert ran.code == 1
    assert ran.err.startswith("oplet: ")
    assert ran.err.count("\n") == 1
    assert "unexpected" not in ran.err


def test_plugins_are_listed(oplet):
    found = {entry["name"]: entry for entry in json.loads(oplet("plugins", "--json").out)}
    assert found["atan_op"]["distribution"] == "oplet-atan-op"
    assert found["atan_op"]["state"] == "loaded"
    assert found["atan_op"]["ops"] == [{"op": "Atan", "min_version": 1, "max_version": 1}]
    out = oplet("plugins").out
    assert "builtin_ops" in out
    assert "Atan" in out


def test_a_plugin_that_is_left_out_is_listed_as_blocked(oplet):
    out = oplet("plugins", "-p", "no:atan_op").out
    row = next(line for line in out.splitlines() if line.startswith("atan_op"))
    assert "blocked" in row
    assert "switched off" in out


def test_without_any_plugin_the_list_says_what_to_install(oplet, monkeypatch):
    import importlib_metadata

    monkeypatch.setattr(importlib_metadata, "entry_points", lambda **_: ())
    assert "pip install oplet-builtin-ops" in oplet("plugins").out


def test_the_version_is_told(oplet):
    import oplet as package

    assert oplet("--version").out == f"oplet {package.__version__}\n"


@pytest.fixture
def small_values(tmp_path):
    """A model with options and small constants of several types, and one that is large."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x = graph.add_tensor("x", "float32", [2, 3])
    axes = graph.add_tensor("axes", "int32", [1], data=[1])
    mean = graph.add_tensor("mean", "float32", [2, 1])
    mask = graph.add_tensor("mask", "float32", [2, 1], data=[[-np.inf], [0.5]])
    large = graph.add_tensor("large", "float32", [100], data=np.zeros(100))
    words = graph.add_tensor("words", TensorType.STRING, [2], data=["a word", "ä"])
    nibbles = graph.add_tensor("nibbles", TensorType.INT4, [3], data=[-8, 0, 7])
    added, y = (graph.add_tensor(name, "float32", [2, 1]) for name in ("added", "y"))
    graph.add_operator("MEAN", [x, axes], [mean], ReducerOptions(keep_dims=True))
    graph.add_operator("ADD", [mean, mask], [added], AddOptions(fused_activation_function=ActivationFunctionType.RELU6))
    inputs = [added, large, words, nibbles]
    graph.add_operator("Cube", inputs, [y], custom_options={"epsilon": 0.001, "name": "it", "sizes": [1, 2]})
    graph.add_operator("Raw", [y], [graph.add_tensor("z", "float32", [2, 1])], custom_options=b"\x01\x02\xff")
    graph.set_inputs(x)
    graph.set_outputs(y)
    path = tmp_path / "model.tflite"
    path.write_bytes(builder.to_bytes())
    return path


def test_options_and_the_values_of_small_constants_are_shown(oplet, small_values):
    nodes = oplet("inspect", small_values, "--nodes").out
    for words in ("keep_dims=True", "fused_activation_function=RELU6", "epsilon=0.001, name=it, sizes=[1, 2]", "3 bytes: 0102ff"):
        assert words in nodes
    assert "epsilon=0.001" in oplet("inspect", small_values, "--op", "Cube", "--wide").out
    tensors = oplet("inspect", small_values, "--tensors").out
    for words in ("[1]", "[[-Infinity], [0.5]]", "[a word, ä]", "[-8, 0, 7]"):
        assert words in tensors
    described = json.loads(oplet("inspect", small_values, "--json").out, parse_constant=pytest.fail)
    values = {tensor["name"]: tensor["values"] for tensor in described["subgraphs"][0]["tensors"]}
    wanted = {"axes": [1], "mask": [["-Infinity"], [0.5]], "words": ["a word", "ä"], "nibbles": [-8, 0, 7]}
    assert values == {**dict.fromkeys(values), **wanted}
    custom = [node["custom_options"] for node in described["subgraphs"][0]["nodes"]]
    assert custom == [None, None, {"epsilon": 0.001, "name": "it", "sizes": [1, 2]}, "0102ff"]


def test_explore_has_the_same_options_and_values(oplet, small_values):
    [subgraph] = json.loads(oplet("explore", small_values, "--json").out, parse_constant=pytest.fail)["subgraphs"]
    options = {node["op"]: node["options"] for node in subgraph["nodes"]}
    assert options["MEAN"]["keep_dims"] is True
    assert options["Cube"] == {"epsilon": 0.001, "name": "it", "sizes": [1, 2]}
    assert options["Raw"] == {"custom options": "3 bytes: 0102ff"}
    values = {tensor["name"]: tensor["values"] for tensor in subgraph["tensors"].values()}
    assert (values["axes"], values["mask"], values["large"]) == ([1], [["-Infinity"], [0.5]], None)
    assert (values["words"], values["nibbles"]) == (["a word", "ä"], [-8, 0, 7])
