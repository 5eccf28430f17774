from __future__ import annotations

from collections.abc import Iterator

import pytest
from plugins.text_ops.tests.meters import CountingMeter, Metered

from oplet.ops.ensure import swap_meter


@pytest.fixture
def metered() -> Iterator[Metered]:
    """Set a meter for this thread, until the end of the test."""

    def use(meter: CountingMeter) -> CountingMeter:
        swap_meter(meter)
        return meter

    yield use
    swap_meter(None)
