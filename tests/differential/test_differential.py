"""oplet and LiteRT agree on what Hypothesis draws, or both refuse it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("ai_edge_litert")

from . import specs  # noqa: F401
from .harness import Differential
from .strategies import SPECS, WEIGHTS, Draw

FEW, MANY = 25, 400
_RELAXED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture, HealthCheck.large_base_example]


#: Where oplet and LiteRT disagree on purpose: words of the contradiction, and why oplet is right.
KNOWN = {
    "GATHER_ND": ("LiteRT refused RuntimeError: gather_nd index out of bounds", "positions of length 0 pick the whole tensor"),
    "STRIDED_SLICE": ("takes position", "LiteRT reads behind the tensor where a single position is the axis's length"),
}


@pytest.fixture(scope="module")
def differential() -> Iterator[Differential]:
    found = Differential()
    yield found
    found.litert.close()


def compare(differential: Differential, op: str, examples: int) -> None:
    @settings(max_examples=examples, derandomize=True, deadline=None, database=None, suppress_health_check=_RELAXED)
    @given(st.data())
    def agree(data: Any) -> None:
        case = SPECS[op](Draw(data.draw, op))
        contradiction = differential.check(case)
        known = KNOWN.get(op, ("no such words", ""))[0]
        if known in contradiction:
            return
        assert not contradiction, f"{case.note}\n{contradiction}"

    differential.seen.clear()
    agree()


@pytest.mark.parametrize("op", sorted(SPECS))
def test_oplet_and_litert_agree(differential: Differential, op: str) -> None:
    compare(differential, op, FEW * WEIGHTS[op])
