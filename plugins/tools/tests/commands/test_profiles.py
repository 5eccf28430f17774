"""Profiles on a busy machine: what disturbs a run is told from what a node takes; work, peaks, and the comparison with an earlier profile."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from plugins.tools.tests.exploring_models import hostile_model

from oplet import Work
from oplet.runtime.describe.profiler import Event
from oplet.schema.options import AddOptions
from oplet_testing import Graph, Op, Spec, graph_model
from oplet_tools.benchmarking.profile import summarize
from oplet_tools.benchmarking.profile_html import profile_page
from oplet_tools.benchmarking.profiling.against import BaseError, read_base
from oplet_tools.benchmarking.profiling.node_facts import NodeFacts
from oplet_tools.benchmarking.profiling.peaks import Peaks
from oplet_tools.benchmarking.profiling.spread import Spread, disturbed, ranks

#: What nodes take, in milliseconds, undisturbed.
TAKES = (0.8, 0.05, 1.6, 0.4, 0.1, 1.2)
QUICK = ("--num-runs", 3, "--min-secs", 0, "--warmup-min-secs", 0)
HOSTILE = "<script>alert(1)</script>\x1b[31m\x00" + "n" * 10_000


def busy(seed: int, *, clock: bool, runs: int = 60) -> tuple[list[Event], list[float] | None]:
    """Events of nodes on a machine where each run is preempted by chance, for 4 ms, the longer it is the likelier, and noisy besides."""
    rng = np.random.default_rng(seed)
    events, away, now = [], [], 0.0
    for _ in range(runs):
        slow = rng.choice([1.0, 1.2], p=[0.8, 0.2])  # a neighbour's memory traffic: all nodes of the inference are slower
        for node, takes in enumerate(TAKES):
            seconds = takes * 1e-3 * slow * rng.uniform(1.0, 1.04)
            gone = 4e-3 * rng.uniform(0.5, 1.0) * (rng.random() < 0.3 * takes)
            events.append(Event(0, node, f"OP{node}", f"OP{node}", now, seconds + gone))
            away.append(gone + rng.uniform(0, 2e-6))
            now += seconds + gone + 1e-6
    return events, away if clock else None


@pytest.mark.parametrize("clock", [True, False])
def test_preemption_changes_neither_the_ranking_nor_the_shares(clock: bool) -> None:
    whole = sum(TAKES)
    for seed in range(10):
        events, away = busy(seed, clock=clock)
        profile = summarize(events, away=away)
        assert [node.node for node in profile.by_time] == [2, 5, 0, 3, 4, 1]
        assert [node.rank for node in profile.by_time] == [1, 2, 3, 4, 5, 6]
        for node in profile.nodes:
            assert node.share == pytest.approx(TAKES[node.node] / whole, rel=0.06)
            assert node.low <= node.seconds <= node.high < TAKES[node.node] * 1.3e-3
        assert profile.nodes[2].disturbed > 10
        assert profile.nodes[2].mean > profile.nodes[2].seconds * 1.3  # which is what a mean would have said


def test_one_disturbed_run_is_marked_and_does_not_make_a_small_node_the_costliest() -> None:
    events = [
        Event(0, node, op, op, run + node / 2, 1e-3 if node else 1e-5)
        for run in range(20)
        for node, op in enumerate(("PAD", "CONV"))
    ]
    events[8] = events[8]._replace(seconds=0.4)
    pad, conv = summarize(events).nodes
    assert (pad.disturbed, conv.disturbed) == (1, 0)
    assert pad.share == pytest.approx(0.01, rel=0.05)
    assert pad.mean > conv.mean


def test_nodes_too_near_to_be_told_apart_share_a_rank_and_keep_their_order() -> None:
    assert ranks([1.0, 1.05, 5.0, 0.97, 0.2]) == [2, 2, 1, 2, 5]
    orders = set()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        events = [
            Event(0, node, "A", "A", run + node / 10, takes * rng.uniform(0.98, 1.02))
            for run in range(30)
            for node, takes in enumerate((1e-3, 1.01e-3, 5e-3, 0.99e-3))
        ]
        orders.add(tuple(node.node for node in summarize(events).by_time))
    assert orders == {(2, 0, 1, 3)}


def test_waiting_that_belongs_to_every_run_is_no_disturbance() -> None:
    waits = [0.5e-3] * 19 + [5e-3]
    assert disturbed([1e-3] * 20, waits).tolist() == [False] * 19 + [True]


def test_where_nearly_all_runs_are_disturbed_the_shorter_half_counts() -> None:
    seconds = [1e-3, 5e-3, 6e-3, 7e-3, 8e-3, 9e-3, 9e-3, 9e-3]
    spread = Spread.of(seconds, [0, *[4e-3 * n for n in range(1, 8)]])
    assert spread.median < 7e-3
    assert spread.count == 8
    assert Spread.of([2.0]) == Spread(2, 2, 2, 0, 2, 2, 1, 0)


def test_the_first_inference_stands_apart() -> None:
    later = [Event(0, 0, "A", "A", float(run), 1e-3) for run in range(5)]
    [node] = summarize(later, first=[Event(0, 0, "A", "A", -9.0, 0.7)]).nodes
    assert (node.first, node.seconds) == (0.7, 1e-3)
    assert node.mean == pytest.approx(1e-3)


def test_work_is_counted_per_inference_and_gives_the_rates() -> None:
    events = [Event(0, 0, "A", "A", run + call / 4, 1e-3) for run in range(4) for call in range(2)]
    facts = {(0, 0): NodeFacts("y", ("float32[2]",), ("float32[3]",), Work(macs=500, operations=0, read=300, written=200))}
    [node] = summarize(events, runs=4, facts=facts).nodes
    assert (node.calls, node.macs, node.read, node.written, node.intensity) == (2, 1000, 600, 400, 2)
    assert node.inputs == ("float32[2]",)


def test_the_roofline_bounds_by_memory_left_of_the_ridge_and_by_computing_right_of_it() -> None:
    peaks = Peaks(gflops=100, gbytes=10)
    assert [peaks.attainable(x) for x in (1, 10, 1000)] == [10, 100, 100]
    assert [peaks.bound(x) for x in (1, 9.9, 10, 1000)] == ["memory", "memory", "compute", "compute"]


@pytest.fixture
def model(tmp_path: Any) -> Any:
    rows = Spec("float32", [1, 4])
    graph = Graph(
        {"x": rows, HOSTILE: rows, "out": rows},
        "x",
        "out",
        [Op("TANH", "x", HOSTILE), Op("ADD", f"{HOSTILE} {HOSTILE}", "out", AddOptions())],
    )
    path = tmp_path / "model.tflite"
    path.write_bytes(graph_model(graph))
    return path


def test_the_json_tells_spread_shapes_and_work_of_each_node(oplet: Any, model: Any) -> None:
    result = json.loads(oplet("benchmark", model, *QUICK, "--json", "--roofline").out)
    tanh, add = result["profile"]["nodes"]
    assert (add["inputs"], add["outputs"]) == (["float32[1,4]"] * 2, ["float32[1,4]"])
    assert (add["macs"], add["operations"], add["read"], add["written"], add["intensity"]) == (0, 4, 16, 16, 0.125)
    for node in (tanh, add):
        assert 0 <= node["low"] <= node["seconds"] <= node["high"]
        assert node["disturbed"] in range(4)
        assert node["gflops"] > 0 < node["first"]
    assert result["peaks"]["gflops"] > 0 < result["peaks"]["gbytes"]
    assert len(result["model_sha256"]) == 64
    assert result["runs"]["p25"] <= result["runs"]["p50"] <= result["runs"]["p75"]


def changed(base: dict[str, Any], factor: float) -> dict[str, Any]:
    """A benchmark that took `factor` times as long, with little spread."""
    entries = [*base["profile"]["nodes"], *base["profile"]["ops"]]
    for entry in entries:
        entry["seconds"] *= factor
        entry["low"], entry["high"] = entry["seconds"] * 0.99, entry["seconds"] * 1.01
    return base


def test_changes_beyond_both_spreads_are_told_and_others_are_not(oplet: Any, model: Any, tmp_path: Any) -> None:
    written = oplet("benchmark", model, *QUICK, "--json").out
    for factor, verdict in ((1e-6, "slower"), (1e6, "faster")):
        path = tmp_path / "base.json"
        path.write_text(json.dumps(changed(json.loads(written), factor)))
        found = json.loads(oplet("benchmark", model, *QUICK, "--json", "--against", path).out)["against"]
        assert {change["verdict"] for change in [*found["nodes"], *found["ops"]]} == {verdict}
        ran = oplet("benchmark", model, *QUICK, "--against", path)
        assert ran.code == 0, ran.err
        assert verdict in ran.out
        assert "\x1b" not in ran.out
    wide = json.loads(written)
    for entry in [*wide["profile"]["nodes"], *wide["profile"]["ops"]]:
        entry["low"], entry["high"] = 0.0, 1e9
    path.write_text(json.dumps(wide))
    found = json.loads(oplet("benchmark", model, *QUICK, "--json", "--against", path).out)["against"]
    assert {change["verdict"] for change in [*found["nodes"], *found["ops"]]} == {""}


def test_nodes_that_only_one_has_and_other_circumstances_are_told(oplet: Any, model: Any, tmp_path: Any) -> None:
    base = json.loads(oplet("benchmark", model, *QUICK, "--json").out)
    base["profile"]["nodes"][0] |= {"label": "FUSED"}
    base["num_threads"] = 7
    path = tmp_path / "base.json"
    path.write_text(json.dumps(base))
    found = json.loads(oplet("benchmark", model, *QUICK, "--json", "--against", path).out)["against"]
    verdicts = {(change["op"], change["verdict"]) for change in found["nodes"]}
    assert {("TANH", "new"), ("FUSED", "gone")} <= verdicts
    assert found["notes"] == ["other threads: 7 before, 1 now"]


@pytest.mark.parametrize(
    "text",
    ["", "nonsense", "[]", "3", "null", "{}", '{"model_sha256": 3}', "[" * 100_000, "\ud800", "NODES", "NAN", "TEXT"],
)
def test_a_file_that_is_no_benchmark_is_refused_in_a_sentence(oplet: Any, model: Any, tmp_path: Any, text: str) -> None:
    path = tmp_path / "base.json"
    if text in ("NODES", "NAN", "TEXT"):
        base = json.loads(oplet("benchmark", model, *QUICK, "--json").out)
        if text == "NODES":
            base["profile"]["nodes"] = 5
        else:
            base["profile"]["nodes"][0]["seconds"] = float("nan") if text == "NAN" else "soon"
        text = json.dumps(base)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    ran = oplet("benchmark", model, *QUICK, "--against", path)
    assert ran.code == 1
    assert ran.err.count("\n") == 1
    assert "is not a benchmark to compare with" in ran.err


def test_a_benchmark_of_another_model_is_refused(oplet: Any, model: Any, examples: Any, tmp_path: Any) -> None:
    path = tmp_path / "base.json"
    path.write_text(oplet("benchmark", examples / "atan" / "atan.tflite", *QUICK, "--json").out)
    ran = oplet("benchmark", model, *QUICK, "--against", path)
    assert ran.code == 1
    assert "of another model, 'atan.tflite'" in ran.err
    path.write_text(oplet("benchmark", model, *QUICK, "--json", "--no-profile").out)
    with pytest.raises(BaseError, match="has no profile"):
        read_base(path, json.loads(path.read_text())["model_sha256"])


class Texts(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_hostile_names_are_text_on_the_page(oplet: Any, model: Any, tmp_path: Any) -> None:
    path = tmp_path / "profile.html"
    assert oplet("benchmark", model, *QUICK, "--profile-html", path, "--roofline").code == 0
    page = path.read_text("utf-8")
    assert "\x1b" not in page
    assert "\x00" not in page
    found = Texts(page)
    assert found.tags.count("script") == 1
    assert "<script>alert(1)</script>" in found.text


@pytest.mark.parametrize("width", [360, 800, 1600])
def test_a_page_is_as_wide_as_the_window_and_loads_nothing(oplet: Any, browser: Any, tmp_path: Any, width: int) -> None:
    (tmp_path / "model.tflite").write_bytes(hostile_model())
    path = tmp_path / "profile.html"
    assert oplet("benchmark", tmp_path / "model.tflite", *QUICK, "--profile-html", path, "--roofline").code == 0
    page = browser.new_page(viewport={"width": width, "height": 900})
    told: list[str] = []
    page.on("request", lambda request: told.append(request.url))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.title() == "oplet benchmark: model.tflite"
    assert '</script><script>document.title="owned"</script>' in page.inner_text("body")
    assert (told, page.locator("img").count()) == ([path.as_uri()], 0)
    page.close()


def test_a_page_shows_unknown_work_as_nothing() -> None:
    event = Event(0, 0, "A", "A", 0.0, 1.0)
    assert "None" not in profile_page("title", [], summarize([event]), [event], peaks=Peaks(1, 1))
