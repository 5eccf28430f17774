"""docs/ray.md, run as it is written."""

from __future__ import annotations

import os

import pytest
from tests.pages.python_blocks import run_blocks
from tests.places import ROOT


@pytest.mark.slow
def test_the_page_s_code_runs_and_its_assertions_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("oplet_builtin_ops", "oplet_ray", "ray.serve"):
        pytest.importorskip(package)
    import ray

    monkeypatch.chdir(ROOT)
    monkeypatch.setitem(os.environ, "RAY_USAGE_STATS_ENABLED", "0")
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False, object_store_memory=200_000_000)
    try:
        run_blocks(ROOT / "docs" / "ray.md")
    finally:
        ray.shutdown()
