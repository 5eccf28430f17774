"""ai-edge-quantizer's own tests, which its wheel ships, with the interpreter replaced by oplet's.

The wheel lacks the models that the tests open; `stand_ins` makes most of them anew. What fails with oplet runs again with LiteRT: tests
that need what a model learned, or a model that is not there, fail with both. The others must stand below, with their reason.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.children import run_child
from tests.places import ROOT
from tests.upstream.stand_ins import write

SOURCE = importlib.util.find_spec("ai_edge_quantizer")

pytestmark = [pytest.mark.sweep, pytest.mark.skipif(SOURCE is None, reason="pip install -r requirements-tensorflow.txt")]

#: Tests that fail with oplet's interpreter alone, and why; regular expressions of FILE::CLASS::NAME, and how many match.
FAILURES: dict[str, tuple[str, int]] = {
    r"ProfilerBased|ModesComparison|ModesParity|quantizer_test.*(succeeds[13]|insufficient_calibration1)$": (
        "calibrates in LiteRT's native library (_pywrap_tfl_calibration), which takes LiteRT's native interpreter",
        31,
    ),
}

#: How many of the tests pass with oplet at least.
PASSED = 1196


def run(folder: Path, replaced: bool, tests: Sequence[str] = ()) -> dict[str, bool]:
    """Whether each test that was not skipped passes, by FILE::CLASS::NAME."""
    report = folder / f"report{replaced}.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(folder), "--import-mode=importlib"]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist", "-o", "python_files=*_test.py", "-o", "junit_family=xunit1"]
    command += ["-p", "tests.upstream.replaced"] * replaced + [f"--junitxml={report}", *(tests or ["ai_edge_quantizer"])]
    path = [str(folder), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "OMP_NUM_THREADS": "1"}
    done = run_child(command, code=None, cwd=folder, env=environment)
    assert report.exists(), (done.stdout + done.stderr)[-3000:]
    cases = ElementTree.parse(report).getroot().iter("testcase")
    return {
        f"{case.get('file')}::{(case.get('classname') or '').rpartition('.')[2]}::{case.get('name')}": not (
            case.findall("failure") or case.findall("error")
        )
        for case in cases
        if case.find("skipped") is None
    }


def test_what_passes_with_litert_passes_with_oplet_but_for_what_is_named(tmp_path: Path) -> None:
    assert SOURCE is not None
    shutil.copytree(Path(SOURCE.origin or "").parent, tmp_path / "ai_edge_quantizer")
    write(tmp_path / "ai_edge_quantizer" / "tests" / "models")
    ours = run(tmp_path, True)
    failed = [name for name, passed in ours.items() if not passed]
    theirs = run(tmp_path, False, failed)
    only_ours = {name for name in failed if theirs.get(name)}
    named = {name for pattern in FAILURES for name in only_ours if re.search(pattern, name)}
    assert only_ours == named, sorted(only_ours - named)
    for pattern, (reason, count) in FAILURES.items():
        found = [name for name in only_ours if re.search(pattern, name)]
        assert len(found) == count, f"{pattern}: {len(found)} fail, not {count} ({reason}): {found}"
    assert sum(ours.values()) >= PASSED
