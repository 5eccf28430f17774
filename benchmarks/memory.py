"""Memory: what one interpreter of a model takes, and each further one, compared with LiteRT's.

    python -m benchmarks.memory FOLDER [--least-bytes N] [--further N] [--only NAME ...]

Each measurement is taken in a fresh process that has imported its runtime and run a model of one node, so that what is counted is the
model's alone: constants that were read, packed weights, the arena, compiled kernels and Python objects. LiteRT holds the model's bytes
and their packed copy; oplet's are in the bytes that it was given. The peak is counted from the first interpreter on, where the system
can forget the one before (Linux); elsewhere what importing took at its highest is in it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import common, runners  # first: it has BLAS use one thread
from oplet_tools.processes import TimeoutExpired, run_python

__all__ = ["memory"]

_KINDS = ("oplet-numpy", "oplet-compiled", "litert", "litert-xnnpack")
_ROOT = Path(__file__).resolve().parents[1]
#: What is compared with LiteRT's.
_COMPARED = ("first", "peak", "further")
#: Seconds for a process.
_SECONDS = 300

#: The subprocess's code: bytes that the process and its peak grew by, those of each further interpreter, and of the arena.
#: `5` has Linux forget the process's peak (proc(5), clear_refs); `ru_maxrss` would still have that of the parent.
_CHILD = """
import gc, json, sys
from pathlib import Path
from benchmarks import common, runners
from oplet_tools.benchmarking.memory_use import peak_bytes, resident_bytes
kind, content, further = sys.argv[1], Path(sys.argv[2]).read_bytes(), int(sys.argv[3])

def forget_peak():
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass

def highest():
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return peak_bytes()

def run(content):
    interpreter = runners.make(kind, content)
    interpreter.allocate_tensors()
    runners.feed(interpreter)
    interpreter.invoke()
    return interpreter

run(Path(sys.argv[4]).read_bytes())
gc.collect()
forget_peak()
before = resident_bytes()
kept = [run(content)]
peak = max(0, highest() - before)
gc.collect()
first = resident_bytes() - before
start = resident_bytes()
for _ in range(further):
    kept.append(run(content))
gc.collect()
each = (resident_bytes() - start) / max(further, 1)
arena = sum(s.arena_bytes for s in kept[0]._subgraphs) if kind in runners.OPLET else 0
print("RESULT", json.dumps([first, peak, each, arena]))
"""


def _child(kind: str, path: Path, small: Path, further: int) -> list[float] | None:
    arguments = ["-c", _CHILD, kind, os.path.abspath(path), str(further), os.path.abspath(small)]
    try:
        done = run_python(arguments, folders=[_ROOT], capture_output=True, text=True, timeout=_SECONDS)
    except TimeoutExpired:
        return None
    found = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return [float(number) for number in json.loads(found[0].removeprefix("RESULT "))] if found else None


def _small_model() -> bytes:
    from oplet import ModelBuilder

    builder = ModelBuilder()
    main = builder.add_subgraph()
    x, out = (main.add_tensor(name, "float32", [4]) for name in ("x", "out"))
    main.add_operator("ABS", [x], [out])
    main.set_inputs(x)
    main.set_outputs(out)
    return builder.to_bytes()


def memory(found: Sequence[tuple[str, bytes]], further: int = 4, tell: Callable[[str], None] = print) -> common.Section:
    """Measure the memory of every model in every runtime that is installed."""
    kinds = [kind for kind in _KINDS if runners.installed(kind)]
    section = common.Section("Memory", data={"models": {}})
    rows: list[list[str]] = []
    ratios: dict[str, dict[str, list[float]]] = {}
    arenas: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder, "model.tflite"), Path(folder, "small.tflite")
        small.write_bytes(_small_model())
        for name, content in found:
            path.write_bytes(content)
            measured = {kind: values for kind in kinds if (values := _child(kind, path, small, further))}
            section.data["models"][name] = {"bytes": len(content), **measured}
            for kind, (first, peak, each, arena) in measured.items():
                beside = [each / arena] if arena else []
                shown = [f"{value / 2**20:.2f}" for value in (first, peak, each)]
                rows.append([name, kind, *shown, *([f"{arena / 2**20:.2f}", f"{beside[0]:.2f}"] if beside else ["", ""])])
                arenas.setdefault(kind, []).extend(beside)
                for rival in ("litert", "litert-xnnpack"):
                    if rival != kind and rival in measured:
                        for what, mine, theirs in zip(_COMPARED, (first, peak, each), measured[rival]):
                            if mine > 0 and theirs > 0:
                                ratios.setdefault(what, {}).setdefault(f"{kind} / {rival}", []).append(mine / theirs)
            tell(
                f"memory of {name}: "
                + "; ".join(f"{k} {v[0] / 2**20:.1f}, further {v[2] / 2**20:.2f} MiB" for k, v in measured.items())
            )
    means = {what: {pair: common.geometric_mean(values) for pair, values in of.items()} for what, of in ratios.items()}
    section.data["means"] = means
    section.data["further / arena"] = {kind: statistics.median(values) for kind, values in arenas.items() if values}
    section.lines = [
        f"Fresh processes. `first` is what the process grew by for the first interpreter, `peak` at its highest, `further` for each of "
        f"{further} more of the same bytes; `arenas` is that in arenas of the model.",
        "",
        *common.table(["model", "", "first MiB#", "peak MiB#", "further MiB#", "arena MiB#", "arenas#"], rows),
        "",
        *(f"- {what}, geometric means: {', '.join(f'{pair} {m:.2f}' for pair, m in of.items())}" for what, of in means.items()),
        "- further, medians in arenas: "
        + ", ".join(f"{kind} {value:.2f}" for kind, value in section.data["further / arena"].items()),
    ]
    return section


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=Path)
    parser.add_argument("--least-bytes", type=int, default=100_000, help="leave out smaller models")
    parser.add_argument("--further", type=int, default=4, help="interpreters beyond the first")
    parser.add_argument("--only", nargs="+", default=(), help="parts of models' names")
    parser.add_argument("--json", type=Path, help="where the numbers go")
    arguments = parser.parse_args()
    found = list(common.models(arguments.folder, arguments.least_bytes))
    found = [(name, content) for name, content in found if not arguments.only or any(part in name for part in arguments.only)]
    section = memory(found, arguments.further)
    print(section.markdown)
    if arguments.json:
        from oplet.model.files.atomic_write import write_atomically

        write_atomically(arguments.json, json.dumps(section.data, indent=1))


if __name__ == "__main__":
    main()
