"""Small sequence nets against LiteRT: recurrent nets with loops and unrolled ones, convolutions, an encoder, a mixer and a scan.

    python -m benchmarks sequences FOLDER [--rounds N] [--only NET ...]

`benchmarks.sequence_nets` makes the nets with tensorflow, in a process of its own; FOLDER keeps them. oplet with numpy's kernels and
with compiled ones and LiteRT as it comes take turns in one process with one thread. A turn is many calls, as one takes microseconds. The
table has, for each net, LiteRT's time over ours: the ratio of the shortest turns, and the median of the ratios of each round.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import common, runners  # first: it has BLAS use one thread
from benchmarks.sequence_nets import NETS
from oplet_tools.processes import run_python

__all__ = ["main", "sequences"]

_RIVAL = "litert-xnnpack"
#: About the seconds of a turn.
_TURN = 3e-3


def sequences(folder: Path, names: Sequence[str], rounds: int) -> common.Section:
    """Measure the nets of a folder, called NAME.tflite."""
    columns = ["net", "LiteRT µs#", *(f"{kind}{what}#" for kind in runners.OPLET for what in (" µs", " min", " median"))]
    rows: list[Sequence[object]] = []
    found: dict[str, dict[str, tuple[float, float]]] = {}
    for name in names:
        content = (folder / f"{name}.tflite").read_bytes()
        turns = {kind: _turn(runners.prepared(kind, name, content)) for kind in (*runners.OPLET, _RIVAL)}
        seconds = common.take_turns({kind: turn for kind, (turn, _) in turns.items()}, rounds, burst=2)
        each = {kind: [took / turns[kind][1] for took in taken] for kind, taken in seconds.items()}
        rival = each[_RIVAL]
        row: list[object] = [name, f"{min(rival) * 1e6:.1f}"]
        found[name] = {}
        for kind in runners.OPLET:
            own = each[kind]
            ratios = min(rival) / min(own), statistics.median(a / b for a, b in zip(rival, own))
            found[name][kind] = ratios
            row += [f"{min(own) * 1e6:.1f}", *(f"{ratio:.2f}" for ratio in ratios)]
        rows.append(row)
        print(*row, file=sys.stderr, flush=True)
    means: list[object] = ["geometric mean", ""]
    for kind in runners.OPLET:
        means += ["", *(f"{common.geometric_mean([found[name][kind][i] for name in names]):.2f}" for i in (0, 1))]
    return common.Section("Small sequence nets", common.table(columns, [*rows, means]), {"nets": found})


def _turn(invoke: Callable[[], object]) -> tuple[Callable[[], None], int]:
    """A function of many calls, and their number."""
    for _ in range(5):
        invoke()
    start = time.perf_counter()
    invoke()
    calls = max(int(_TURN / (time.perf_counter() - start)), 1)

    def turn() -> None:
        for _ in range(calls):
            invoke()

    return turn, calls


def main(arguments: Sequence[str] | None = None) -> None:
    """The program; arguments as of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks sequences", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", nargs="+", choices=list(NETS), default=list(NETS), metavar="NET", help=", ".join(NETS))
    given = parser.parse_args(arguments)
    if any(not (given.folder / f"{name}.tflite").exists() for name in given.only):
        here = Path(__file__).resolve()
        run_python([str(here.with_name("sequence_nets.py")), str(given.folder)], folders=[here.parents[1]], check=True)
    print(sequences(given.folder, given.only, given.rounds).markdown)


if __name__ == "__main__":
    main()
