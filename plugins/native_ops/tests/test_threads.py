"""Interpreters in threads share a library and nothing else, and what is closed gives everything back."""

from __future__ import annotations

import gc
import os
import resource
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter
from oplet_native_ops import load_ops
from oplet_native_ops.shim.opening import open_library
from oplet_testing import Spec, one_op_model

TOTAL = one_op_model("Total", [Spec("float32", [64])], [Spec("float32", [64])])


def resident() -> int:
    """Bytes of memory that the process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def work(path: str, seconds: float, runs: int, failures: list[str], number: int) -> None:
    """Interpreters of an operator with a state, one after the other, each of its own thread."""
    end = time.monotonic() + seconds
    resolver = load_ops(path, "TotalOperator")
    x = np.full(64, number + 1, np.float32)
    while time.monotonic() < end:
        interpreter = Interpreter(model_content=TOTAL, op_resolver=resolver)
        interpreter.allocate_tensors()
        for count in range(1, runs + 1):
            interpreter.set_tensor(0, x)
            interpreter.invoke()
            if not np.array_equal(interpreter.get_tensor(1), x * count):
                failures.append(f"thread {number}, run {count}: {interpreter.get_tensor(1)[0]}")
                return
        interpreter.close()


def run_threads(path: str, seconds: float) -> list[str]:
    failures: list[str] = []
    threads = [threading.Thread(target=work, args=(path, seconds, 50, failures, number)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_four_threads_with_an_interpreter_each_are_right(build_once: Any) -> None:
    assert run_threads(build_once("operators.cc"), 1) == []


@pytest.mark.sweep
def test_a_minute_of_four_threads_is_right_and_takes_no_more_memory(build_once: Any) -> None:
    path = build_once("operators.cc")
    assert run_threads(path, 10) == []
    gc.collect()
    before = resident()
    assert run_threads(path, float(os.environ.get("OPLET_THREADS_SECONDS", "60"))) == []
    gc.collect()
    assert resident() - before < 8 << 20


def test_interpreters_that_are_dropped_free_what_init_made(build_once: Any) -> None:
    path = build_once("failures.cc")
    resolver = load_ops(path, {"Op": "Register_INVOKE_FAILS"})
    alive, inits = open_library(path).functions.Alive, open_library(path).functions.Inits
    gc.collect()
    before, made = alive(), inits()
    model = one_op_model("Op", [Spec("float32", [4])], [Spec("float32", [4])])
    for ended in range(50):
        interpreter = Interpreter(model_content=model, op_resolver=resolver)
        if ended % 3:
            interpreter.allocate_tensors()
        if ended % 3 == 2:
            with pytest.raises(RuntimeError, match="not above 0"):
                interpreter.invoke()
        del interpreter
    gc.collect()
    assert (inits() - made, alive() - before) == (50, 0)


def test_many_shapes_and_runs_take_no_more_memory(build_once: Any) -> None:
    model = one_op_model("Above", [Spec("float32", [8])], [Spec("float32", [8])])
    interpreter = Interpreter(model_content=model, op_resolver=load_ops(build_once("operators.cc"), {"Above": "Register_ABOVE"}))

    def rounds(count: int) -> None:
        for size in range(count):
            interpreter.resize_tensor_input(0, [1000 * (size % 7 + 1)])
            interpreter.allocate_tensors()
            interpreter.set_tensor(0, np.ones(1000 * (size % 7 + 1), np.float32))
            interpreter.invoke()

    rounds(200)
    gc.collect()
    before = resident()
    rounds(1000)
    gc.collect()
    assert resident() - before < 2 << 20
