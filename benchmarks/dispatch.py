"""Dispatch overhead of the runtime for each op, beyond the numpy call: a chain of 1,000 additions of 64 numbers.

python -m benchmarks.dispatch [--nodes N] [--rounds N]
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

from benchmarks import common, runners  # first: it has BLAS use one thread

import numpy as np  # isort: skip

__all__ = ["dispatch"]


def chain(nodes: int, size: int = 64) -> bytes:
    """x + c + c + ..."""
    from oplet import ModelBuilder
    from oplet.schema.options import AddOptions

    builder = ModelBuilder("chain")
    graph = builder.add_subgraph()
    c = graph.add_tensor("c", np.float32, [size], data=np.full(size, 1e-3, np.float32))
    x = graph.add_tensor("x", np.float32, [size])
    graph.set_inputs(x)
    for node in range(nodes):
        y = graph.add_tensor(f"y{node}", np.float32, [size])
        graph.add_operator("ADD", [x, c], [y], AddOptions())
        x = y
    graph.set_outputs(x)
    return builder.to_bytes()


def dispatch(nodes: int = 1000, rounds: int = 200) -> common.Section:
    """Measure the dispatch overhead on the chain."""
    arrays = [np.zeros(64, np.float32) for _ in range(2)]
    c = np.full(64, 1e-3, np.float32)
    calls = [(arrays[node % 2], c, arrays[1 - node % 2]) for node in range(nodes)]
    add = np.add

    def plain() -> None:
        for a, b, out in calls:
            add(a, b, out)

    content = chain(nodes)
    invokes: dict[str, Callable[[], object]] = {"numpy": plain}
    for kind in ("oplet-numpy", "oplet-compiled", "litert", "litert-xnnpack"):
        if runners.installed(kind):
            invokes[kind] = runners.prepared(kind, "chain", content)
            invokes[kind]()
    seconds = common.take_turns(invokes, rounds)
    micro = {name: statistics.median(values) / nodes * 1e6 for name, values in seconds.items()}
    above = {
        name: statistics.median(a - b for a, b in zip(values, seconds["numpy"])) / nodes * 1e6 for name, values in seconds.items()
    }
    names = {"numpy": "np.add(a, b, out) in a loop"}
    rows = [(names.get(name, name), f"{micro[name]:.3f}", f"{above[name]:+.3f}") for name in micro]
    return common.Section(
        f"Dispatch: {nodes:,} additions of 64 numbers",
        common.table(["", "microseconds an op#", "above numpy's call, pair by pair#"], rows),
        {"microseconds": micro, "above": above},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=200)
    arguments = parser.parse_args()
    print(dispatch(arguments.nodes, arguments.rounds).markdown)


if __name__ == "__main__":
    main()
