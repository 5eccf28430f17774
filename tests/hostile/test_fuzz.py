"""Mutated models run, or are refused with an error of `oplet.errors`: a short run of what fuzz/ does by the million."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz.byte_mutations import damage
from fuzz.campaign import Campaign
from fuzz.choices import SeededChoices
from fuzz.corpus import load_seeds
from fuzz.differential import compare_with_numpy
from fuzz.engines import TURNS, engine_of, installed, limits_of, turns_of
from fuzz.exercise import Run
from fuzz.mutate import mutated
from fuzz.report import report_of
from fuzz.run_model import Outcome, run_model, watch_warnings
from fuzz.worker import model_of, outcome_of
from tests.children import LONG
from tests.kinds import part
from tests.places import ROOT

from oplet import BuiltinOperator, Model
from oplet.schema.options import AddOptions
from oplet_builtin_ops import VERSIONS
from oplet_testing import Spec, one_op_model

SEEDS = load_seeds()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes of a campaign find what this one finds."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))


def test_every_built_in_operator_has_a_seed() -> None:
    models = [Model.from_bytes(data) for _, data in SEEDS]
    used = {model.op_of(node)[1] for model in models for graph in model.root.subgraphs or [] for node in graph.operators or []}
    assert set(VERSIONS) - used == {BuiltinOperator.STABLEHLO_CUSTOM_CALL.name}  # which runs nothing of its own
    assert sum(len(data) for _, data in SEEDS) < 300_000


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "seed"), SEEDS, ids=[name for name, _ in SEEDS])
def test_seeds_are_valid(name: str, seed: bytes) -> None:
    """The inputs are random: some are refused for their values, none before."""
    outcomes = [run_model(seed, SeededChoices(f"{name} {number}"), resize=False) for number in range(3)]
    assert {(outcome.kind, outcome.stage) for outcome in outcomes} <= {("ok", "read"), ("refused", "invoke")}, outcomes


def test_a_number_is_one_mutation_and_another_number_another() -> None:
    name, seed = SEEDS[0]
    assert mutated(seed, name, 5) == mutated(seed, name, 5)
    assert len({mutated(seed, name, number) for number in range(50)}) > 40
    assert len({damage(seed, SeededChoices(str(number))) for number in range(50)}) > 40


def wrong(numbers: range) -> Counter[str]:
    """What should not happen, by its words, and where numpy found what a check should have."""
    found: Counter[str] = Counter()
    for number in numbers:
        outcome = outcome_of(SEEDS, number)
        if outcome.kind not in ("ok", "refused"):
            found[f"number {number}: {outcome}"] += 1
    return found


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_mutated_models_run_or_are_refused() -> None:
    assert not wrong(range(1000))


def campaign_of(count: int, engines: dict[str, int], first: int, state: Path) -> Campaign:
    """A campaign that has run, with those engines that are installed."""
    turns = installed(engines)
    if not turns:
        pytest.skip(f"none of {', '.join(engines)} is installed")
    campaign = Campaign(count, first, state=state, engines=",".join(f"{name}:{turn}" for name, turn in turns.items()))
    campaign.run()
    assert sum(campaign.counts.values()) == count
    assert {key.split()[0] for key in campaign.counts} == set(turns)
    return campaign


@pytest.mark.sweep
def test_other_engines_run_mutated_models_or_refuse_them(tmp_path: Path, here: None) -> None:
    """Differences of floats, and of steps of quantized values, are no findings; all else is."""
    campaign = campaign_of(300, {"compiled": 2, "litert": 2, "openvino": 1}, 1000, tmp_path / "state.json")
    assert not [key for key in campaign.findings if key.split()[1] != "differs"]


def test_a_mutation_says_which_seed_it_is_of() -> None:
    assert model_of(SEEDS, len(SEEDS) + 3)[0] == SEEDS[3][0]


def test_every_seed_meets_every_engine_with_both_limits() -> None:
    turns = turns_of(TURNS)
    met = {(number % 8, engine_of(number, turns), limits_of(number)) for number in range(4000)}
    assert len(met) == 8 * 4 * 2
    counts = Counter(engine_of(number, turns) for number in range(80_000))
    assert all(abs(counts[name] - 10_000 * turn) < 600 for name, turn in turns.items())


@pytest.mark.parametrize("text", ["cuda", "numpy:x", "numpy:0", "numpy:-1", ""])
def test_turns_that_say_nothing_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="engine"):
        turns_of(text)


def test_a_warning_that_gets_out_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with warnings.catch_warnings():
        monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
        watch_warnings()
        monkeypatch.setattr(Run, "use", lambda *_, **__: warnings.warn("overflow", RuntimeWarning, stacklevel=1))
        assert run_model(SEEDS[0][1], SeededChoices("x"))[:3] == ("warned", "load", "RuntimeWarning")


def test_an_engine_that_answers_otherwise_is_found() -> None:
    model = one_op_model("ADD", [Spec("int32", [2]), Spec("int32", [2])], [Spec("int32", [2])], AddOptions())

    def ran(value: int, kind: str = "ok") -> tuple[Outcome, Run]:
        run = Run()
        run_model(model, SeededChoices("x"), resize=False, run=run)
        run.outputs = [np.array([1, value], np.int32)]
        return Outcome(kind, "read", "" if kind == "ok" else "InvokeError"), run

    def judged(mine: tuple[Outcome, Run], numpy: tuple[Outcome, Run]) -> str:
        return compare_with_numpy(*mine, "compiled", lambda engine: numpy if engine == "numpy" else mine).kind

    assert judged(ran(2), ran(2)) == "ok"
    assert judged(ran(2), ran(3)) == "wrong"
    assert judged(ran(2), ran(2, "refused")) == judged(ran(2, "refused"), ran(2)) == "differs"
    assert judged(ran(2, "refused"), ran(2, "refused")) == "refused"


def test_a_model_that_ends_the_process_is_laid_at_the_door_of_its_engine(
    tmp_path: Path, here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes behind it runs in another process."""
    (tmp_path / "sitecustomize.py").write_text(_KILLER)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT), *sys.path]))
    campaign = Campaign(40, 0, engines="numpy")
    campaign.run()
    assert sum(campaign.counts.values()) == 40
    [(key, found)] = campaign.findings.items()
    assert key.split()[:2] == ["numpy", "crash"]
    assert [number for number, _ in found["examples"]] == [17]
    assert not campaign.clean


#: A worker that runs this first dies of number 17.
_KILLER = """
import os, sys

class Killer:
    def find_spec(self, name, path=None, target=None):
        if name == "fuzz.differential":
            sys.meta_path.remove(self)
            import fuzz.mutate as mutate
            mutated = mutate.mutated
            def killing(seed, name, number, other=b""):
                if number == 17:
                    os.abort()
                return mutated(seed, name, number, other)
            mutate.mutated = killing

sys.meta_path.insert(0, Killer())
"""


def test_reports_of_several_campaigns_add_up() -> None:
    found: list[dict[str, Any]] = []
    for first in (0, 20):
        campaign = Campaign(20, first, engines="numpy,litert")
        campaign.counts.update({"numpy default ok read": 11, "litert documented refused load ModelError": 8})
        campaign.times = {"numpy": 60.0, "litert": 30.0}
        campaign.find(first + 7, "default", "crash", "?", "exit -6", "run", "Aborted")
        found.append(campaign.content())
    lines = report_of(found).splitlines()
    assert lines[0].startswith("40 models in 3 minutes of one core; 16 with the documented limits, 24 with the default limits")
    assert "| ran to the end |  | 22 | 0 | 22 |" in lines
    assert "| refused with `ModelError` | load | 0 | 16 | 16 |" in lines
    assert "| **the process died** |  | 2 | 0 | 2 |" in lines
    assert lines[-1] == "- 2 times numpy crash exit -6 run: 7 27: Aborted"


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path, here: None) -> None:
    state = tmp_path / "state.json"
    Campaign(30, state=state, engines="numpy").run()
    again = Campaign(40, state=state, engines="numpy")
    assert (again.next, sum(again.counts.values())) == ({"numpy": 30}, 30)
    again.run()
    assert (again.next, sum(again.counts.values()), again.clean) == ({"numpy": 40}, 40, True)


def test_a_campaign_that_is_stopped_counts_no_model_twice(tmp_path: Path, here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    state = tmp_path / "state.json"
    campaign = Campaign(100, state=state, engines="numpy")
    answers = iter(range(100))

    def stop(line: str, note: Callable[[str], None] = campaign._line) -> None:
        note(line)
        if next(answers) == 40:
            raise KeyboardInterrupt

    monkeypatch.setattr(campaign, "_line", stop)
    with pytest.raises(KeyboardInterrupt):
        campaign.run()
    again = Campaign(100, state=state, engines="numpy")
    assert again.next["numpy"] == sum(again.counts.values()) == 41
    again.run()
    assert sum(again.counts.values()) == 100


@pytest.mark.sweep(cases=True)
def test_twenty_thousand_mutated_models_in_processes_that_are_watched(tmp_path: Path, here: None) -> None:
    count = 20_000 // part().of
    campaign = campaign_of(count, turns_of(TURNS), 10_000_000 + count * part().number, tmp_path / "state.json")
    assert not [key for key in campaign.findings if key.split()[1] != "differs"]


@pytest.mark.parametrize("target", ["fuzz_reader", "fuzz_model"])
def test_targets_of_atheris_run(target: str, tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    command = [sys.executable, "-m", f"fuzz.{target}", "-atheris_runs=200", "-max_len=4096", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=LONG)
    assert done.returncode == 0, done.stderr[-2000:]
