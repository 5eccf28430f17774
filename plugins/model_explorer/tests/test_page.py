"""docs/model-explorer.md, run as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.pages.python_blocks import run_blocks
from tests.places import ROOT


def test_the_page_holds(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    run_blocks(ROOT / "docs" / "model-explorer.md", {"FOLDER": str(tmp_path)})
