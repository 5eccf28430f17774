"""A local Ray cluster for the tests: two workers' worth of processors, no dashboard, nothing reported to anybody."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Ray, running on this machine."""
    os.environ |= {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    }
    ray = pytest.importorskip("ray")
    # Paths of sockets must be short.
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as folder:
        # More processors than a small machine has: they are only counted, and Serve's parts want some besides the actors.
        ray.init(
            "local",
            num_cpus=4,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=200_000_000,
            _temp_dir=folder,
            logging_level="error",
        )
        ray.data.DataContext.get_current().enable_progress_bars = False
        yield ray
        ray.shutdown()
