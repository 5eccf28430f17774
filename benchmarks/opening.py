"""Time and memory to import oplet and to open a large model.

    python benchmarks/opening.py [--megabytes N]

Prints the import time beyond numpy's, and for a model with N megabytes of constants the seconds to construct its interpreter and the
increase in resident memory.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from pathlib import Path

from oplet.tools.subprocesses import run_python

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
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
