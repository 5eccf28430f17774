"""`oplet warm`: what a model's first run would wait for is done ahead."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.children import run_child

from oplet_tools.benchmarking import warming


def test_a_model_whose_kernels_are_there_says_so(oplet: Any, examples: Path) -> None:
    ran = oplet("warm", examples / "digits" / "digits_int8.tflite", "-p", "no:oplet-numba-ops")
    assert ran.out == "Nothing was to be compiled: each node has its best kernel already.\n"
    told = json.loads(oplet("warm", examples / "digits" / "digits_int8.tflite", "--json", "-p", "no:oplet-numba-ops").out)
    assert (told["waited"], Path(told["model"]).name) == (0, "digits_int8.tflite")


def test_no_model_is_refused_like_anywhere(oplet: Any, tmp_path: Path) -> None:
    assert oplet("warm", tmp_path / "no.tflite").code != 0


def test_what_takes_long_is_said_once_where_no_bar_is_drawn(oplet: Any, examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def warm_up(model: Path, *, progress: Callable[[str, float], None], **_: Any) -> warming.Warmed:
        for part in (0.0, 0.5, 1.0):
            progress(warming.COMPILING, part)
        return warming.Warmed(str(model), 8, 45.2)

    monkeypatch.setattr(warming, "warm_up", warm_up)
    ran = oplet("warm", examples / "digits" / "digits_int8.tflite")
    assert ran.out == "Compiled the kernels of 8 nodes in 45.2 seconds.\n"
    assert ran.err == "oplet: compiling kernels, first run only ...\n"


@pytest.mark.sweep
def test_kernels_are_compiled_once_and_found_by_the_next_process(examples: Path, tmp_path: Path) -> None:
    pytest.importorskip("oplet_numba_ops")
    variables = {**os.environ, "OPLET_CACHE_DIR": str(tmp_path), "OPLET_COMPILE": ""}

    def warm() -> dict[str, Any]:
        command = [sys.executable, "-m", "oplet", "warm", str(examples / "digits" / "digits_float32.tflite"), "--json"]
        told: dict[str, Any] = json.loads(run_child(command, env=variables, text=False).stdout)
        return told

    assert warm()["waited"] > 0
    assert list(tmp_path.rglob("*.code"))
    assert warm()["waited"] == 0
