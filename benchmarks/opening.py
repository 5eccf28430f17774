"""Time and memory to import oplet and to open a large model; time to open models, against LiteRT's.

    python benchmarks/opening.py [--megabytes N]
    python benchmarks/opening.py MODEL.tflite ...

Prints the import time beyond numpy's, and for a model with N megabytes of constants the seconds to construct its interpreter and the
increase in resident memory. With models: the milliseconds of `Interpreter(model_content=...)` and `allocate_tensors()` together, each time
from bytes of their own, in turns with LiteRT: "first" prepares everything anew, as the first time in a process does once kernels are
loaded, "again" is after the interpreter before was dropped.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from oplet_tools.processes import run_python

IMPORT = """
import time, numpy
start = time.perf_counter()
from oplet import Interpreter
print(time.perf_counter() - start)
"""

OPEN = """
import os, sys, time
from oplet import Interpreter
import oplet.plugins.manager
oplet.plugins.manager.default_manager().resolver()

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

before, start = resident(), time.perf_counter()
interpreter = Interpreter(sys.argv[1])
print(time.perf_counter() - start, resident() - before)
"""


def child(code: str, *arguments: str) -> list[float]:
    """The numbers that a fresh process prints."""
    done = run_python(["-c", code, *arguments], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def make_model(path: Path, megabytes: int) -> None:
    """A chain of fully connected layers with `megabytes` of weights."""
    import numpy as np

    from oplet import ModelBuilder
    from oplet.schema.options import FullyConnectedOptions

    builder = ModelBuilder("large")
    graph = builder.add_subgraph()
    size = 512
    x = graph.add_tensor("x", np.float32, [1, size])
    graph.set_inputs(x)
    random = np.random.default_rng(0)
    for layer in range(megabytes):  # a layer of 512 x 512 float32 takes 1 MiB
        weights = graph.add_tensor(f"w{layer}", np.float32, [size, size], data=random.random((size, size), np.float32))
        y = graph.add_tensor(f"y{layer}", np.float32, [1, size])
        graph.add_operator("FULLY_CONNECTED", [x, weights, -1], [y], FullyConnectedOptions())
        x = y
    graph.set_outputs(x)
    path.write_bytes(builder.to_bytes())


def open_in_turns(content: bytes, rounds: int) -> tuple[list[float], list[float], list[float]]:
    """The seconds to open and allocate a model: all anew, after one was dropped, and in LiteRT; a number for each round."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT

    from oplet import Interpreter
    from oplet.runtime.memory.remembered import forget_plans

    def opened(make: Any, **settings: Any) -> tuple[float, Any]:
        own = bytes(bytearray(content))
        start = time.perf_counter()
        interpreter = make(model_content=own, **settings)
        interpreter.allocate_tensors()
        return time.perf_counter() - start, interpreter

    opened(Interpreter)
    first: list[float] = []
    again: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        forget_plans()
        for times in (first, again):
            seconds, interpreter = opened(Interpreter)
            del interpreter
            times.append(seconds)
        theirs.append(opened(LiteRT, num_threads=1)[0])
    return first, again, theirs


def compare(paths: list[Path], rounds: int) -> None:
    """Print the times of models, and the geometric means of their medians over LiteRT's."""
    ratios: list[tuple[float, float]] = []
    print(f"{'model':44} {'first':>8} {'again':>8} {'LiteRT':>8}  ms; ratios to LiteRT's, medians of rounds")
    for path in paths:
        columns = open_in_turns(path.read_bytes(), rounds)
        found = [statistics.median(mine / other for mine, other in zip(column, columns[2])) for column in columns[:2]]
        ratios.append((found[0], found[1]))
        times = " ".join(f"{statistics.median(column) * 1e3:8.2f}" for column in columns)
        print(f"{os.fspath(path)[-44:]:44} {times}  {found[0]:.2f} {found[1]:.2f}", flush=True)
    for name, column in zip(("first", "again"), zip(*ratios)):
        print(f"{name}: geometric mean {math.exp(statistics.fmean(map(math.log, column))):.2f}, worst {max(column):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    if arguments.models:
        compare(arguments.models, arguments.rounds)
        return
    imports = [child(IMPORT)[0] for _ in range(arguments.rounds)]
    print(f"import beyond numpy: median {statistics.median(imports) * 1e3:.1f} ms")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "large.tflite")
        make_model(path, arguments.megabytes)
        opened = [child(OPEN, os.fspath(path)) for _ in range(arguments.rounds)]
    seconds, grown = (statistics.median(column) for column in zip(*opened))
    print(f"opening {arguments.megabytes} MB: median {seconds * 1e3:.1f} ms, {grown / 2**20:.1f} MiB more resident")


if __name__ == "__main__":
    main()
