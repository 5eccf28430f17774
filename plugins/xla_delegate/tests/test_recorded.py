"""The recorded cases with the delegate: integers within 1, floats within 1e-3, and no process dies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.recorded_cases import every_delegated_group, here, processes, wrong_in

#: Cases that are not exact, with the verdict that they have.
EXPLAINED = {
    "keras_act/round_int8": "near",  # as without the delegate
    "hand_quantize/Q_halves_i8": "near",  # XLA multiplies by 1 / scale, so that halves may fall to the other side
}

pytestmark = [here, pytest.mark.sweep(cases=True)]


@pytest.fixture(scope="module")
def process() -> Iterator[Any]:
    with processes("xla:device=cpu") as process:
        yield process


@every_delegated_group
def test_every_recorded_case_of_the_group_answers_as_recorded(group: Path, process: Any) -> None:
    assert not (wrong := wrong_in(group, process, EXPLAINED, 120)), wrong
