"""docs/select-tf-ops.md, run as it is written: TensorFlow converts, numpy runs, and TensorFlow runs what numpy cannot."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.places import ROOT

from oplet import PluginManager
from oplet_tools.describing.doctor import examine

pytestmark = [
    pytest.mark.sweep,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="pip install -r requirements-tensorflow.txt"),
]

PAGE = ROOT / "docs" / "select-tf-ops.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
#: Put before a block that needs no TensorFlow.
NO_TENSORFLOW = "import sys; sys.modules['tensorflow'] = None\n"


def run(folder: Path, *blocks: str) -> None:
    done = subprocess.run([sys.executable, "-c", "".join(blocks)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models of the page."""
    assert len(BLOCKS) == 4
    folder = tmp_path_factory.mktemp("page")
    run(folder, BLOCKS[0])
    return folder


def test_the_numpy_kernels_give_what_the_page_says_without_tensorflow(folder: Path) -> None:
    run(folder, NO_TENSORFLOW, BLOCKS[1], BLOCKS[2])


def test_the_delegate_gives_what_the_page_says(folder: Path) -> None:
    run(folder, BLOCKS[3])


def test_doctor_names_the_packages_that_the_page_names(folder: Path) -> None:
    bare = PluginManager.named(["oplet-builtin-ops"], "plugins")
    needed = {
        name: {op.op: op.package for op in examine(folder / f"{name}.tflite", bare).operators if op.fix}
        for name in ("features", "parse")
    }
    assert needed["parse"] == {"FlexParseExampleV2": "oplet-flex-delegate"}
    assert set(needed["features"].values()) == {"oplet-flex-ops"}
    page = PAGE.read_text()
    assert all(f"`{op}`" in page for op in needed["features"]), json.dumps(needed)
