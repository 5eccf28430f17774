"""Time to build, write and read large graphs, and how it grows with the number of nodes.

    python benchmarks/building.py [--nodes N ...] [--rounds N]

For each number of nodes: milliseconds (best of the rounds) to build the graph, write it to bytes, read the bytes into tables, verify the
tables, construct an interpreter and allocate its tensors; then microseconds per node, and their ratio between the largest and the smallest
graph: 1.0 is linear.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from oplet import Interpreter, Model
from oplet.builder import ModelBuilder
from oplet.model.verify.verifier import verify
from oplet.schema.enums import Padding
from oplet.schema.options import AddOptions, Conv2DOptions

STEPS = ("build", "write", "read", "verify", "load", "allocate")
SIZES = (1000, 2000, 5000, 10000, 20000)

T = TypeVar("T")


def describe(nodes: int) -> ModelBuilder:
    """Blocks of a 1x1 convolution, an activation and a residual sum; every convolution has weights of its own."""
    builder = ModelBuilder(f"{nodes} nodes")
    graph = builder.add_subgraph()
    shape, weights, bias = (1, 4, 4, 2), np.eye(2, dtype=np.float32).reshape(2, 1, 1, 2), np.zeros(2, np.float32)
    options = Conv2DOptions(padding=Padding.VALID, stride_w=1, stride_h=1)
    x = graph.add_tensor("x", np.float32, shape)
    graph.set_inputs(x)
    made = 0
    while made < nodes:
        w = graph.add_tensor(f"w{made}", np.float32, weights.shape, data=weights)
        b = graph.add_tensor(f"b{made}", np.float32, bias.shape, data=bias)
        convolved, active, total = (graph.add_tensor(f"{name}{made}", np.float32, shape) for name in ("conv", "relu", "sum"))
        graph.add_operator("CONV_2D", [x, w, b], [convolved], options)
        graph.add_operator("RELU", [convolved], [active])
        graph.add_operator("ADD", [x, active], [total], AddOptions())
        x = total
        made += 3
    graph.set_outputs(x)
    return builder


def timed(times: list[float], step: Callable[[], T]) -> T:
    """Run a step and append its seconds. The garbage collector is off: it would count garbage of other steps."""
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        result = step()
        times.append(time.perf_counter() - start)
    finally:
        gc.enable()
    return result


def measure(nodes: int) -> list[float]:
    """The seconds of each step for a graph of this many nodes."""
    times: list[float] = []
    builder = timed(times, lambda: describe(nodes))
    data = timed(times, builder.to_bytes)
    model = timed(times, lambda: Model.from_bytes(data))
    timed(times, lambda: verify(model))
    interpreter = timed(times, lambda: Interpreter(model_content=data))
    timed(times, interpreter.allocate_tensors)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    measure(30)  # warm-up: first uses import modules
    print(f"{'nodes':>8}" + "".join(f"{step + ' ms':>14}" for step in STEPS))
    found = {}
    for nodes in arguments.nodes:
        rounds = [measure(nodes) for _ in range(arguments.rounds)]
        found[nodes] = [min(column) for column in zip(*rounds)]
        print(f"{nodes:>8}" + "".join(f"{seconds * 1e3:>14.1f}" for seconds in found[nodes]))
    print(f"{'nodes':>8}" + "".join(f"{step + ' us/n':>14}" for step in STEPS))
    for nodes, times in found.items():
        print(f"{nodes:>8}" + "".join(f"{seconds / nodes * 1e6:>14.2f}" for seconds in times))
    first, last = min(found), max(found)
    growth = [(b / last) / (a / first) for a, b in zip(found[first], found[last])]
    print(f"{'growth':>8}" + "".join(f"{ratio:>14.2f}" for ratio in growth))


if __name__ == "__main__":
    main()
