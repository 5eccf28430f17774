"""Delegate libraries on the command line: what they take and why the rest stays, and one sentence where they cannot be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plugins.native_ops.tests.delegates.conftest import convolutions
from typer.testing import CliRunner

from oplet import ModelBuilder, TensorType
from oplet.schema.options import CastOptions
from oplet_tools.cli.app import app


def oplet(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "model.tflite"
    path.write_bytes(convolutions(2))
    return str(path)


def test_partition_names_the_library_and_why_a_node_stays(struct_delegate: str, model: str, tmp_path: Path) -> None:
    done = oplet("partition", model, "--delegate", f"{struct_delegate}:max_partitions=1", "--json")
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert result["delegates"] == ["libmy_delegate.so"]
    [subgraph] = result["subgraphs"]
    assert [node["partition"] for node in subgraph["nodes"]] == [0, None, None, None, None]
    assert {str(node["why"]) for node in subgraph["nodes"][1:]} == {
        "{'libmy_delegate.so': 'it looked at it, and did not claim it'}"
    }

    builder = ModelBuilder()
    graph = builder.add_subgraph("main")
    x, y = graph.add_tensor("x", "int32", [2, 3]), graph.add_tensor("y", "int32", [2])
    axes = graph.add_tensor("axes", "int32", [1], data=np.array([1], np.int32))
    graph.set_inputs(x)
    graph.set_outputs(y)
    graph.add_operator("MEAN", [x, axes], [y])
    whole = tmp_path / "whole.tflite"
    whole.write_bytes(builder.to_bytes())
    result = json.loads(oplet("partition", str(whole), "--delegate", struct_delegate, "--json").stdout)
    [node] = result["subgraphs"][0]["nodes"]
    assert node["why"] == {"libmy_delegate.so": "it says: it works on float32, not on type 2"}


def test_a_node_that_cannot_be_shown_says_why(struct_delegate: str, tmp_path: Path) -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph("main")
    x, y = graph.add_tensor("x", "float32", [4]), graph.add_tensor("y", TensorType.INT4, [4])
    graph.set_inputs(x)
    graph.set_outputs(y)
    graph.add_operator("CAST", [x], [y], CastOptions(in_data_type=TensorType.FLOAT32, out_data_type=TensorType.INT4))
    path = tmp_path / "packed.tflite"
    path.write_bytes(builder.to_bytes())
    result = json.loads(oplet("partition", str(path), "--delegate", struct_delegate, "--json").stdout)
    [node] = result["subgraphs"][0]["nodes"]
    assert "packed in LiteRT and not here" in node["why"]["libmy_delegate.so"]


def test_every_command_that_takes_delegates_takes_a_library(struct_delegate: str, model: str) -> None:
    for command in (["run"], ["compare"], ["benchmark", "--num-runs", "1", "--min-secs", "0", "--warmup-runs", "0"]):
        done = oplet(command[0], model, *command[1:], "--delegate", f"{struct_delegate}:min_nodes=1,max_partitions=2")
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (":colour=red", "makes no delegate with the options {'colour': 'red'}: unknown option colour."),
        (":fail=prepare", "it was told to fail in Prepare"),
        (":fast", "'fast' behind the delegate"),
    ],
)
def test_what_it_refuses_is_one_sentence(struct_delegate: str, model: str, options: str, text: str) -> None:
    command = [sys.executable, "-m", "oplet", "run", model, "--delegate", struct_delegate + options]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert text in " ".join(done.stderr.split())
    assert done.stderr.startswith("oplet: ")
    assert done.stderr.count("\n") == 1


def test_a_library_in_the_working_folder_needs_no_path(struct_delegate: str, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, name = os.path.split(struct_delegate)
    monkeypatch.chdir(folder)
    done = oplet("run", model, "--delegate", name)
    assert done.exit_code == 0, done.output
