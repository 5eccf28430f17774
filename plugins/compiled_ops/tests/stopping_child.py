"""Runs a model of `stopping_models` under the documented limits, with little memory; prints how it ended, as JSON.

Arguments: the model's name, threads, the plugins, "deadline" or "cancel", and after how many seconds.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

import numpy as np
import stopping_models

from oplet import Interpreter, Limits
from oplet.errors import CancelledError, DeadlineError, OpletError


def limits(seconds: float | None) -> Limits:
    """The documented ones, with this deadline."""
    return Limits(
        max_arena_bytes=64 << 20, max_tensor_bytes=64 << 20, max_nodes=2_000, max_while_iterations=10_000, max_seconds=seconds
    )


def feed(interpreter: Interpreter, value: float) -> None:
    """Inputs of a pattern that does not take as much memory again."""
    for detail in interpreter.get_input_details():
        target = interpreter.tensor(detail["index"])()
        if target.shape[1:] == (4,):  # boxes that do not overlap
            target[...] = np.arange(len(target), dtype=np.float32)[:, None]
            target[:, 2:] += np.float32(0.5)
            continue
        target[...] = value
        first = target.reshape(-1)[: 1 << 10]
        first += (np.arange(first.size) % 5).astype(target.dtype)


def answer(interpreter: Interpreter, small: Any) -> list[Any]:
    """The outputs for small inputs."""
    for detail, shape in zip(interpreter.get_input_details(), small):
        interpreter.resize_tensor_input(detail["index"], shape)
    interpreter.allocate_tensors()
    feed(interpreter, 1)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]).copy() for detail in interpreter.get_output_details()]


def confine() -> int:
    """Allow 1 GiB more than is there; returns the most that was resident so far, in KiB."""
    import resource

    with open("/proc/self/statm") as file:
        start = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (start + (1 << 30),) * 2)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def cancel(interpreter: Interpreter, patience: float, over: threading.Event) -> None:
    """Cancels a run after so many seconds, and again until it is over: what has not begun yet is not cancelled."""
    while not over.wait(patience):
        interpreter.cancel()


def main() -> None:
    """Prints the kind of error or "done", the longer call's seconds of the processor, MiB of growth, and whether small inputs are
    answered right afterwards.
    """
    name, threads, plugins, way, patience = sys.argv[1], int(sys.argv[2]), sys.argv[3].split(","), sys.argv[4], float(sys.argv[5])
    case = stopping_models.MODELS[name]
    model = case.model()
    # Kernels are compiled, which takes its time where none are kept on disk.
    made: dict[str, Any] = {"model_content": model, "num_threads": threads, "plugins": plugins}
    Interpreter(**made, limits=limits(None)).allocate_tensors()
    resident = confine()
    interpreter = Interpreter(**made, limits=limits(patience if way == "deadline" else None))
    outcome, allocating, over = "", 0.0, threading.Event()
    canceller = threading.Thread(target=cancel, args=(interpreter, patience, over))
    begin = time.process_time()
    try:
        interpreter.allocate_tensors()
        allocating = time.process_time() - begin
        feed(interpreter, 1)
        begin = time.process_time()
        if way == "cancel":
            canceller.start()
        interpreter.invoke()
        outcome = "done"
    except (DeadlineError, CancelledError) as error:
        outcome = type(error).__name__
    except OpletError as error:
        outcome = f"{type(error).__name__}: {error}"
    over.set()
    if canceller.ident:
        canceller.join()
    seconds = max(allocating, time.process_time() - begin)
    import resource

    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - resident) // 1024
    right = True
    if case.small and outcome in ("done", "DeadlineError", "CancelledError"):
        other = Interpreter(model_content=model, plugins=["oplet-builtin-ops"])
        found, wanted = answer(interpreter, case.small), answer(other, case.small)
        right = all(np.allclose(a, b, 1e-4, 1e-5) for a, b in zip(found, wanted))
    print(json.dumps({"outcome": outcome, "seconds": seconds, "grown": grown, "right": right}))


if __name__ == "__main__":
    main()
