"""The recorded cases through a CompiledModel: every one has the grade that an interpreter gives it."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugins.compiled_model.tests.through_buffers import ThroughBuffers
from tests.recorded_cases import cases, every_group, grader, here, verdicts

import oplet

pytestmark = [here, pytest.mark.sweep(cases=True)]


@every_group
def test_every_recorded_case_of_the_group_has_the_grade_of_an_interpreter(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(oplet, "Interpreter", ThroughBuffers)  # which the grader finds by this name
        found = [(case, verdict, detail) for case, verdict, detail in verdicts(group) if verdict != "exact"]
    by_id = {case.id: case for case in cases(group)}
    worse = []
    for name, verdict, detail in found:
        case = by_id[name]
        try:
            its, _, _ = grader().run_case("oplet:Interpreter", str(case.path), case.name)
        except oplet.errors.OpletError:
            its = "error"
        if its != verdict:
            worse.append(f"{verdict} {name}: {detail} (an interpreter: {its})")
    assert not worse, "\n".join(worse)
