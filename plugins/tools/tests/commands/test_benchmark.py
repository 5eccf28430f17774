"""`oplet benchmark`: times, memory, and where the time goes; every number belongs to what it says."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from oplet import Context, DelegateKernel, DelegateParams, Interpreter, MutableOpResolver, Node, Registration, SimpleDelegate
from oplet.errors import TensorError
from oplet.plugins.manager import PluginManager
from oplet.runtime.describe.profiler import Event, Profiler
from oplet.schema.options import AddOptions
from oplet_testing import Graph, Op, Spec, graph_model
from oplet_tools.benchmarking.benchmark import Schedule, benchmark_model, parse_shape
from oplet_tools.benchmarking.litert_runner import LiteRTError
from oplet_tools.benchmarking.profile import nested, summarize
from oplet_tools.benchmarking.profile_html import profile_page
from oplet_tools.benchmarking.timings import Ratio, Timings

ROWS = Spec("float32", [1, 4])
#: Hostile names: what comes from a model must stay text wherever it is shown.
HOSTILE = "<script>alert('&')</script>"
QUICK = ("--num-runs", 3, "--min-secs", 0, "--warmup-min-secs", 0)
SCHEDULE = Schedule(num_runs=3, min_secs=0, warmup_min_secs=0, profiled_runs=2)


@pytest.fixture
def model(tmp_path):
    """Three nodes: y = tanh(x); z = y + y; out = tanh(z)."""
    graph = Graph(
        {"x": ROWS, HOSTILE: ROWS, "z": ROWS, "out": ROWS},
        "x",
        "out",
        [
            Op("TANH", "x", HOSTILE),
            Op("ADD", f"{HOSTILE} {HOSTILE}", "z", AddOptions()),
            Op("TANH", "z", "out"),
        ],
    )
    path = tmp_path / "model.tflite"
    path.write_bytes(graph_model(graph))
    return path


def measured(oplet, model, *arguments):
    ran = oplet("benchmark", model, *QUICK, *arguments, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_the_json_has_everything(oplet, model):
    result = measured(oplet, model)
    assert result["inputs"] == {"x": {"type": "float32", "shape": [1, 4]}}
    assert result["runs"]["count"] == 3
    assert result["load"] > 0 < result["allocate"]
    assert 0 < result["runs"]["min"] <= result["runs"]["p50"] <= result["runs"]["p99"] <= result["runs"]["max"]
    assert result["memory"]["arena"] >= 3 * 16
    assert result["memory"]["model"] == model.stat().st_size
    profile = result["profile"]
    assert [(node["op"], node["calls"]) for node in profile["nodes"]] == [("TANH", 1), ("ADD", 1), ("TANH", 1)]
    assert {op["op"]: (op["nodes"], op["calls"]) for op in profile["ops"]} == {"TANH": (2, 2), "ADD": (1, 1)}
    assert profile["nodes"][-1]["cumulative"] == pytest.approx(1)
    assert profile["ops"][-1]["cumulative"] == pytest.approx(1)
    assert result["rivals"] == []


def test_the_tables_are_for_people(oplet, model):
    ran = oplet("benchmark", model, *QUICK, "--run-order", "--top", 1)
    assert (ran.code, ran.err) == (0, "")
    for title in ("start", "inference, ms", "memory", "nodes, in order", "the costliest 1 of 3", "kinds of ops"):
        assert title in ran.out
    quiet = oplet("benchmark", model, *QUICK, "--no-profile").out
    assert "kinds of ops" not in quiet


def test_no_profile_leaves_nothing_to_write(oplet, model, tmp_path):
    ran = oplet("benchmark", model, *QUICK, "--no-profile", "--trace", tmp_path / "t.json")
    assert ran.code == 2
    assert not (tmp_path / "t.json").exists()


def test_another_shape_for_an_input(oplet, model):
    assert measured(oplet, model, "--input-layer-shape", "x:5,4")["inputs"]["x"]["shape"] == [5, 4]
    unknown = oplet("benchmark", model, *QUICK, "--input-layer-shape", "y:5,4")
    assert unknown.code == 1
    assert "'y'" in unknown.err
    assert "'x'" in unknown.err


@pytest.mark.parametrize("text", ["x", "x:", ":1,2", "x:1,a", "x:1,-2", "x:1,,2"])
def test_malformed_shapes_are_refused(text):
    if text == "x:":
        assert parse_shape(text) == ("x", ())  # a number without dimensions
        return
    with pytest.raises(TensorError, match=re.escape(repr(text))):
        parse_shape(text)


def test_values_come_from_files_too(oplet, model, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1, 4), np.float32))
    assert measured(oplet, model, "-i", tmp_path / "x.npy")["inputs"]["x"]["shape"] == [1, 4]


class Tanh(SimpleDelegate):
    name = "tanh"

    def is_node_supported(self, context: Any, node: Node) -> bool | str:
        return node.op_name == "TANH"

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        return Kernel(params)


class Kernel(DelegateKernel):
    def __init__(self, params: DelegateParams) -> None:
        [self.claimed] = params.nodes

    def invoke(self, context: Context, node: Node) -> None:
        np.tanh(self.claimed.inputs[0].data, out=self.claimed.outputs[0].data)


def test_a_delegate_s_kernels_are_nodes(oplet, model, monkeypatch):
    ours = PluginManager()
    ours.registry().add("tanh", Tanh)
    monkeypatch.setattr("oplet_tools.cli.settings.Settings.plugins", lambda self, libraries=None: ours)
    result = measured(oplet, model, "--delegate", "tanh")
    assert result["delegated"] == [{"delegate": "tanh", "nodes": 2, "of": 3}]
    assert [(node["op"], node["calls"]) for node in result["profile"]["nodes"]] == [("tanh", 1), ("ADD", 1), ("tanh", 1)]


def test_runs_and_seconds_bound_each_other(model, monkeypatch):
    looks = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: next(looks) / 1000)  # whatever the machine does besides
    monkeypatch.setattr("oplet_tools.benchmarking.benchmark.time", clock)
    many = benchmark_model(model, schedule=Schedule(num_runs=7, min_secs=0, warmup_runs=0, profiled_runs=0))
    assert many.runs.count == 7
    assert many.warmup is None
    assert many.profile.nodes == []
    long = benchmark_model(model, schedule=Schedule(num_runs=1, min_secs=0.05, warmup_min_secs=0, profiled_runs=0))
    assert long.runs.count > 7
    short = benchmark_model(model, schedule=Schedule(num_runs=10**9, min_secs=0, max_secs=0.02, warmup_min_secs=0))
    assert 1 <= short.runs.count < 10**6


def test_progress_goes_from_nothing_to_everything(model):
    told: dict[str, list[float]] = {}
    benchmark_model(model, schedule=SCHEDULE, progress=lambda what, part: told.setdefault(what, []).append(part))
    assert told.keys() >= {"running", "profiling"}
    assert all(parts == sorted(parts) for parts in told.values())
    assert told["running"][-1] == 1


@pytest.mark.parametrize("rival", ["litert", "litert-no-xnnpack", "litert-reference"])
def test_litert_takes_turns(oplet, model, rival):
    pytest.importorskip("ai_edge_litert")
    [found] = measured(oplet, model, "--compare", rival, "--input-layer-shape", "x:3,4")["rivals"]
    assert found["name"] == rival
    assert found["runs"]["count"] == found["ratio"]["pairs"] == 3
    assert found["ratio"]["min"] <= found["ratio"]["low"] <= found["ratio"]["median"] <= found["ratio"]["max"]


def test_a_rival_that_is_none_is_refused(oplet, model):
    pytest.importorskip("ai_edge_litert")
    ran = oplet("benchmark", model, *QUICK, "--compare", "onnx")
    assert ran.code == 1
    assert "litert-no-xnnpack" in ran.err


def test_without_litert_the_message_says_what_to_install(oplet, model, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ai_edge_litert", None)
    ran = oplet("benchmark", model, *QUICK, "--compare", "litert")
    assert ran.code == 1
    assert "pip install ai-edge-litert" in ran.err


def test_a_model_that_the_rival_cannot_run_is_told(examples):
    pytest.importorskip("ai_edge_litert")
    with pytest.raises(LiteRTError, match=r"litert cannot run the model: .*[Aa]tan"):
        benchmark_model(examples / "atan" / "atan.tflite", schedule=SCHEDULE, compare=["litert"])


def test_custom_ops_are_profiled_like_any_other(oplet, examples):
    result = measured(oplet, examples / "atan" / "atan.tflite")
    assert {op["op"] for op in result["profile"]["ops"]} == {"Atan", "ADD"}


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.data: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.data.append(data)


def test_the_page_needs_nothing_else_and_names_stay_text(oplet, model, tmp_path):
    path = tmp_path / "profile.html"
    assert oplet("benchmark", model, *QUICK, "--profile-html", path).code == 0
    page = Page(path.read_text(encoding="utf-8"))
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert any(HOSTILE in text for text in page.data)
    assert not {"src", "href"} & {name for _, attributes in page.tags for name in attributes}
    assert [tag for tag, _ in page.tags].count("rect") == 3  # the nodes of one inference
    assert sum(attributes.get("class") == "sortable" for _, attributes in page.tags) == 2


def test_names_that_html_has_no_place_for():
    event = Event(0, 0, "A", "\ud800\x00\n$title", 0.0, 1.0)
    page = profile_page("\x1b", [], summarize([event]), [event], {(0, 0): "\ud800"})
    page.encode("utf-8")
    assert "\x00" not in page
    assert "$title" in page


def test_the_trace_has_each_node_inside_its_inference(oplet, model, tmp_path):
    path = tmp_path / "trace.json"
    assert oplet("benchmark", model, *QUICK, "--trace", path).code == 0
    events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
    assert [event["name"] for event in events[:3]] == ["load", "allocate", "first inference"]
    inferences = [event for event in events if event["name"] == "inference"]
    nodes = [event for event in events if event["cat"] == "node"]
    assert (len(inferences), len(nodes)) == (3, 9)
    for node in nodes:
        around = [i for i in inferences if i["ts"] <= node["ts"] and node["ts"] + node["dur"] <= i["ts"] + i["dur"] + 1e-3]
        assert len(around) == 1
    assert nodes[0]["args"] == {"subgraph": 0, "node": 0, "op": "TANH", "outputs": HOSTILE}


def test_the_summary_counts_called_nodes_once():
    """A WHILE of two rounds: what its body takes is the body's, not its own."""
    events = [
        Event(1, 0, "ADD", "ADD", 1.0, 1.0),
        Event(1, 0, "ADD", "ADD", 3.0, 2.0),
        Event(0, 0, "WHILE", "WHILE", 0.0, 6.0),
        Event(0, 1, "TANH", "TANH", 6.0, 4.0),
    ]
    profile = summarize(events + [event._replace(start=event.start + 100) for event in events])
    assert profile.runs == 2
    assert profile.seconds == 10
    assert [(n.label, n.seconds, n.calls, n.start) for n in profile.nodes] == [
        ("WHILE", 3, 1, 0), ("ADD", 3, 2, 1), ("TANH", 4, 1, 6),
    ]  # fmt: skip
    assert [(op.op, op.share, op.cumulative) for op in profile.ops] == [
        ("TANH", pytest.approx(0.4), pytest.approx(0.4)),
        ("WHILE", pytest.approx(0.3), pytest.approx(0.7)),
        ("ADD", pytest.approx(0.3), pytest.approx(1.0)),
    ]
    assert [(event.label, own, depth) for event, own, depth in nested(events)] == [
        ("WHILE", 3, 0), ("ADD", 1, 1), ("ADD", 2, 1), ("TANH", 4, 0),
    ]  # fmt: skip


@pytest.mark.parametrize(("part", "said"), [(0.9, False), (3.0, True)])
def test_a_profile_that_takes_the_model_apart_says_that_its_shares_are_not_the_model_s(oplet, model, monkeypatch, part, said):
    from oplet_tools.benchmarking import benchmark

    def stretched(*arguments, **options):
        return replace(summarize(*arguments, **options), seconds=part)

    fixed = Timings.of([1.0, 1.0, 1.0])
    monkeypatch.setattr(benchmark.Timings, "of", lambda runs: fixed)
    monkeypatch.setattr(benchmark, "summarize", stretched)
    ran = oplet("benchmark", model, *QUICK)
    assert ran.code == 0, ran.err
    assert ("an inference without the profiler takes 1000.000 ms" in ran.out) is said


def test_nothing_seen_is_an_empty_summary():
    assert summarize([]).nodes == []


def test_the_same_from_python(model):
    profiler = Profiler()
    interpreter = Interpreter(model_path=model, profiler=profiler)
    interpreter.allocate_tensors()
    interpreter.invoke()
    profiler.enabled = False
    interpreter.invoke()
    assert [node.op for node in summarize(profiler.events).nodes] == ["TANH", "ADD", "TANH"]


def test_timings_and_ratios_are_what_numpy_says():
    seconds = [4.0, 1.0, 2.0, 3.0]
    timings = Timings.of(seconds)
    assert (timings.count, timings.first, timings.min, timings.max, timings.mean, timings.p50) == (4, 4, 1, 4, 2.5, 2.5)
    assert timings.std == pytest.approx(np.std(seconds))
    ratio = Ratio.of(seconds, [2.0, 2.0, 2.0, 2.0])
    assert (ratio.pairs, ratio.median, ratio.min, ratio.max) == (4, 1.25, 0.5, 2)


def test_a_failing_kernel_is_told_in_one_line(oplet, model, monkeypatch):
    def fail(context, node):
        raise ZeroDivisionError("no luck")

    resolver = MutableOpResolver()
    resolver.add_builtin("ADD", Registration(invoke=fail), max_version=9)
    monkeypatch.setattr(PluginManager, "resolver", lambda self, prefer=None: resolver)
    resolver.add_builtin("TANH", Registration(invoke=fail), max_version=9)
    ran = oplet("benchmark", model, *QUICK)
    assert ran.code == 1
    assert ran.err.count("\n") == 1
    assert "no luck" in ran.err


@pytest.mark.parametrize("option", ["--profile-html", "--trace"])
def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(oplet, model, monkeypatch, tmp_path, option):
    monkeypatch.setattr("oplet_tools.benchmarking.benchmark.benchmark_model", lambda *_, **__: pytest.fail("it measured"))
    ran = oplet("benchmark", model, option, tmp_path / "no" / "x")
    assert ran.code == 1
    assert "No such file or directory" in ran.err


#: What litert-benchmark prints, by its source: each line's label, which fills 23 characters, and the form of its value.
LITERT_LINES = {
    "Model initialization:": r"\d+\.\d\d ms",
    "Warmup (first):": r"\d+\.\d\d ms",
    "Warmup (avg):": r"\d+\.\d\d ms \(2 runs\)",
    "Inference (avg):": r"\d+\.\d\d ms \(4 runs\)",
    **{f"Inference ({name}):": r"\d+\.\d\d ms" for name in ("min", "max", "median", "std", "p5", "p95")},
    "Throughput:": r"\d+\.\d\d MB/s",
    "Fully accelerated:": "False",
}


def test_litert_benchmark_s_options_are_taken_and_its_block_and_json_are_written(oplet, model, tmp_path):
    file = tmp_path / "result.json"
    ran = oplet(
        *("benchmark", "--litert-output", f"--model={model}", "--num_runs", 4, "--warmup_runs=2", "--num_threads", 1),
        *("--use_cpu", "--verbose", "--use_npu", "--runtime_path", "/x", "--result_json", file),
    )
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[:4] == ["", "=" * 40, " BENCHMARK RESULTS", "=" * 40]
    assert lines[-1] == "=" * 40
    assert [line[:23].rstrip() for line in lines[4:-1]] == list(LITERT_LINES)
    for line, form in zip(lines[4:-1], LITERT_LINES.values()):
        assert re.fullmatch(form, line[23:]), line
    assert "--use_npu, --runtime_path without effect: oplet runs on the CPU, and what --delegate names" in ran.err
    told = json.loads(file.read_text())
    assert list(told) == [
        *("model", "model_size_mb", "accelerators", "signature", "fully_accelerated", "num_threads", "latency", "throughput_mb_s")
    ]
    assert list(told["latency"]) == [
        *("init_ms", "warmup_first_ms", "warmup_avg_ms", "num_warmup_runs", "avg_ms", "min_ms", "max_ms", "median_ms", "std_ms"),
        *("p5_ms", "p95_ms", "num_runs"),
    ]
    assert (told["accelerators"], told["latency"]["num_runs"], told["latency"]["num_warmup_runs"]) == (["CPU"], 4, 2)


def test_what_litert_benchmark_takes_for_granted_holds_with_its_output_alone(oplet, model):
    ran = oplet("benchmark", model, "--litert-output")
    assert "ms (5 runs)" in ran.out
    assert "ms (50 runs)" in ran.out
    assert oplet("benchmark", model, *QUICK, "--num_runs", 4).code == 2
    assert "goes with --litert-output" in oplet("benchmark", model, *QUICK, "--result-json", "x.json").err
    ran = oplet("benchmark", model, "--litert-output", "--num_runs=2", "--require_full_delegation")
    assert (ran.code, ran.out) == (1, "")
    assert "is not run by one delegate alone (there is none: give --delegate)" in ran.err


def test_the_statistics_are_litert_benchmark_s():
    import statistics

    from oplet_tools.benchmarking.litert_output import _latency

    result = benchmark_model_of(seconds := [0.004, 0.001, 0.003, 0.0025, 0.01])
    told = _latency(result)
    assert told["std_ms"] == pytest.approx(statistics.stdev(seconds) * 1e3)
    ordered = sorted(seconds)
    assert told["p5_ms"] == pytest.approx((ordered[0] + 0.2 * (ordered[1] - ordered[0])) * 1e3)  # (5 - 1) * 5 / 100 = 0.2
    assert told["p95_ms"] == pytest.approx((ordered[3] + 0.8 * (ordered[4] - ordered[3])) * 1e3)
    assert told["median_ms"] == 3.0


def benchmark_model_of(seconds):
    """A result with these times, of a model that is not asked for."""

    return SimpleNamespace(runs=Timings.of(seconds), warmup=None, load=0.0, allocate=0.0)
