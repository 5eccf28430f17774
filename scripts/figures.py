"""Figures in the documentation (sizes, times, ratios): measured here, stored in docs/figures.json, and filled into the pages.

usage: python -m scripts.figures [--sizes] [--measure] [--speed] [--plain] [--busy] [--models FOLDER] [--rounds N]

Without options, the pages are filled from the file. --measure measures sizes, builds and starts again, --speed latencies relative to
LiteRT's, which takes minutes, --plain those of what README's own line installs, in time of the processor; FOLDER holds the recorded cases of
real models. Where other processes keep the cores busy, times are refused: figures of such a machine are of its load (--busy measures them
all the same, and the page tells the load). A page marks a figure as

    <!-- figure: NAME -->what stands here is replaced<!-- end -->

and `docs/figures.md` is generated entirely. tests/repository/test_figures.py fails if pages and file disagree. All times are medians of alternating runs, and ratios are
those of runs in the same round.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import sys
import tempfile
import time
import zipfile
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from scripts.figures_page import FIGURES, figures_page

__all__ = ["FILE", "PAGE", "fill", "main", "marked_pages", "sizes"]

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "docs" / "figures.json"
PAGE = ROOT / "docs" / "figures.md"
REAL = ROOT.parent / "shared" / "conformance" / "real"

_MARK = re.compile(r"(<!-- figure: ([\w-]+) -->)(.*?)(<!-- end -->)", re.DOTALL)
_PACKAGES = ("oplet-core", "oplet-compiled-ops", "numpy", "openvino", "ai-edge-litert")
#: Models of tflite-micro with three fully connected layers: their names on the pages, and those of their recorded cases.
_SMALL = {"float32": "tflm_hello_world_float", "int8": "tflm_hello_world_int8"}
#: Least size of a real model, in bytes.
_LEAST_BYTES = 100_000


def marked_pages() -> list[Path]:
    """The pages that have figures."""
    pages = [
        path for pattern in ("*.md", "docs/*.md", "core/*.md", "plugins/*/*.md", "benchmarks/*.md") for path in ROOT.glob(pattern)
    ]
    return sorted(path for path in pages if _MARK.search(path.read_text("utf-8")))


def fill(text: str, figures: Mapping[str, Any]) -> str:
    """A page with its figures filled in.

    Raises:
        KeyError: the page names a figure that does not exist.
    """
    return _MARK.sub(lambda found: found[1] + FIGURES[found[2]](figures) + found[4], text)


def sizes(models: Path, folder: Path) -> dict[str, Any]:
    """Sizes of wheels in bytes: of every package, and of builds for small models."""
    from hatchling.builders.wheel import WheelBuilder

    from oplet import PluginManager
    from oplet_build.building.build_program import build_program
    from oplet_build.building.build_wheel import build_wheel

    whole = {}
    for source in [ROOT / "core", *sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))]:
        [wheel] = WheelBuilder(str(source)).build(directory=str(folder / "whole"), versions=["standard"])
        whole[Path(wheel).name.partition("-")[0].replace("_", "-")] = Path(wheel).stat().st_size
    builds, programs = {}, {}
    for name, case in _SMALL.items():
        model = _model(models, case, folder)
        plugins = PluginManager(load=["oplet-builtin-ops"])
        path = build_wheel([model], "my_app_ops", folder / name, plugins=plugins).path
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
        packed = {entry.filename: entry.compress_size for entry in entries}
        licences = sum(size for file, size in packed.items() if "/licenses/" in file)
        code = sum(size for file, size in packed.items() if ".dist-info/" not in file)
        size = path.stat().st_size
        builds[name] = {"bytes": size, "licences": licences, "frame": size - licences - code}
        programs[name] = {
            kind: build_program(
                [model], "my_app", folder / f"{name}-{kind}.pyz", with_models=True, bytecode=kind == "bytecode", plugins=plugins
            )
            .path.stat()
            .st_size
            for kind in ("bytecode", "no_bytecode")
        }
    return {"wheels": whole, "builds": builds, "programs": programs}


def _model(models: Path, case: str, folder: Path) -> Path:
    with zipfile.ZipFile(models / "tflm_models.zip") as archive:
        target = folder / f"{case}.tflite"
        target.write_bytes(archive.read(f"{case}/model.tflite"))
    return target


def _builds(models: Path, folder: Path) -> dict[str, Any]:
    """The reports of `oplet build` for the small float model, as a wheel of kernels and as a program."""
    from oplet import PluginManager
    from oplet_build.building import report
    from oplet_build.building.build_program import build_program
    from oplet_build.building.build_wheel import build_wheel

    report._ROUNDS = 11
    model = _model(models, _SMALL["float32"], folder)
    plugins = PluginManager(load=["oplet-builtin-ops"])
    wheel = build_wheel([model], "my_app_ops", folder / "kernels", plugins=plugins)
    program = build_program([model], "my_app", folder / "app.pyz", with_models=True, plugins=plugins)
    told = {
        "wheel": report.make_report(wheel, plugins),
        "program": report.make_report(program, plugins, model=str(model)),
    }
    return {kind: {"rows": each.rows(), "compared": each.compared} for kind, each in told.items()}


def _starts(models: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """Times from process start to the small float model's answer, for several runners."""
    from benchmarks import starting

    os.environ["OPLET_PLUGINS"] = "builtin_ops"  # the same kernels for all runners, whatever is installed
    runners = starting.commands(_model(models, _SMALL["float32"], folder), folder)
    times = starting.measure(runners, folder, rounds)
    del os.environ["OPLET_PLUGINS"]
    return {
        runner: {
            "ms": round(statistics.median(seconds) * 1e3),
            **{
                f"by_{rival}": round(statistics.median(a / b for a, b in zip(seconds, times[rival], strict=True)), 2)
                for rival in ("litert", "oplet")
            },
        }
        for runner, seconds in times.items()
    }


def _speed(models: Path, rounds: int) -> dict[str, Any]:
    """Ratios of latencies on one thread, by model; runners that cannot run a model are left out."""
    from benchmarks import common, engines, runners
    from benchmarks.latency import ratio_of

    from oplet import Interpreter, load_delegate

    pairs = (
        ("oplet-numpy", "litert"),
        ("oplet-compiled", "litert-xnnpack"),
        ("openvino", "litert-xnnpack"),
        ("auto", "litert-xnnpack"),
    )
    found: dict[str, dict[str, list[float]]] = {" / ".join(pair): {} for pair in pairs}
    with tempfile.TemporaryDirectory() as cache:
        os.environ["OPLET_CACHE_DIR"] = cache  # remembered choices of `auto` may be outdated
        for name, content in common.models(models, _LEAST_BYTES):
            calls = {}
            for kind in ("oplet-numpy", "oplet-compiled", "litert", "litert-xnnpack", "openvino", "auto"):
                try:
                    if kind in ("openvino", "auto"):
                        delegates = "auto:max_seconds=10" if kind == "auto" else [load_delegate(kind)]
                        made = engines._call(Interpreter(model_content=content, num_threads=1, experimental_delegates=delegates))
                    else:
                        made = runners.prepared(kind, name, content)
                    made()
                    calls[kind] = made
                except Exception as error:  # each runtime has its own exception classes
                    print(f"{name}: {kind}: {' '.join(str(error).split())[:120]}", file=sys.stderr)
            seconds = common.take_turns(calls, rounds, burst=3)
            for ours, theirs in pairs:
                ratio = ratio_of(seconds[ours], seconds[theirs]) if {ours, theirs} <= seconds.keys() else None
                if ratio is not None:
                    found[f"{ours} / {theirs}"][name] = [round(each, 3) for each in ratio]
            print(name, {pair: each.get(name) for pair, each in found.items()}, file=sys.stderr, flush=True)
        del os.environ["OPLET_CACHE_DIR"]
    return {"rounds": rounds, "models": found}


def _plain(models: Path, rounds: int) -> dict[str, Any]:
    """Ratios, by model, of what a thread needs of the processor with the numpy kernels alone, as README's first line installs them, and with
    LiteRT as it comes: time of the processor, which other processes hardly change.
    """
    from benchmarks import common, runners
    from benchmarks.latency import ratio_of

    found: dict[str, list[float]] = {}
    for name, content in common.models(models, _LEAST_BYTES):
        try:
            calls = {kind: runners.prepared(kind, name, content) for kind in ("oplet-numpy", "litert-xnnpack")}
            for call in calls.values():
                call()
        except Exception as error:  # each runtime has its own exception classes
            print(f"{name}: {' '.join(str(error).split())[:120]}", file=sys.stderr)
            continue
        seconds = common.take_turns(calls, rounds, burst=3, clock=time.thread_time)
        ratio = ratio_of(seconds["oplet-numpy"], seconds["litert-xnnpack"])
        if ratio is not None:
            found[name] = [round(each, 3) for each in ratio]
        print(name, ratio, file=sys.stderr, flush=True)
    return {"rounds": rounds, "models": found}


def _too_busy() -> str:
    """Why times are not to be measured now; "" if they may be."""
    load, cores = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0, os.cpu_count() or 1
    if load <= cores:
        return ""
    return (
        f"{load:.0f} processes want to run on {cores} cores, so that times would be of them too; try again later, or with --busy"
    )


def _circumstances() -> dict[str, Any]:
    """The circumstances of the measurement: date, machine, versions."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    processor = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file() and (found := re.search(r"^model name\s*: (.+)$", cpuinfo.read_text(), re.MULTILINE)):
        processor = found[1]
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "machine": f"{platform.system()}, {processor}, {os.cpu_count()} cores",
        "load": round(os.getloadavg()[0]) if hasattr(os, "getloadavg") else -1,
        "python": platform.python_version(),
        "versions": versions,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the options ask for, and fill the pages."""
    parser = argparse.ArgumentParser(prog="python -m scripts.figures", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--measure", action="store_true", help="measure sizes, builds and starts anew")
    parser.add_argument("--sizes", action="store_true", help="measure sizes anew, which no load of the machine changes")
    parser.add_argument("--speed", action="store_true", help="measure latencies anew")
    parser.add_argument("--plain", action="store_true", help="measure what README's line installs beside LiteRT as it comes")
    parser.add_argument("--busy", action="store_true", help="measure times however busy the machine is")
    parser.add_argument("--models", type=Path, default=REAL, help="the recorded cases of real models")
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args(arguments)
    if (given.measure or given.speed or given.plain) and not given.busy and (why := _too_busy()):
        print(why, file=sys.stderr)
        return 1
    figures: dict[str, Any] = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    with tempfile.TemporaryDirectory(prefix="oplet-figures-") as name:
        folder = Path(name)
        if given.measure or given.sizes:
            figures["sizes"] = {**_circumstances(), **sizes(given.models, folder)}
        if given.measure:
            figures["times"] = {
                **_circumstances(),
                "builds": _builds(given.models, folder),
                "starts": _starts(given.models, folder, given.rounds),
            }
    if given.speed:
        figures["speed"] = {**_circumstances(), **_speed(given.models, given.rounds)}
    if given.speed or given.plain:
        figures["plain"] = {**_circumstances(), **_plain(given.models, given.rounds)}
    FILE.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n", "utf-8")
    figures = json.loads(FILE.read_text("utf-8"))  # read back, so that the order of keys is that of the file
    missing = {"sizes", "times", "speed", "plain"} - set(figures)
    if missing:
        print(f"{FILE.name} has no {', '.join(sorted(missing))} yet, so that no page is filled", file=sys.stderr)
        return 1
    PAGE.write_text(figures_page(figures), "utf-8")
    for page in marked_pages():
        page.write_text(fill(page.read_text("utf-8"), figures), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
