"""The recorded cases: whatever LiteRT ran, oplet runs, with the same numbers."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.recorded_cases import every_group, here, verdicts

#: Cases that are not exact, with the verdict that they have; docs/numerics.md says why, one by one.
EXPLAINED = {
    "keras_act/round_int8": "near",
    "keras_nets/resnet_dyn": "near",
    "matrix_band_part/matrix_band_part_008": "error",
}

pytestmark = [here, pytest.mark.sweep(cases=True)]


@every_group
def test_every_recorded_case_of_the_group_is_exact(group: Path) -> None:
    wrong = []
    for case, verdict, detail in verdicts(group):
        explained = next((v for start, v in EXPLAINED.items() if case.startswith(start)), "exact")
        if verdict not in ("exact", explained):
            wrong.append(f"{verdict} {case}: {detail}")
    assert not wrong, "\n".join(wrong)
