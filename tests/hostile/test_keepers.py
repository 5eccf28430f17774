"""What outlives its node counts against the limits: variables, tables, lists and ragged values that loops keep end at twice them.

`keepers_child.py` has the models: a loop of 9,000 rounds, each of which keeps something of a size.
"""

from __future__ import annotations

import json
import sys

import pytest
from tests.children import run_child
from tests.places import ROOT

pytest.importorskip("oplet_flex_ops")
pytest.importorskip("oplet_text_ops")
from .keepers_child import CASES

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
