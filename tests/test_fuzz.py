"""Mutated models run, or are refused with an error of `oplet.errors`: a short run of what fuzz/ does by the million."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from fuzz.bytewise import damage
from fuzz.campaign import Campaign
from fuzz.choices import SeededChoices
from fuzz.corpus import load_seeds
from fuzz.mutate import mutated
from fuzz.run_model import run_model
from fuzz.worker import model_of, outcome_of

from oplet import BuiltinOperator, Model
from oplet_builtin_ops import VERSIONS

ROOT = Path(__file__).parents[1]
SEEDS = load_seeds()


def test_every_built_in_operator_has_a_seed() -> None:
    models = [Model.from_bytes(data) for _, data in SEEDS]
    used = {model.op_of(node)[1] for model in models for graph in model.root.subgraphs or [] for node in graph.operators or []}
    assert set(VERSIONS) - used == {BuiltinOperator.STABLEHLO_CUSTOM_CALL.name}  # which runs nothing of its own
    assert sum(len(data) for _, data in SEEDS) < 300_000


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


def test_mutated_models_run_or_are_refused() -> None:
    assert not wrong(range(1500))


def test_a_mutation_says_which_seed_it_is_of() -> None:
    assert model_of(SEEDS, len(SEEDS) + 3)[0] == SEEDS[3][0]


def test_a_campaign_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    state = tmp_path / "state.json"
    Campaign(30, state=state).run()
    again = Campaign(40, state=state)
    assert (again.next, sum(again.counts.values())) == (30, 30)
    again.run()
    assert (again.next, sum(again.counts.values()), again.clean) == (40, 40, True)


def test_a_campaign_that_is_stopped_counts_no_model_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    state = tmp_path / "state.json"
    campaign = Campaign(400, state=state)
    answers = iter(range(100))

    def stop(line: str, note: Callable[[str], None] = campaign._line) -> None:
        note(line)
        if next(answers) == 40:
            raise KeyboardInterrupt

    monkeypatch.setattr(campaign, "_line", stop)
    with pytest.raises(KeyboardInterrupt):
        campaign.run()
    again = Campaign(400, state=state)
    assert again.next == sum(again.counts.values()) == 41
    again.run()
    assert sum(again.counts.values()) == 400


@pytest.mark.slow
def test_twenty_thousand_mutated_models_in_a_process_that_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    campaign = Campaign(20_000, first=10_000_000, state=tmp_path / "state.json")
    campaign.run()
    assert sum(campaign.counts.values()) == 20_000
    assert not campaign.findings


@pytest.mark.parametrize("target", ["fuzz_reader", "fuzz_model"])
def test_targets_of_atheris_run(target: str, tmp_path: Path) -> None:
    pytest.importorskip("atheris")
    command = [sys.executable, "-m", f"fuzz.{target}", "-atheris_runs=200", "-max_len=4096", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
