"""Language models: time of a token and of prefills, and memory, against LiteRT's Interpreter.

    python -m benchmarks.language [--small] [--weights KIND ...] [--threads N ...] [--rounds N] [--json FILE]

The model has 30 million parameters with random weights (`language_net.py`). The runtimes take turns in one process, and ratios are medians of
those of a round. They are compared in two ways:

- signature runners: both are called with the caches as arguments, and the answer has the next ones.
- state in place: oplet runs as `oplet_lm` does, with the caches where they are and all inputs made anew, against LiteRT's bare invoke of a
  signature that was fed once, which is the least that it can take.

On one thread it is the thread's processor time that counts, which other programs on the machine hardly change; on more it is the clock's.

Memory is what a fresh process grows by at its peak for a model that prefills and decodes: each runtime with its signature runners, and oplet with
its state in place, too.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks import common  # first: it has BLAS use one thread
from benchmarks.language_net import WEIGHTS, Size, caches, language_model

import numpy as np  # isort: skip

__all__ = ["measure", "peak"]

#: What runs: LiteRT's and oplet's signature runners, LiteRT's bare invoke, and oplet with its state in place.
_KINDS = ("litert", "oplet", "litert-invoke", "oplet-state")
_RATIOS = {"signature runners": ("oplet", "litert"), "state in place": ("oplet-state", "litert-invoke")}
_ROOT = Path(__file__).resolve().parents[1]
_SMALL = Size(layers=2, width=64, heads=4, inner=128, vocabulary=256, context=64)
_SECONDS = 300


class _Fed:
    """A signature with what it is called with: a text whose middle it reads."""

    def __init__(self, size: Size, count: int) -> None:
        start = size.context // 4 if count == 1 else 0
        rows = np.arange(start, start + count, dtype=np.int32)
        mask = np.where(np.arange(size.context) <= rows[:, None], np.float32(0), np.float32(-0.7) * np.finfo(np.float32).max)
        self.tokens, self.start = list(range(1, count + 1)), start
        self.values = {
            "tokens": np.array([self.tokens], np.int32),
            "input_pos": rows,
            "mask": mask[None, None].astype(np.float32),
        }
        random = np.random.default_rng(3)
        self.caches = {name: random.standard_normal(shape, np.float32) for name, shape in caches(size).items()}


def _interpreter(kind: str, content: bytes, threads: int) -> Any:
    if kind.startswith("oplet"):
        from oplet import Interpreter

        return Interpreter(model_content=content, num_threads=threads)
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    return LiteRT(model_content=content, num_threads=threads)


def _called(kind: str, interpreter: Any, key: str, fed: _Fed, size: Size) -> Callable[[], object]:
    """What runs a signature once."""
    if kind == "oplet-state":
        from oplet_lm.executor import Part, Step

        states = {name: (name, array) for name, array in fed.caches.items()}
        step = Step([Part(interpreter, key)], states, len(fed.tokens), size.context, 0, {})
        return lambda: step.run(fed.tokens, fed.start)
    runner = interpreter.get_signature_runner(key)
    if kind == "litert-invoke":
        runner(**fed.values, **fed.caches)
        return lambda: runner._interpreter_wrapper.Invoke(runner._subgraph_index)
    held = dict(fed.caches)

    def run() -> None:
        answer = runner(**fed.values, **held)
        held.update((name, answer[name]) for name in held)

    return run


def measure(content: bytes, size: Size, lengths: Sequence[int], threads: int, rounds: int) -> dict[str, dict[str, list[float]]]:
    """The seconds of each round: by the signature, and by what ran it."""
    found: dict[str, dict[str, list[float]]] = {}
    made = {kind: _interpreter(kind, content, threads) for kind in _KINDS}
    for key, count in [("decode", 1), *((f"prefill_{length}", length) for length in lengths)]:
        runs = {kind: _called(kind, interpreter, key, _Fed(size, count), size) for kind, interpreter in made.items()}
        for run in runs.values():
            run()
        clock = time.thread_time if threads == 1 else time.perf_counter
        found[key] = common.take_turns(runs, rounds if count > 1 else 4 * rounds, burst=1 if count > 1 else 5, clock=clock)
    return found


def _child(kind: str, path: Path, threads: int, size: Size, longest: int) -> None:
    """Run a model in this process, and print by how many bytes its peak grew."""
    from oplet_tools.benchmarking.memory_use import peak_bytes, resident_bytes

    def highest() -> int:
        try:
            lines = Path("/proc/self/status").read_text().splitlines()
            return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
        except (OSError, StopIteration):
            return peak_bytes() or 0

    def run(content: bytes, its: Size, length: int) -> object:
        interpreter = _interpreter(kind, content, threads)
        fed = _Fed(its, length)
        _called(kind, interpreter, f"prefill_{length}", fed, its)()
        decode = _called(kind, interpreter, "decode", _Fed(its, 1), its)
        for _ in range(4):
            decode()
        return interpreter

    run(language_model("float32", _SMALL, (8,)), _SMALL, 8)  # so that what is imported, and compiled, is there before
    gc.collect()
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak (proc(5))
    before = resident_bytes() or 0
    kept = run(path.read_bytes(), size, longest)
    print("RESULT", highest() - before)
    del kept


def peak(kind: str, path: Path, threads: int, small: bool) -> int | None:
    """The bytes that a fresh process grows by at its peak; None if it failed."""
    from oplet_tools.processes import TimeoutExpired, run_python

    arguments = [
        "-m",
        "benchmarks.language",
        "--child",
        kind,
        str(path),
        "--threads",
        str(threads),
        *(["--small"] if small else []),
    ]
    try:
        done = run_python(arguments, folders=[_ROOT], capture_output=True, text=True, timeout=_SECONDS)
    except TimeoutExpired:
        return None
    return next((int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.language", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--weights", nargs="+", choices=WEIGHTS, default=WEIGHTS)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=7, help="rounds of prefills; tokens have four times as many")
    parser.add_argument("--small", action="store_true", help="a toy model, with prefills of 8 and 32 tokens")
    parser.add_argument("--json", type=Path, help="where the numbers go")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    size, lengths = (_SMALL, (8, 32)) if given.small else (Size(), (64, 512))
    if given.child:
        _child(given.child[0], Path(given.child[1]), given.threads[0], size, max(lengths))
        return
    times: list[list[Any]] = []
    memory: list[list[Any]] = []
    data: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for weights in given.weights:
            content = language_model(weights, size, lengths)
            path = Path(folder, f"{weights}.tflite")
            path.write_bytes(content)
            data[weights] = {"bytes": len(content), "parameters": size.parameters, "seconds": {}, "peak": {}}
            for threads in given.threads:
                seconds = measure(content, size, lengths, threads, given.rounds)
                data[weights]["seconds"][threads] = seconds
                for key, found in seconds.items():
                    ratios = [
                        statistics.median(mine / its for mine, its in zip(found[one], found[other]))
                        for one, other in _RATIOS.values()
                    ]
                    shown = [f"{1000 * statistics.median(found[kind]):.3g}" for kind in _KINDS]
                    times.append([weights, threads, key, *shown, *(f"{ratio:.2f}" for ratio in ratios)])
                    print(*times[-1], file=sys.stderr)
            peaks = {kind: peak(kind, path, 1, given.small) for kind in _KINDS if kind != "litert-invoke"}
            data[weights]["peak"] = peaks
            its = peaks["litert"]
            memory.append(
                [weights, f"{len(content) / 2**20:.1f}"]
                + [f"{found / 2**20:.1f}" if found else "failed" for found in peaks.values()]
                + [f"{found / its:.2f}" if found and its else "" for kind, found in peaks.items() if kind != "litert"]
            )
    print(f"## Language model of {size.parameters / 1e6:.3g} million parameters\n")
    columns = ["weights", "threads#", "signature", *(f"{kind} ms#" for kind in _KINDS), *(f"{each}#" for each in _RATIOS)]
    print("\n".join(common.table(columns, times)), "\n")
    columns = [
        "weights",
        "file MiB#",
        "litert MiB#",
        "oplet MiB#",
        "oplet-state MiB#",
        "oplet / litert#",
        "oplet-state / litert#",
    ]
    print("\n".join(common.table(columns, memory)))
    if given.json:
        from oplet.model.files.atomic_write import write_atomically

        write_atomically(given.json, json.dumps(data, indent=1))


if __name__ == "__main__":
    main()
