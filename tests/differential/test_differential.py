"""oplet and LiteRT agree on what Hypothesis draws, or both refuse it."""

from __future__ import annotations

import re
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


#: Where oplet and LiteRT disagree on purpose: a pattern of the case and the contradiction, and why oplet is right.
KNOWN = {
    "BATCH_MATMUL": (
        r"<FLOAT32\[\d+, \d+, .*<INT8",
        "LiteRT takes the scale of another row where there are two batch dimensions",
    ),
    "GATHER_ND": ("LiteRT refused RuntimeError: gather_nd index out of bounds", "positions of length 0 pick the whole tensor"),
    "PRELU": (
        r"(?s)<FLOAT32\[.*HaveSameShapes\(input, output\)",
        "larger slopes give the output their shape, as in XNNPACK",
    ),
    "REDUCE_PROD": (r"<INT16\[.*<INT32\[0\]", "LiteRT copies values of one scale into another where no axis is named"),
    "REVERSE_V2": ("Non-contiguous", "the axes need not be neighbours"),
    "STABLEHLO_SCATTER": ("Only update, Add", "any pure body is run"),
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
        if op in KNOWN and re.search(KNOWN[op][0], f"{case.note}\n{contradiction}"):
            return
        assert not contradiction, f"{case.note}\n{contradiction}"

    differential.seen.clear()
    agree()


@pytest.mark.sweep
@pytest.mark.parametrize("op", sorted(SPECS))
def test_oplet_and_litert_agree(differential: Differential, op: str) -> None:
    compare(differential, op, FEW * WEIGHTS[op])
