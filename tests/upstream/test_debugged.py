"""TensorFlow's quantization debugger and its rewriting of interfaces find with oplet's interpreter what they find with its own.

What its tests of both ask, in our own words; `tensorflow_tests.csv` names them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from tests.places import ROOT

pytestmark = [
    pytest.mark.sweep,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="pip install -r requirements-tensorflow.txt"),
]


def found(engine: str) -> dict[str, Any]:
    """What the process of `debugged` prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [sys.executable, "-m", "tests.upstream.debugged", engine]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    [line] = [line for line in done.stdout.splitlines() if line.startswith("FOUND ")]
    return json.loads(line.removeprefix("FOUND "))


def test_the_debugger_and_rewritten_interfaces_are_as_with_tensorflow_s_interpreter() -> None:
    theirs, ours = found("tensorflow"), found("oplet")
    assert list(ours) == list(theirs)
    for kind in ("floats outside", "integers throughout"):
        [mine], [other] = ours[kind]["layers"], theirs[kind]["layers"]
        assert mine == pytest.approx(other, abs=1e-5)
        assert ours[kind]["model"] == pytest.approx(theirs[kind]["model"], abs=1e-5)
        assert other["max_abs_error"] > 0
    assert "debug mode" in theirs["spared by operator"]
    assert theirs["int8"] == ["float32", "float32", "int8", "int8"]
    for name in ("spared by operator", "two inputs", "uint8", "int8", "int16"):
        assert ours[name] == theirs[name]
