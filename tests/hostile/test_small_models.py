"""Models below a kilobyte that ask for millions of anything end in time and in little memory; smaller ones of the same kind run."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from tests.places import ROOT

from oplet import Interpreter
from oplet_testing import litert_interpreter

from .small_models import CASES, DOCUMENTED, ROOM, Case, feeds

#: The cases whose operators have compiled kernels. (Compiled pools of long rows and suppressions of many boxes are looked at elsewhere.)
COMPILED = ("CONV_2D-", "DEPTHWISE_CONV_2D-", "MAX_POOL_2D-long", "RESIZE_BILINEAR-")
WAYS = [
    *(pytest.param(case, "builtin_ops", id=case.name) for case in CASES),
    *(pytest.param(case, "all", id=f"{case.name}-compiled") for case in CASES if case.name.startswith(COMPILED)),
]
USUAL = [pytest.param(case, id=case.name) for case in CASES if case.usual]


@pytest.mark.sweep
@pytest.mark.parametrize(("case", "plugin"), WAYS)
def test_a_small_file_that_asks_for_much_ends_in_time_and_in_the_memory_it_may_take(case: Case, plugin: str) -> None:
    if plugin == "all" and find_spec("oplet_compiled_ops") is None:
        pytest.skip("there are no compiled kernels")
    child = subprocess.run(
        [sys.executable, "-m", "tests.hostile.small_models", case.name, plugin],
        capture_output=True, text=True, timeout=300, cwd=ROOT,
    )  # fmt: skip
    assert child.returncode == 0, child.stderr[-1000:]
    found = json.loads(child.stdout.splitlines()[-1])
    assert "error" not in found["warm"], found["warm"]
    assert "foreign" not in found, found["foreign"]
    assert found.get("error", "LimitError").startswith(("LimitError", "DeadlineError"))
    assert found["grown"] < ROOM // 4
    assert found["bytes"] < 1200
    assert max(found["seconds"]) < 2 * (DOCUMENTED.max_seconds or 0)


@pytest.mark.parametrize("case", USUAL)
def test_many_of_anything_run_within_the_default_limits_and_equal_litert(case: Case) -> None:
    data = case.make(case.usual)
    theirs = litert_interpreter("BUILTIN_REF")(model_content=data)
    mine = Interpreter(model_content=data, plugins=["builtin_ops"])
    for runner in (mine, theirs):
        runner.allocate_tensors()
        for index, value in feeds(runner).items():
            runner.set_tensor(index, value)
        runner.invoke()
    for ours, its in zip(mine.get_output_details(), theirs.get_output_details()):
        np.testing.assert_allclose(mine.get_tensor(ours["index"]), theirs.get_tensor(its["index"]), rtol=1e-4, atol=1e-4)
