"""Runs all measurements, and writes Markdown, JSON and a plot.

    python -m benchmarks FOLDER [--out FOLDER] [--rounds N] [--only SECTION ...] [--onnx FOLDER]
    python -m benchmarks slow [--help]
    python -m benchmarks sequences [--help]

FOLDER holds .tflite files, or the .zip files of recorded cases. Run it from the repository's root, on an idle machine. Runtimes
that are not installed are left out, with a note; see benchmarks/requirements.txt. `slow` measures recorded cases of one operator,
`sequences` small sequence nets that it makes.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks import common, sequences, slow  # first: it has BLAS use one thread
from benchmarks.dispatch import dispatch
from benchmarks.engines import engines
from benchmarks.latency import latency
from benchmarks.memory import memory
from benchmarks.native import can_run, native
from benchmarks.plot import plot_ratios
from benchmarks.resources import arena, loading, start
from benchmarks.scaling import batches, threads
from oplet.model.files.atomic_write import write_atomically
from oplet_tools.processes import run_python

_HERE = Path(__file__).resolve().parent
#: Measurements that run as separate programs.
_PROGRAMS = ("opening", "building", "starting")
_SECTIONS = ("latency", "start", "loading", "arena", "memory", "dispatch", "native", "batch", "threads", "engines", *_PROGRAMS)
_PACKAGES = ("oplet-core", "oplet-compiled-ops", "numpy", "openvino", "ai-edge-litert", "tflite-micro", "onnx")


def main() -> None:
    if sys.argv[1:2] == ["slow"]:  # a folder of this name is ./slow
        slow.main(sys.argv[2:])
        return
    if sys.argv[1:2] == ["sequences"]:
        sequences.main(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("benchmark-results"), help="where results.md, .json and ratios.png go")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--least-bytes", type=int, default=100_000, help="leave out smaller models")
    parser.add_argument("--only", nargs="+", choices=_SECTIONS, default=_SECTIONS, metavar="SECTION", help=", ".join(_SECTIONS))
    parser.add_argument("--onnx", type=Path, help="the same models in ONNX, called NAME.onnx")
    parser.add_argument("--threads", type=int, nargs="+", default=(1, 2))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    found = list(common.models(arguments.folder, arguments.least_bytes))
    rounds = arguments.rounds
    made = {
        "latency": lambda: latency(found, rounds, arguments.onnx, tell),
        "start": lambda: start(found, max(rounds // 10, 2), tell),
        "loading": lambda: loading(found, rounds),
        "arena": lambda: arena(found),
        "memory": lambda: memory(found, tell=tell),
        "dispatch": lambda: dispatch(rounds=rounds * 5),
        "native": lambda: native(rounds=rounds * 5),
        "batch": lambda: batches((1, 2, 4, 8, 16), rounds),
        "threads": lambda: threads(found, arguments.threads, rounds, tell),
        "engines": lambda: engines(found, arguments.threads, rounds, tell),
    }
    report, data = [f"# Measurements\n\n{_machine()}\n"], {}
    for name in arguments.only:
        tell(f"# {name}")
        if name == "native" and not can_run():
            continue
        if name in _PROGRAMS:
            if not (_HERE / f"{name}.py").exists():
                continue
            section = _program(name)
        else:
            section = made[name]()
        data[name] = section.data
        if name == "latency":
            if plot_ratios(section.data["models"], arguments.out / "ratios.png"):
                section.lines += ["", "![ratios](ratios.png)"]
            else:
                section.lines += ["", "There is no picture: matplotlib is not installed."]
        report.append(section.markdown)
        write_atomically(arguments.out / "results.md", "\n".join(report))
        write_atomically(arguments.out / "results.json", json.dumps(data, indent=1))
    print("\n".join(report))


def tell(line: str) -> None:
    """Print the progress."""
    print(line, file=sys.stderr, flush=True)


def _program(name: str) -> common.Section:
    done = run_python([str(_HERE / f"{name}.py")], folders=[_HERE.parent], capture_output=True, text=True)
    said = done.stdout if not done.returncode else done.stdout + done.stderr
    return common.Section(name.capitalize(), ["```", said.rstrip(), "```"], {"said": said})


def _machine() -> str:
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    return f"{platform.system()} {platform.machine()}, Python {platform.python_version()}; {', '.join(found)}."


if __name__ == "__main__":
    main()
