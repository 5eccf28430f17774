"""Compiled kernels end at the deadline and when they are cancelled, whatever a model makes them do, and can be run again."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from plugins.compiled_ops.tests.stopping_models import MODELS

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited and measured in Linux's way")

ENDLESS = [name for name, case in MODELS.items() if case.endless]


def run(name: str, threads: int, way: str, seconds: float) -> dict[str, Any]:
    """What a child process says that runs the model."""
    arguments = [name, str(threads), "oplet-builtin-ops,oplet-compiled-ops", way, str(seconds)]
    child = Path(__file__).with_name("stopping_child.py")
    ended = subprocess.run([sys.executable, str(child), *arguments], capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    result: dict[str, Any] = json.loads(ended.stdout)
    return result


def check(name: str, threads: int, way: str, seconds: float) -> None:
    found = run(name, threads, way, seconds)
    error = "DeadlineError" if way == "deadline" else "CancelledError"
    assert found["outcome"] in ((error,) if MODELS[name].endless else (error, "done"))
    # Of the processor, which does not go on while others have it; a helper that waits for work takes some too.
    assert found["seconds"] <= 2 * max(seconds, 1.0) * threads, found
    assert found["grown"] <= 128, found
    assert found["right"]


@pytest.mark.parametrize("name", ["conv of one filter", "maxima of large windows"])
def test_compiled_kernels_end_at_the_deadline(name: str) -> None:
    check(name, 1, "deadline", 0.3)


@pytest.mark.parametrize("name", ["conv of int8", "soft suppression"])
def test_compiled_kernels_end_when_they_are_cancelled(name: str) -> None:
    check(name, 2, "cancel", 0.2)


@pytest.mark.sweep
@pytest.mark.parametrize(("name", "threads"), [(name, 1) for name in MODELS] + [(name, 2) for name in ENDLESS])
def test_no_small_model_takes_longer_than_twice_the_deadline(name: str, threads: int) -> None:
    check(name, threads, "deadline", 2.0)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ENDLESS)
def test_every_long_work_can_be_cancelled(name: str) -> None:
    check(name, 2, "cancel", 0.3)
