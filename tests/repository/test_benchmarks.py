"""The measurements run, and say what they could not measure. What they find is never asserted on."""

from __future__ import annotations

import json
import os
import sys

import numpy as np
import pytest
from benchmarks.language_net import WEIGHTS, Size, caches, language_model
from benchmarks.native import can_run
from tests.children import run_child
from tests.places import CONFORMANCE, ROOT

from oplet import Interpreter
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


@pytest.mark.sweep
def test_the_language_model_is_measured_in_both_ways_and_in_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("OPLET_CACHE_DIR", str(tmp_path / "cache"))
    for package in ("ai_edge_litert", "oplet_lm"):
        pytest.importorskip(package)
    numbers = tmp_path / "numbers.json"
    arguments = ["--small", "--rounds", 1, "--threads", 1, "--weights", "int8", "--json", numbers]
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "benchmarks.language", *map(str, arguments)]
    done = run_child(command, cwd=ROOT, env=dict(os.environ, PYTHONPATH=path))
    found = json.loads(numbers.read_text())["int8"]
    assert set(found["seconds"]["1"]) == {"decode", "prefill_8", "prefill_32"}
    assert {"litert", "oplet", "litert-invoke", "oplet-state"} == set(found["seconds"]["1"]["decode"])
    assert None not in found["peak"].values()
    assert "signature runners" in done.stdout
    assert "state in place" in done.stdout


@pytest.mark.parametrize("weights", WEIGHTS)
def test_the_measured_language_model_computes_the_same_in_both_runtimes(weights):
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    size = Size(layers=2, width=64, heads=4, inner=128, vocabulary=256, context=32)
    content = language_model(weights, size, (8,))
    answers = []
    for interpreter in (litert.Interpreter(model_content=content), Interpreter(model_content=content)):
        held = {name: np.zeros(shape, np.float32) for name, shape in caches(size).items()}
        for key, tokens, start in (("prefill_8", range(8), 0), ("decode", [9], 8)):
            rows = np.arange(start, start + len(tokens), dtype=np.int32)
            mask = np.where(np.arange(size.context) <= rows[:, None], 0, -1e30).astype(np.float32)[None, None]
            runner = interpreter.get_signature_runner(key)
            answer = runner(tokens=np.array([tokens], np.int32), input_pos=rows, mask=mask, **held)
            held = {name: np.array(answer[name]) for name in held}
        answers.append({**held, "logits": np.array(answer["logits"])})
    for name, expected in answers[0].items():
        np.testing.assert_allclose(answers[1][name], expected, rtol=0, atol=1e-5 * np.abs(expected).max(), err_msg=name)


def test_the_measured_language_model_has_thirty_million_parameters():
    assert 29e6 < Size().parameters < 31e6
