"""Random graphs of many nodes answer alike in all states of two engines; python -m tests.random_graphs runs more of them."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pytest
from tests.budgets import examples
from tests.machine_code import need_stored_plans
from tests.random_graphs.elsewhere import compared
from tests.random_graphs.generating import generate
from tests.random_graphs.states import differences, outcomes, plans_in

need_stored_plans()


@pytest.mark.parametrize("first", [0, 1_000_000])
def test_a_few_graphs_answer_alike_in_every_state(first: int, tmp_path: Path) -> None:
    found = [each for seed in range(first, first + 12) for each in differences(seed, tmp_path / str(seed))]
    assert not found


#: Some that a state answered otherwise once.
@pytest.mark.parametrize("seed", [3_000_649, 3_001_182, 3_002_464])
def test_graphs_that_were_answered_otherwise_are_answered_alike(seed: int, tmp_path: Path) -> None:
    assert not differences(seed, tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(8))
def test_graphs_answer_alike_in_every_state(part: int, tmp_path: Path) -> None:
    count = examples(50)
    found = [each for seed in range(part * 10_000, part * 10_000 + count) for each in differences(seed, tmp_path / str(seed))]
    assert not found


@pytest.mark.sweep
def test_graphs_answer_alike_in_processes_that_take_a_plan_from_another() -> None:
    told, seen = compared(7_000_000, examples(40), litert=False)
    assert told == []
    assert seen["plans stored"]


def test_the_graphs_have_what_is_to_be_tried(tmp_path: Path) -> None:
    """Otherwise no difference would mean nothing."""
    seen: Counter[str] = Counter()
    for seed in range(100):
        made = generate(seed)
        answers = outcomes(made, "numpy")
        for step, answer in zip(made.steps, answers):
            seen[f"{step.what} {answer if isinstance(answer, str) else 'done'}"] += 1
        seen["control flow"] += b"condition" in made.data or b"branch" in made.data
        seen["signatures"] += bool(made.signatures)
    least = ("invoke done", "resize done", "allocate PrepareError", "invoke InvokeError", "set done", "sign done", "reset done")
    assert [what for what in (*least, "control flow", "signatures") if not seen[what]] == []
    stored = tmp_path / "plans"
    with plans_in(tmp_path):
        for seed in range(20):
            for _ in range(2):
                outcomes(generate(seed), "first")
                gc.collect()
    assert list(stored.glob("*.plan"))
