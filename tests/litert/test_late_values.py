"""Values and sizes that a node cannot run with refuse no model that LiteRT allocates: a resize or another branch may change them."""

from __future__ import annotations

import pickle
import subprocess
import sys
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.litert.conftest import ENGINES
from tests.litert.late_cases import ALL, LateModel, answers, late_models, resized
from tests.places import ROOT

from oplet import Interpreter, PluginManager

#: The cases of one test, whose models go to LiteRT together.
_TOGETHER = 12
GROUPS = {", ".join(names[:: max(1, len(names) - 1)]): names for start in range(0, len(ALL), _TOGETHER) if (names := list(ALL)[start : start + _TOGETHER])}  # fmt: skip


def litert(cases: list[LateModel], folder: Path) -> list[list[dict[str, Any]]]:
    """What LiteRT's three ways make of models, in a process of its own."""
    answer = folder / "answers"
    command = [sys.executable, "-m", "tests.litert.late_child", str(answer)]
    done = subprocess.run(command, input=pickle.dumps(cases), capture_output=True, cwd=ROOT, check=False)
    assert not done.returncode, done.stderr.decode(errors="replace")[-2000:]
    found: list[list[dict[str, Any]]] = pickle.loads(answer.read_bytes())
    return found


def same(ours: Any, theirs: Any) -> bool:
    """Whether two lists of arrays are equal, floats within the last digits."""
    return len(ours) == len(theirs) and all(
        a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, rtol=1e-5, atol=1e-5, equal_nan=True)
        for a, b in zip(ours, theirs)
    )


def complaints(case: LateModel, theirs: list[dict[str, Any]], interpreter: Any) -> list[str]:
    """What oplet makes of a model where all of LiteRT's ways make something else of it."""
    found: list[str] = []
    allocated, *rest = answers(interpreter, case)
    ran = rest[0] if rest else None
    if isinstance(allocated, str) and any(not isinstance(way["allocated"], str) for way in theirs):
        found.append(f"not allocated: {allocated}")
    known = [way["ran"] for way in theirs if isinstance(way["ran"], list)]
    if isinstance(ran, str) and not ran.startswith(("InvokeError: ", "LimitError: ")):
        found.append(f"not refused as a failure of the run: {ran}")
    if isinstance(ran, str) and known and "not taken" in case.what:
        found.append(f"the other branch does not run: {ran}")
    # What LiteRT reads outside of a tensor is refused.
    if isinstance(ran, list) and known and not any(same(ran, answer) for answer in known):
        found.append(f"another answer: {[value.tolist() for value in ran]}, LiteRT {[value.tolist() for value in known[0]]}")
    after = resized(interpreter, case)
    known = [way["resized"] for way in theirs if isinstance(way["resized"], list)]
    if known and (isinstance(after, str) or not any(same(after, answer) for answer in known)):
        found.append(f"another answer after a resize: {after}, LiteRT {known[0]}")
    return [f"{case.what}: {what}" for what in found]


@pytest.mark.sweep
@pytest.mark.parametrize("group", GROUPS)
def test_wherever_one_of_litert_s_ways_allocates_so_does_oplet_and_other_branches_and_sizes_run(
    group: str, tmp_path: Path
) -> None:
    pytest.importorskip("ai_edge_litert")
    cases = [case for name in GROUPS[group] for case in late_models(name)]
    theirs = litert(cases, tmp_path)
    assert any(not isinstance(way["allocated"], str) for ways in theirs for way in ways)
    engines = [engine for engine in ENGINES if engine != "compiled" or find_spec("oplet_compiled_ops")]
    managers = {engine: PluginManager(load=ENGINES[engine]) for engine in engines}
    wrong = [
        f"{engine}: {complaint}"
        for engine, manager in managers.items()
        for case, ways in zip(cases, theirs)
        for complaint in complaints(case, ways, partial(Interpreter, plugins=manager))
    ]
    assert not wrong, "\n".join(wrong)
