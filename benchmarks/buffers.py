"""CompiledModels of several threads: how many runs a second they have together, each with its own model, against one alone.

    python -m benchmarks.buffers [MODEL] [--threads N] [--rounds N] [--seconds S]

One thread and all of them take turns; the highest ratio of a round counts, as others' work on the machine only lowers it. The second figure is
processor seconds for each second that the clock shows, which is how many processors the threads kept busy: 1 where runs wait for each other. The
last is what threads cost a run: its processor time among them against that alone, whoever else uses the machine.
Without a model a small net is measured.
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.scaling import small_net  # first: it has BLAS use one thread

__all__ = ["Rate", "measure", "rate"]

_ENGINES = {"oplet": "oplet.compiled_model", "litert": "ai_edge_litert.compiled_model"}


class Rate(NamedTuple):
    """What threads did in some seconds.

    Attributes:
        runs: runs a second, of all threads together.
        busy: processor seconds a second.
    """

    runs: float
    busy: float


def runner_of(engine: str, model: bytes) -> Callable[[], None]:
    """What runs a model of an engine's own once, on buffers that are bound before."""
    made = import_module(_ENGINES[engine]).CompiledModel.from_buffer(model)
    inputs, outputs = made.create_input_buffers(0), made.create_output_buffers(0)

    def run() -> None:
        made.run_by_index(0, inputs, outputs)

    for _ in range(3):
        run()
    return run


def rate(runs: Sequence[Callable[[], None]], seconds: float) -> Rate:
    """Call each of these in a thread of its own, again and again, for some seconds."""
    counts, go = [0] * len(runs), threading.Event()
    end = 0.0

    def work(index: int) -> None:
        run = runs[index]
        go.wait()
        while time.perf_counter() < end:
            run()
            counts[index] += 1

    threads = [threading.Thread(target=work, args=(index,)) for index in range(len(runs))]
    for thread in threads:
        thread.start()
    begin, busy = time.perf_counter(), time.process_time()
    end = begin + seconds
    go.set()
    for thread in threads:
        thread.join()
    lasted = time.perf_counter() - begin
    return Rate(sum(counts) / lasted, (time.process_time() - busy) / lasted)


def measure(engine: str, model: bytes, threads: int, rounds: int, seconds: float) -> tuple[float, float, float]:
    """The highest ratio of all threads' runs to one's, the most processors that they kept busy, and the least ratio of a run's processor time."""
    runs = [runner_of(engine, model) for _ in range(threads)]
    found = [(rate(runs[:1], seconds), rate(runs, seconds)) for _ in range(rounds)]
    costs = [(many.busy / many.runs) / (one.busy / one.runs) for one, many in found]
    return max(many.runs / one.runs for one, many in found), max(many.busy for _, many in found), min(costs)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", nargs="?", type=Path, help="the .tflite file; a small net unless given")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0)
    given: Any = parser.parse_args(arguments)
    model = small_net(112) if given.model is None else given.model.read_bytes()
    for engine in _ENGINES:
        if engine == "litert" and find_spec("ai_edge_litert") is None:
            continue
        ratio, busy, cost = measure(engine, model, given.threads, given.rounds, given.seconds)
        print(
            f"{engine:<8} {given.threads} threads: {ratio:.2f} times one, {busy:.2f} processors busy, {cost:.2f} times the processor time a run"
        )


if __name__ == "__main__":
    main()
