"""Whatever compiled kernels a process finds, the answer is the same: those that are missing are compiled while numpy's answer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
from tests.kinds import part
from tests.recorded_cases import GROUPS, here, verdicts

pytest.importorskip("numba")
from tests.states.arriving import STATES, enter

from oplet.runtime.memory.remembered import forget_plans

pytestmark = [here, pytest.mark.sweep(cases=True)]


@cache
def _usual() -> dict[str, str]:
    """The verdicts where all kernels are there."""
    return dict(_verdicts())


def _verdicts() -> Iterator[tuple[str, str]]:
    for group in GROUPS:
        for case, verdict, _ in verdicts(group):
            yield case, verdict


@pytest.mark.parametrize("state", STATES)
def test_recorded_cases_are_answered_alike(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = _usual()
    with monkeypatch.context() as patch:
        enter(state, patch)
        found = [(case, verdict, detail) for group in GROUPS for case, verdict, detail in verdicts(group)]
    forget_plans()
    assert len(found) == len(usual) >= part().least(2000)
    assert [(case, verdict, detail) for case, verdict, detail in found if verdict != usual[case] and verdict != "exact"] == []
