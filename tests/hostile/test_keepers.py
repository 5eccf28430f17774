"""What outlives its node counts against the limits: variables, tables, lists and ragged values that loops keep end at twice them.

`keepers_child.py` has the models: a loop of 9,000 rounds, each of which keeps something of a size.
"""

from __future__ import annotations

import json
import sys

import pytest
from tests.children import run_child
from tests.places import ROOT

from oplet import Interpreter, Limits
from oplet.errors import LimitError

pytest.importorskip("oplet_flex_ops")
pytest.importorskip("oplet_text_ops")
from .keepers_child import CASES, Loop

#: Cases that always run; how a case may end, and the part of the limit of memory that it may take.
_QUICK = ("variables", "a_list_of_ragged_values", "a_table_that_grows")
_ENDS, _MOST = ("ran", "DeadlineError", "LimitError"), 2.0


@pytest.mark.parametrize("case", [case if case in _QUICK else pytest.param(case, marks=pytest.mark.sweep) for case in CASES])
def test_what_loops_keep_stays_within_the_limits(case: str) -> None:
    done = run_child([sys.executable, "-m", "tests.hostile.keepers_child", case], cwd=ROOT)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == 4, done.stderr
    wrong = [line for line in lines if line[2].partition(":")[0] not in _ENDS or line[3] > _MOST]
    assert not wrong, "\n".join(map(str, wrong))
    assert any(line[2].startswith("LimitError") for line in lines), lines


@pytest.mark.parametrize("case", CASES)
def test_what_is_kept_counts_once_and_is_given_back_when_the_interpreter_is_closed(case: str) -> None:
    model = Loop(CASES[case], 100).to_bytes()
    limits = Limits(max_arena_bytes=64 << 20, max_while_iterations=50)
    interpreter, other = (Interpreter(model_content=model, limits=limits) for _ in range(2))
    account = interpreter._runtime.session.memory
    held = []
    for _ in range(3):
        interpreter.allocate_tensors()
        with pytest.raises(LimitError, match="loop"):
            interpreter.invoke()
        held.append((account.total, account._kept))
    assert held[0][1] > 0
    assert held == held[:1] * 3
    assert other._runtime.session.memory._kept == 0
    interpreter.close()
    assert account.total >= account._kept == 0
    assert not interpreter._runtime.session.resources
