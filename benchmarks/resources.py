"""Startup costs: loading, allocating, the first inference, memory; and the size of the arena compared with LiteRT's.

    python -m benchmarks.resources FOLDER [--least-bytes N] [--rounds N]

Each measurement is taken in a fresh process; the runtimes' processes alternate.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import common, runners  # first: it has BLAS use one thread
from oplet_tools.processes import run_python

__all__ = ["arena", "loading", "start"]

_KINDS = ("oplet-numpy", "oplet-compiled", "litert", "litert-xnnpack")
_STEPS = ("import", "load", "allocate", "first", "again", "resident")
_ROOT = Path(__file__).resolve().parents[1]

#: The subprocess's code: milliseconds of each step, and the MiB that the model adds to those of the imports.
_CHILD = """
import json, sys, time
from pathlib import Path
from benchmarks import common, runners
from oplet_tools.benchmarking.memory_use import resident_bytes
kind, content = sys.argv[1], Path(sys.argv[2]).read_bytes()
clock = time.perf_counter
times = [clock()]
if kind in runners.OPLET:
    import oplet.runtime.interpreter, oplet.plugins.manager
else:
    import ai_edge_litert.interpreter
before = resident_bytes() or 0
times.append(clock())
interpreter = runners.make(kind, content)
times.append(clock())
interpreter.allocate_tensors()
times.append(clock())
runners.feed(interpreter)
begin = clock()
interpreter.invoke()
first = clock() - begin
grown = (resident_bytes() or 0) - before
again = []
for _ in range(3):  # what is left when everything is imported
    begin = clock()
    runners.make(kind, content).allocate_tensors()
    again.append(clock() - begin)
steps = [b - a for a, b in zip(times, times[1:])] + [first, sorted(again)[1]]
print("RESULT", json.dumps([1e3 * step for step in steps] + [grown / 2**20]))
"""


def _child(kind: str, path: Path) -> list[float] | None:
    done = run_python(["-c", _CHILD, kind, os.path.abspath(path)], folders=[_ROOT], capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return [float(number) for number in json.loads(found[0].removeprefix("RESULT "))] if found else None


def start(found: Sequence[tuple[str, bytes]], rounds: int, tell: Callable[[str], None] = print) -> common.Section:
    """Measure the startup costs of every model."""
    kinds = [kind for kind in _KINDS if runners.installed(kind)]
    section = common.Section("Start and memory", data={"models": {}})
    rows: list[list[str]] = []
    ratios: dict[str, list[float]] = {kind: [] for kind in kinds}
    warm: dict[str, list[float]] = {kind: [] for kind in kinds}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.tflite")
        for name, content in found:
            path.write_bytes(content)
            measured: dict[str, list[list[float]]] = {kind: [] for kind in kinds}
            for _ in range(rounds):
                for kind in kinds:
                    one = _child(kind, path)
                    if one is not None:
                        measured[kind].append(one)
            medians = {kind: [statistics.median(column) for column in zip(*runs)] for kind, runs in measured.items() if runs}
            section.data["models"][name] = {kind: dict(zip(_STEPS, values)) for kind, values in medians.items()}
            rows += [[name, kind, *(f"{value:.1f}" for value in values)] for kind, values in medians.items()]
            for kind, values in medians.items():
                if "litert-xnnpack" in medians:
                    theirs = medians["litert-xnnpack"]
                    ratios[kind].append((values[1] + values[2]) / (theirs[1] + theirs[2]))
                    warm[kind].append(values[4] / theirs[4])
            starts = (f"{kind} {values[1] + values[2]:.1f}, again {values[4]:.1f} ms" for kind, values in medians.items())
            tell(f"start of {name}: {'; '.join(starts)}")
    means = {kind: common.geometric_mean(values) for kind, values in ratios.items()}
    warm_means = {kind: common.geometric_mean(values) for kind, values in warm.items()}
    section.data["load and allocate / litert-xnnpack"] = means
    section.data["again / litert-xnnpack"] = warm_means
    columns = ["model", "", "import ms#", "load ms#", "allocate ms#", "first inference ms#", "again ms#", "resident MiB#"]
    section.lines = [
        f"Fresh processes, medians of {rounds}. `import` is what the runtime takes beyond numpy, `load` includes finding the "
        "plugins, `again` is loading and allocating once more in the same process, `resident` is what the process grew by from the "
        "import to the first inference.",
        "",
        *common.table(columns, rows),
        "",
        _means("Load and allocate against LiteRT with XNNPACK", means),
        "",
        _means("Once more in the same process", warm_means),
    ]
    return section


def loading(found: Sequence[tuple[str, bytes]], rounds: int) -> common.Section:
    """Measure loading and allocating after all imports, compared with LiteRT, pair by pair."""
    kinds = [kind for kind in _KINDS if runners.installed(kind)]
    rows: list[list[str]] = []
    data: dict[str, Any] = {"models": {}}
    ratios: dict[str, list[float]] = {}
    for name, content in found:
        times: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
        for number in range(rounds + 1):
            for kind in kinds:
                try:
                    times[kind].append(_load_and_allocate(kind, content))
                except (ValueError, RuntimeError):
                    continue
                if not number:
                    times[kind].clear()  # the first round imported modules
        rival = times.get("litert-xnnpack")
        for kind, pairs in times.items():
            if not pairs or not rival:
                continue
            load = statistics.median(a / d for (a, _), (_, d) in zip(pairs, rival))
            both = statistics.median((a + b) / d for (a, b), (_, d) in zip(pairs, rival))
            ratios.setdefault(f"{kind}: load", []).append(load)
            ratios.setdefault(f"{kind}: load and allocate", []).append(both)
            milliseconds = [statistics.median(column) * 1e3 for column in zip(*pairs)]
            data["models"].setdefault(name, {})[kind] = [*milliseconds, load, both]
            rows.append([name, kind, *(f"{value:.2f}" for value in (*milliseconds, load, both))])
    data["means"] = {name: common.geometric_mean(values) for name, values in ratios.items()}
    columns = ["model", "", "load ms#", "allocate ms#", "load / XNNPACK's allocate#", "load and allocate / XNNPACK's allocate#"]
    means = _means("Against LiteRT's `allocate_tensors` with XNNPACK", data["means"])
    return common.Section("Loading, in a process that has loaded it before", [*common.table(columns, rows), "", means], data)


def _load_and_allocate(kind: str, content: bytes) -> tuple[float, float]:
    begin = time.perf_counter()
    interpreter = runners.make(kind, content)
    loaded = time.perf_counter()
    interpreter.allocate_tensors()
    return loaded - begin, time.perf_counter() - loaded


def _means(title: str, means: dict[str, float]) -> str:
    return f"{title}, geometric means: {', '.join(f'{kind} {mean:.2f}' for kind, mean in means.items())}"


def arena(found: Sequence[tuple[str, bytes]]) -> common.Section:
    """Sizes of the arena, in oplet and in LiteRT without a delegate."""
    rows, ratios = [], []
    data: dict[str, Any] = {"models": {}}
    for name, content in found:
        try:
            ours, theirs = _our_arena(content), _litert_arena(content)
        except (ValueError, RuntimeError):
            continue
        ratios.append(ours / theirs)
        data["models"][name] = (ours, theirs)
        rows.append((name, f"{ours:,}", f"{theirs:,}", f"{ratios[-1]:.2f}"))
    data["mean"] = common.geometric_mean(ratios)
    lines = [
        "Of LiteRT the span of the addresses of inputs, outputs and intermediate tensors is counted, where no delegate runs them; "
        "what kernels keep elsewhere is not seen. oplet's has its kernels' scratch tensors in it too.",
        "",
        *common.table(["model", "oplet bytes#", "LiteRT bytes#", "ratio#"], rows),
        "",
        f"Geometric mean: {data['mean']:.2f}",
    ]
    return common.Section("Arena", lines, data)


def _our_arena(content: bytes) -> int:
    interpreter = runners.make("oplet-numpy", content)
    interpreter.allocate_tensors()
    return sum(subgraph.arena_bytes for subgraph in interpreter._subgraphs)


def _litert_arena(content: bytes) -> int:
    interpreter = runners.make("litert", content)
    interpreter.allocate_tensors()
    runners.feed(interpreter)
    interpreter.invoke()  # tensors whose shapes depend on data are allocated during invoke
    used = {int(detail["index"]) for detail in interpreter.get_input_details()}
    for op in interpreter._get_ops_details():
        if used.intersection(
            map(int, op["inputs"])
        ):  # without such an input it is computed from constants once, outside the arena
            used.update(map(int, op["outputs"]))
    low, high = None, 0
    for index in used:
        try:
            view = interpreter.tensor(index)()
        except ValueError:
            continue
        if view.nbytes:
            address = view.ctypes.data
            low = address if low is None else min(low, address)
            high = max(high, address + view.nbytes)
        del view
    return high - (low or 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--least-bytes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    found = list(common.models(arguments.folder, arguments.least_bytes))
    print(start(found, arguments.rounds, lambda line: print(line, file=sys.stderr, flush=True)).markdown)
    print(loading(found, arguments.rounds).markdown)
    print(arena(found).markdown)


if __name__ == "__main__":
    main()
