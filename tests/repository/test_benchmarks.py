"""The measurements run, and say what they could not measure. What they find is never asserted on."""

from __future__ import annotations

import json
import os
import sys

import pytest
from benchmarks.native import can_run
from tests.children import run_child
from tests.places import CONFORMANCE, ROOT

from oplet_testing import Graph, Op, Spec, graph_model


@pytest.fixture
def models(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    spec = Spec("float32", [1, 4])
    chain = Graph({"x": spec, "y": spec, "z": spec}, "x", "z", [Op("TANH", "x", "y"), Op("LOGISTIC", "y", "z")])
    (folder / "chain.tflite").write_bytes(graph_model(chain))
    return folder


def run(*arguments):
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "benchmarks", *map(str, arguments)]
    return run_child(command, code=None, cwd=ROOT, env=dict(os.environ, PYTHONPATH=path))


@pytest.mark.sweep
def test_one_command_measures_everything_and_writes_it_down(models, tmp_path, monkeypatch):
    monkeypatch.setenv("OPLET_CACHE_DIR", str(tmp_path / "cache"))
    pytest.importorskip("ai_edge_litert")
    out = tmp_path / "out"
    sections = ("latency", "start", "loading", "arena", "memory", "dispatch", "native", "batch", "threads", "engines")
    done = run(models, "--least-bytes", 0, "--rounds", 2, "--out", out, "--only", *sections)
    assert done.returncode == 0, done.stderr
    data = json.loads((out / "results.json").read_text())
    assert set(data) == set(sections) - (set() if can_run() else {"native"})
    assert {"oplet-numpy", "litert", "litert-xnnpack", "litert-reference"} <= set(data["latency"]["models"]["chain"]["ms"])
    assert "no --onnx FOLDER was given" in done.stdout or "onnx is not installed" in done.stdout
    assert set(data["start"]["models"]["chain"]) >= {"oplet-numpy", "litert"}
    assert data["arena"]["models"]["chain"][0] > 0
    assert set(data["memory"]["models"]["chain"]) >= {"bytes", "oplet-numpy", "litert"}
    assert data["engines"]["models"]["chain"]["1"]["auto"]["ms"] > 0
    text = (out / "results.md").read_text()
    assert (out / "ratios.png").exists() or "matplotlib is not installed" in text
    for title in ("Latency", "Start and memory", "Loading", "Arena", "Memory", "Dispatch", "Batch size", "Threads", "Engines"):
        assert f"## {title}" in text


def test_unknown_sections_are_refused(models):
    done = run(models, "--only", "nothing")
    assert done.returncode == 2
    assert "dispatch" in done.stderr


@pytest.mark.skipif(not (CONFORMANCE / "ops").is_dir(), reason="the recorded cases lie outside the project and are not here")
def test_slow_cases_are_sorted_by_how_much_slower_they_are(tmp_path):
    for package in ("ai_edge_litert", "oplet_builtin_ops"):
        pytest.importorskip(package)
    again = []
    for folder in (tmp_path / "first", tmp_path / "second"):
        before = ["--before", again[-1] / "slow.json"] if again else []
        ran = run("slow", CONFORMANCE / "ops", "--only", "log_softmax", "--rounds", 1, "--out", folder, *before)
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.strip() == (folder / "slow.md").read_text("utf-8").strip()
        again.append(folder)
    told = json.loads((again[0] / "slow.json").read_text("utf-8"))
    assert "log_softmax" in json.dumps(told)
    assert "LOG_SOFTMAX" in ran.stdout


def test_slow_says_what_is_missing(tmp_path):
    ran = run("slow", tmp_path)
    assert ran.returncode == 2
    assert "has no .zip files of recorded cases." in ran.stderr
