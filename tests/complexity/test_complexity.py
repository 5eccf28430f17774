"""Small models that ask for as much as the limits allow stay within them: at most twice `max_seconds`, at most twice the memory.

What is run here are the models that `python -m tests.complexity --keep` found to take most, and short searches for others. Seconds
are CPU seconds of the process that runs the model, which ends at the deadline itself: no test waits for a machine that is busy.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from tests.complexity.feeding import Feed
from tests.complexity.heaviest import keep, kept
from tests.complexity.knobs import build, knobs_of, ops_of
from tests.complexity.protocol import Answer, Request
from tests.complexity.search import Case, grown
from tests.complexity.seeds import registered, seeds
from tests.complexity.sweep import Found, Sweep, hold
from tests.complexity.watch import GROWTH, Watched, offence
from tests.kinds import part

from oplet_testing import one_op_model
from oplet_testing.one_op import Spec

SEEDS = {seed.name: seed for seed in seeds()}
KEPT = kept()
#: Those that were found to take most, and the seeds of which there are none, larger.
CASES = KEPT + [grown(seed) for seed in SEEDS.values() if seed.name not in {case.seed for case in KEPT}]
COMPILED = pytest.param(
    "compiled",
    marks=pytest.mark.skipif(importlib.util.find_spec("oplet_compiled_ops") is None, reason="pip install oplet-compiled-ops"),
)

#: An operator that runs nothing of its own.
WITHOUT = {"STABLEHLO_CUSTOM_CALL"}


def found_in(cases: Iterable[Case], engine: str) -> list[str]:
    """What should not be, of these models with one engine."""
    found = []
    with Watched(engine) as child:
        for case in cases:
            what, answer = hold(child, case, SEEDS[case.seed].data)
            if what:
                found.append(Found(case, answer, what).line())
    return found


def test_every_registered_operator_has_a_seed() -> None:
    ops = {name: ops_of(seed.data) for name, seed in SEEDS.items()}
    assert registered() - set().union(*ops.values()) == WITHOUT
    assert {case.seed for case in CASES} == set(SEEDS)


def test_kept_models_are_small_files() -> None:
    sizes = {case: len(case.request(SEEDS[case.seed].data, None).model) for case in CASES}
    large = [case for case, size in sizes.items() if size > 1 << 13]
    assert {knob[0] for case in large for knob, _ in case.knobs} <= {
        "operands",
        "results",
        "nodes",
        "dim",
        "option",
        "value",
        "rank",
    }
    assert all(any(knob[0] in ("operands", "results", "nodes") for knob, _ in case.knobs) for case in large)


@pytest.mark.parametrize("engine", ["numpy", COMPILED])
def test_a_spread_of_the_heaviest_models_stays_within_the_limits(engine: str) -> None:
    start, step = (0, 24) if engine == "numpy" else (12, 48)
    assert not found_in(CASES[start::step], engine)


@pytest.mark.sweep(cases=True)
@pytest.mark.parametrize("third", range(3))
def test_the_heaviest_models_of_every_operator_stay_within_the_limits(third: int) -> None:
    assert not found_in(part().among(CASES[third::3]), "numpy")


@pytest.mark.sweep(cases=True)
def test_the_heaviest_models_stay_within_the_limits_with_compiled_kernels() -> None:
    pytest.importorskip("oplet_compiled_ops")
    from oplet import MutableOpResolver
    from oplet.ops.serving.registration import op_label
    from oplet_compiled_ops import register_ops

    resolver = MutableOpResolver()
    register_ops(resolver)
    compiled = {op_label(entry.op) for entry in resolver.entries()}
    cases = [case for case in CASES if ops_of(SEEDS[case.seed].data) & compiled][::2]
    assert not found_in(part().among(cases), "compiled")


@pytest.mark.parametrize("name", ["gather_nd"])
def test_a_search_finds_models_that_are_accepted(name: str) -> None:
    sweep = Sweep("numpy", pairs=1, brief=True, say=lambda line: None)
    sweep.run([SEEDS[name]])
    assert not sweep.found, [found.line() for found in sweep.found]
    counts = sweep.counts["GATHER_ND"]
    assert min(counts["accepted"], counts["refused"]) > 10, counts


# What the sweep itself must be able to do -------------------------------------------------------------------------


def test_every_number_of_a_node_is_found_and_can_be_set() -> None:
    seed = SEEDS["batch_to_space_nd"].data
    found = knobs_of(seed)
    assert found["dim", 0, 0, 0] == 4
    assert found["value", 0, 1, 0] == 2
    assert knobs_of(build(seed, {("dim", 0, 0, 0): 1 << 20, ("value", 0, 1, 0): 1 << 10}))["value", 0, 1, 0] == 1 << 10
    assert knobs_of(SEEDS["conv_2d"].data)["option", 0, 0, "dilation_h_factor", -1] == 1
    assert knobs_of(SEEDS["signalframer"].data)["custom", 0, 0, "frame_size", -1] == 4


def test_large_constants_are_made_in_the_model_or_fed() -> None:
    seed = SEEDS["conv_2d"].data
    tiled = build(seed, {("dim", 0, 1, 1): 3 << 10})
    assert ops_of(tiled) == {"CONV_2D", "TILE"}
    assert len(tiled) < 2048
    assert ops_of(build(seed, {("dim", 0, 1, 1): 3 << 10}, "fed")) == {"CONV_2D"}


def test_a_child_that_dies_or_hangs_is_told_and_replaced() -> None:
    request = Request(SEEDS["abs"].data, Feed(), 2.0)
    with Watched("numpy") as child:
        assert child.run(request).kind == "ok"
        process = child._process
        assert process is not None
        process.kill()
        process.wait()
        assert offence(child.run(request)) == "died"
        assert child.run(request).kind == "ok"


def test_what_takes_too_much_is_an_offence() -> None:
    assert offence(Answer("refused", error="DeadlineError", seconds={"invoke": 4.5})) == "time"
    assert offence(Answer("refused", error="DeadlineError", seconds={"invoke": 3.5, "feed": 9.0})) == ""
    assert offence(Answer("ok", grown=GROWTH + 1)) == "memory"
    assert offence(Answer("escaped", error="ValueError")) == "escaped"
    assert offence(Answer("ok", warned="overflow encountered")) == "warned"


def test_growth_is_measured() -> None:
    filled = one_op_model("FILL", [np.array([8 << 20], np.int32), Spec("float32", [])], [Spec("float32", [1])])
    with Watched("numpy") as child:
        answer = child.run(Request(filled, Feed("ones"), 2.0))
    assert answer.kind == "ok"
    assert 30 << 20 < answer.grown < 40 << 20


def test_cases_are_kept_as_they_are(tmp_path: Path) -> None:
    case = Case("conv_2d", ((("dim", 0, 1, 1), 3072), (("option", 0, 0, "stride_h", -1), 8)), "random", "fed")
    keep(tmp_path / "kept.jsonl", {"conv_2d": [(1.0, case)], "abs": []})
    assert kept(tmp_path / "kept.jsonl") == [case]
    keep(tmp_path / "kept.jsonl", {"conv_2d": []})
    assert kept(tmp_path / "kept.jsonl") == []
