"""The recorded cases with the delegate: integers within 1, floats within 1e-3, and no process dies."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.places import CONFORMANCE
from tests.recorded_cases import ALL_GROUPS, chosen, here

#: Cases that are not exact, with the verdict that they have.
EXPLAINED = {
    "keras_act/round_int8": "near",  # as without the delegate
    "hand_quantize/Q_halves_i8": "near",  # XLA multiplies by 1 / scale, so that halves may fall to the other side
}

pytestmark = [here, pytest.mark.sweep(cases=True)]


@pytest.fixture(scope="module")
def grader() -> ModuleType:
    """The grader that lies beside the recordings."""
    spec = importlib.util.spec_from_file_location("run", CONFORMANCE / "run.py")  # by which the process imports it
    if spec is None or spec.loader is None:
        pytest.skip("there is no grader beside the recordings")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def process(grader: ModuleType) -> Iterator[Any]:
    """A process that runs cases, replaced when it dies: XLA may end it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(CONFORMANCE))
        patch.setitem(sys.modules, "run", grader)
        pool = grader.Pool("benchmarks.delegated:xla:device=cpu")
        yield pool
        pool.stop()


@pytest.mark.parametrize(
    "group", [group for group in ALL_GROUPS if group.stem != "unrunnable"], ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_every_recorded_case_of_the_group_answers_as_recorded(group: Path, process: Any) -> None:
    wrong = []
    for case in chosen(group):
        if case.runs:
            verdict, detail, _ = process.run((str(case.path), case.name), 120)
            explained = next((v for start, v in EXPLAINED.items() if case.id.startswith(start)), "exact")
            if verdict not in ("exact", explained):
                wrong.append(f"{verdict} {case.name}: {detail}")
    assert not wrong, "\n".join(wrong)
