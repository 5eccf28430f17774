"""`oplet doctor`: what a model needs, and what is missing."""

from __future__ import annotations

import json

from oplet import ModelBuilder


def test_a_model_that_runs_is_healthy(oplet, examples):
    ran = oplet("doctor", examples / "atan" / "atan.tflite")
    assert ran.code == 0
    assert "oplet-atan-op" in ran.out
    assert "All 2 operators are served." in ran.out


def test_everything_that_is_missing_is_named_with_its_fix(oplet, tmp_path):
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    tensors = [graph.add_tensor(f"t{i}", "float32", [1]) for i in range(5)]
    graph.add_operator("RELU", [tensors[0]], [tensors[1]], version=77)
    graph.add_operator("SignalRfft", [tensors[1]], [tensors[2]])
    graph.add_operator("NobodyKnowsMe", [tensors[2]], [tensors[3]])
    graph.set_inputs(tensors[0])
    graph.add_operator("SignalIrfft", [tensors[3]], [tensors[4]])
    graph.set_outputs(tensors[4])
    path = tmp_path / "model.tflite"
    path.write_bytes(builder.to_bytes())
    ran = oplet("doctor", path, "--json", "-p", "no:oplet-signal-ops")
    assert ran.code == 1
    rows = {row["op"]: row for row in json.loads(ran.out)}
    assert rows["RELU"]["version"] == 77
    assert rows["RELU"]["provided"] == "1 to 3"
    assert "oplet-signal-ops" in rows["SignalRfft"]["fix"]
    assert "No package that brings NobodyKnowsMe is known" in rows["NobodyKnowsMe"]["fix"]
    table = oplet("doctor", path, "-p", "no:oplet-signal-ops").out
    assert "4 of 4 operators are missing: RELU, SignalRfft, NobodyKnowsMe, SignalIrfft." in table
    fixes = table.partition("are missing: ")[2].splitlines()[1:]
    assert [fix.partition(": ")[0] for fix in fixes] == ["RELU", "SignalRfft, SignalIrfft", "NobodyKnowsMe"]
    assert fixes[1].endswith(rows["SignalRfft"]["fix"]), "what one package brings is told once"


def one_node(folder, op, type="float32", **arguments):
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, y = graph.add_tensor("x", type, [2, 2]), graph.add_tensor("y", type, [2, 2])
    graph.add_operator(op, [x], [y], **arguments)
    graph.set_inputs(x)
    graph.set_outputs(y)
    path = folder / f"{op}.tflite"
    path.write_bytes(builder.to_bytes())
    return path


def test_a_node_that_its_kernels_refuse_is_told_and_the_exit_code_follows(oplet, tmp_path):
    path = one_node(tmp_path, "TANH", "int32")
    ran = oplet("doctor", path, "--json")
    [row] = json.loads(ran.out)
    assert (ran.code, row["refused"]) == (1, True)
    assert "INT32" in row["fix"]
    assert "The kernels of TANH refuse a node of the model." in oplet("doctor", path).out
    assert "Node number 0 (TANH) failed to prepare" in oplet("inspect", path, "--wide").out


def test_the_first_release_that_runs_an_operator_is_told(oplet, examples):
    rows = {row["op"]: row for row in json.loads(oplet("doctor", examples / "digits" / "digits_int8.tflite", "--json").out)}
    assert rows["AVERAGE_POOL_2D"]["first_runtime"] == "1.14.0"


def test_a_file_that_is_no_model_is_one_line(oplet, tmp_path):
    (tmp_path / "no.tflite").write_text("hello, this is no model at all")
    ran = oplet("doctor", tmp_path / "no.tflite")
    assert ran.code == 1
    assert ran.err.count("\n") == 1
