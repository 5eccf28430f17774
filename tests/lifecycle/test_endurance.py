"""Long use: threads with an interpreter each, and interpreters made and closed by the thousand, leave nothing behind."""

from __future__ import annotations

import hashlib
import multiprocessing
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from tests.lifecycle.growth import growth_by_interpreters, resident
from tests.places import EXAMPLES

from oplet import Interpreter, Model

DIGITS = EXAMPLES / "digits"
MODELS = sorted(DIGITS.glob("*.tflite"))
#: Bytes by which the resident memory may differ between two looks at it: Python and malloc give pages back late.
NOISE = 4 << 20


def inputs(interpreter: Interpreter, seed: int) -> list[tuple[int, np.ndarray]]:
    rng = np.random.default_rng(seed)
    return [
        (detail["index"], (rng.random(detail["shape"]) * 100).astype(detail["dtype"]))
        for detail in interpreter.get_input_details()
    ]


def answer(interpreter: Interpreter, seed: int) -> bytes:
    for index, value in inputs(interpreter, seed):
        interpreter.set_tensor(index, value)
    interpreter.invoke()
    outputs = b"".join(interpreter.get_tensor(d["index"]).tobytes() for d in interpreter.get_output_details())
    return hashlib.sha256(outputs).digest()


def use_threads(path: Path, threads: int, seconds: float) -> tuple[int, int]:
    """Run a model in threads with an interpreter each; return the number of runs and the growth of memory in the second half."""
    alone = Interpreter(model_path=str(path))
    alone.allocate_tensors()
    wanted = [answer(alone, seed) for seed in range(16)]
    failures: list[str] = []
    runs = [0] * threads
    stop = threading.Event()

    def work(number: int) -> None:
        try:
            interpreter = Interpreter(model_path=str(path))
            interpreter.allocate_tensors()
            while not stop.is_set():
                seed = (number + runs[number]) % len(wanted)
                if answer(interpreter, seed) != wanted[seed]:
                    failures.append(f"thread {number} got another answer for seed {seed} in run {runs[number]}")
                    return
                runs[number] += 1
        except Exception as error:
            failures.append(f"thread {number}: {error!r}")

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    time.sleep(seconds / 2)
    before = resident()
    time.sleep(seconds / 2)
    after = resident()
    while not min(runs) and any(worker.is_alive() for worker in workers):  # on a busy machine
        time.sleep(0.05)
    stop.set()
    for worker in workers:
        worker.join()
    assert not failures
    assert min(runs) > 0
    return sum(runs), after - before


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_threads_get_the_answers_of_one_thread(path: Path) -> None:
    use_threads(path, threads=4, seconds=1)


@pytest.mark.sweep
def test_8_threads_for_60_seconds_get_the_answers_of_one_thread_in_flat_memory() -> None:
    runs, growth = use_threads(MODELS[0], threads=8, seconds=60)
    assert runs > 1000
    assert growth < NOISE


@pytest.mark.sweep
def test_10_000_interpreters_made_and_closed_leave_no_memory_behind() -> None:
    # In a process of their own: what thousands of other tests left behind makes this one's memory come and go.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
        assert process.submit(growth_by_interpreters, MODELS[0]).result() < NOISE


def test_models_opened_and_dropped_leave_no_file_open() -> None:
    descriptors = Path("/proc/self/fd")
    Model.open(MODELS[0])
    before = len(list(descriptors.iterdir()))
    for _ in range(200):
        Model.open(MODELS[0])
    assert len(list(descriptors.iterdir())) <= before + 2
