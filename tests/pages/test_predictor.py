"""docs/predictor.md, run as it is written."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.places import ROOT

PAGE = ROOT / "docs" / "predictor.md"


def test_the_page_s_code_runs_and_its_assertions_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("oplet_builtin_ops")
    monkeypatch.chdir(ROOT)
    page, names = PAGE.read_text("utf-8"), dict[str, Any](__name__="page")
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE))
    assert len(blocks) > 5
    for block in blocks:
        exec(compile("\n" * page.count("\n", 0, block.start(1)) + block[1], str(PAGE), "exec"), names)


def test_the_page_s_numbers_are_those_of_the_code() -> None:
    from oplet_predictor import batch_decision, map_workers, mapping

    page = PAGE.read_text("utf-8")
    assert f"({batch_decision._CACHED >> 10} KiB, at most {batch_decision._MOST} rows)" in page
    assert f"allows {batch_decision._TOLERANCE} of the largest value" in page
    assert map_workers._AT_ONCE == 3
    assert "(three groups for each" in page
    assert f"at most {mapping._LARGEST})" in page
