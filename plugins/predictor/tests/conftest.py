"""What tests of Predictor share: a look at the threads and processes that `Predictor.map` leaves behind."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No test leaves a worker of `Predictor.map` behind."""
    yield
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("oplet-map")]
    assert not [process for process in multiprocessing.active_children() if process.name == "oplet-map"]
