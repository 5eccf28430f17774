"""docs/beam.md and docs/spark-and-dask.md, run as they are written, by the engines themselves."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.pages.python_blocks import python_blocks, run_blocks
from tests.places import EXAMPLES, ROOT

BEAM = ROOT / "docs" / "beam.md"
SPARK_AND_DASK = ROOT / "docs" / "spark-and-dask.md"


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("oplet_builtin_ops")
    monkeypatch.chdir(ROOT)


def run_those(page: Path, of_spark: bool, names: dict[str, Any]) -> int:
    """Run the blocks of one of the two engines, in their order; returns how many there were."""
    start = page.read_text("utf-8").split("\n## Spark\n")[0].count("\n")
    blocks = [(line, code) for line, code in python_blocks(page) if (line > start) == of_spark]
    for line, code in blocks:
        exec(compile("\n" * line + code, str(page), "exec"), names)
    return len(blocks)


def test_the_page_on_beam_holds(tmp_path: Path) -> None:
    pytest.importorskip("oplet_beam")
    run_blocks(BEAM, {"FOLDER": str(tmp_path)})


def test_the_page_holds_for_dask() -> None:
    pytest.importorskip("dask.dataframe")
    pytest.importorskip("distributed")
    assert run_those(SPARK_AND_DASK, False, {"__name__": "__main__"}) == 3


def test_the_page_holds_for_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("Spark needs Java")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    names = {"__name__": "__main__", "MODEL_PATH": str(EXAMPLES / "digits" / "digits_float32.tflite")}
    assert run_those(SPARK_AND_DASK, True, names) == 3
