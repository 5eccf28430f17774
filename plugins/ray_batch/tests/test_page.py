"""docs/ray.md, run as it is written."""

from __future__ import annotations

from typing import Any

import pytest
from tests.pages.python_blocks import run_blocks
from tests.places import ROOT


@pytest.mark.environment
def test_the_page_s_code_runs_and_its_assertions_hold(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("oplet_builtin_ops")
    pytest.importorskip("ray.serve")
    monkeypatch.chdir(ROOT)
    run_blocks(ROOT / "docs" / "ray.md")
