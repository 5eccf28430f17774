"""docs/writing-models.md, run as it is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.places import ROOT

from oplet import Interpreter, Model
from oplet.model.verify.verifier import verify

PAGE = ROOT / "docs" / "writing-models.md"


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    page = PAGE.read_text()
    for block in re.finditer(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        before = page.count("\n", 0, block.start(1))
        exec(compile("\n" * before + block[1], str(PAGE), "exec"), names)
    for path in tmp_path.glob("*.tflite"):
        verify(Model.open(path))
    Interpreter("layer.tflite")


def test_what_the_page_says_of_side_files(tmp_path: Path) -> None:
    """The page adds an external buffer after it has saved; here the model is saved again."""
    from oplet.builder import ModelBuilder

    builder = ModelBuilder()
    graph = builder.add_subgraph()
    index = graph.add_tensor("large", "uint8", [3], external_buffer=builder.add_external_buffer("w", b"abc"))
    graph.set_inputs()
    graph.set_outputs(index)
    builder.save(tmp_path / "m.tflite", constants="outside")
    assert (tmp_path / "w").read_bytes() == b"abc"
    assert Interpreter(tmp_path / "m.tflite").get_tensor(index).tolist() == list(b"abc")
