"""What the documentation says of LiteRT's own Python package and compiled operators holds for the one that is installed."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.children import run_child

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ai_edge_litert") is None, reason="needs ai-edge-litert")
MODEL = Path(__file__).parents[3] / "examples" / "atan" / "atan.tflite"

#: A library that is made as LiteRT's guide says: by name, and loaded before, for all to see.
BY_NAME = """
import ctypes, os, sys
from ai_edge_litert.interpreter import InterpreterWithCustomOps
try:
    ctypes.CDLL(sys.argv[1], os.RTLD_NOW | os.RTLD_GLOBAL)
except OSError as error:
    print("undefined symbol" in str(error), flush=True)  # the loader ends the process below, and what is in buffers with it
ctypes.CDLL(sys.argv[1], os.RTLD_LAZY | os.RTLD_GLOBAL)
try:
    InterpreterWithCustomOps(custom_op_registerers=["AtanOpRegistration"], model_path=sys.argv[2])
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""
LOADED = """
import sys
from ai_edge_litert.interpreter import load_delegate
try:
    load_delegate(sys.argv[1], {"speed": "9"})
except ValueError as error:
    print("no device here" in str(error))
"""


def answer(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_child([sys.executable, "-c", code, *arguments], code=None)


def test_litert_finds_none_of_what_a_library_made_as_its_guide_says_calls(build_once: Any) -> None:
    done = answer(BY_NAME, build_once("atan_operator.cc"), str(MODEL))
    assert done.stdout.splitlines()[:1] == ["True"], f"it ended with {done.returncode}: {done.stdout}{done.stderr}"
    # Looked up late it is found by its name, and ends the program where it calls the runtime.
    assert done.returncode == 127, done.stdout + done.stderr
    assert "undefined symbol: TfLiteOperatorCreate" in done.stderr


def test_litert_loads_delegates_that_need_nothing_of_it(build_once: Any) -> None:
    done = answer(LOADED, build_once("refusing_delegate.c"))
    assert done.stdout == "True\n", done.stdout + done.stderr
