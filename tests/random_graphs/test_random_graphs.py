"""Random graphs of many nodes answer alike in all states of two engines; python -m tests.random_graphs runs more of them."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pytest
from tests.budgets import examples
from tests.machine_code import need_stored_plans
from tests.random_graphs.batches import compared
from tests.random_graphs.generating import generate
from tests.random_graphs.states import Difference, differences, in_state, in_states, plans_in

need_stored_plans()


def found(seed: int, folder: Path) -> list[Difference]:
    made = generate(seed)
    return differences(seed, made, in_states(made, folder))


@pytest.mark.parametrize("first", [0, 1_000_000])
def test_a_few_graphs_answer_alike_in_every_state(first: int, tmp_path: Path) -> None:
    assert [each for seed in range(first, first + 12) for each in found(seed, tmp_path)] == []


#: Some that a state answered otherwise once.
@pytest.mark.parametrize("seed", [3_000_649, 3_001_182, 3_002_464])
def test_graphs_that_were_answered_otherwise_are_answered_alike(seed: int, tmp_path: Path) -> None:
    assert found(seed, tmp_path) == []


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(8))
def test_graphs_answer_alike_in_every_state_and_in_processes_that_take_a_plan_from_another(part: int) -> None:
    differ, seen = compared(part * 10_000, examples(50), litert=False)
    assert differ == []
    assert seen["plans stored"]


@pytest.mark.sweep
def test_graphs_answer_as_in_litert_but_for_what_is_known() -> None:
    pytest.importorskip("ai_edge_litert.interpreter")
    differ, seen = compared(7_000_000, examples(100), litert=True)
    assert differ == []
    assert seen["graphs, LiteRT"] == examples(100)


def test_the_graphs_have_what_is_to_be_tried(tmp_path: Path) -> None:
    """Otherwise no difference would mean nothing."""
    seen: Counter[str] = Counter()
    for seed in range(100):
        made = generate(seed)
        answers = in_state(made, "numpy")
        for step, answer in zip(made.steps, answers):
            seen[f"{step.what} {answer.partition(':')[0] if isinstance(answer, str) else 'done'}"] += 1
        seen["control flow"] += b"condition" in made.data or b"branch" in made.data
        seen["signatures"] += bool(made.signatures)
    least = ("invoke done", "resize done", "allocate PrepareError", "invoke InvokeError", "set done", "sign done", "reset done")
    assert [what for what in (*least, "control flow", "signatures") if not seen[what]] == []
    stored = tmp_path / "plans"
    with plans_in(tmp_path):
        for seed in range(20):
            for _ in range(2):
                in_state(generate(seed), "first")
                gc.collect()
    assert list(stored.glob("*.plan"))
