"""Delegates, and `auto`, which chooses among them, compared with LiteRT and XNNPACK.

    python -m benchmarks.engines FOLDER [--least-bytes N] [--rounds N] [--threads N ...]

A call is what a program does: `set_tensor` of every input, `invoke`, `get_tensor` of every output. The engines alternate in bursts of several
calls, because threads of the previous engine may still spin on a core. The time that `auto` takes to measure engines does not count.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import common, runners  # first: it has BLAS use one thread
from benchmarks.latency import ratio_of

import numpy as np  # isort: skip

__all__ = ["engines"]

_RIVAL = "litert-xnnpack"
#: Calls in a burst.
_BURST = 6
#: oplet's engines, and the distributions that they need.
_ENGINES = {"litert": "oplet-litert-delegate", "openvino": "oplet-openvino-delegate", "auto": "oplet"}


def _call(interpreter: Any) -> Callable[[], object]:
    """A callable that sets the inputs, runs the model, and reads the outputs."""
    interpreter.allocate_tensors()
    values = [(detail["index"], common.random_value(detail)) for detail in interpreter.get_input_details()]
    outputs = [detail["index"] for detail in interpreter.get_output_details()]

    def call() -> None:
        for index, value in values:
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        for index in outputs:
            interpreter.get_tensor(index)

    for _ in range(3):
        call()
    return call


def _engine(name: str, content: bytes, num_threads: int) -> tuple[Callable[[], object], str]:
    """A call of one engine, and the name of what runs the model in it."""
    from oplet import Interpreter, load_delegate

    delegates: Any = "auto" if name == "auto" else [load_delegate(name)]
    interpreter = Interpreter(model_content=content, num_threads=num_threads, experimental_delegates=delegates)
    if interpreter.choice is not None:
        return _call(interpreter), str(interpreter.choice.candidate)
    reports = interpreter.delegation_reports()
    return _call(interpreter), f"{sum(sum(map(len, r.partitions)) for r in reports)} of {sum(r.nodes for r in reports)} nodes"


def engines(
    found: Sequence[tuple[str, bytes]], counts: Sequence[int], rounds: int, tell: Callable[[str], None] = print
) -> common.Section:
    """Measure every model with every number of threads."""
    names = [name for name, package in _ENGINES.items() if runners.is_installed(package)]
    rows: list[list[str]] = []
    data: dict[str, Any] = {"models": {}, "means": {}}
    ratios: dict[tuple[str, int], list[float]] = {}
    for name, content in found:
        for count in counts:
            row, described = _measure(name, content, count, names, rounds)
            rows.append(row)
            data["models"].setdefault(name, {})[count] = described
            for engine, each in described.items():
                if each.get("ratio"):
                    ratios.setdefault((engine, count), []).append(each["ratio"][0])
            tell(f"| {' | '.join(row)} |")
    for (engine, count), values in ratios.items():
        summary = (common.geometric_mean(values), max(values), len(values))
        data["means"][f"{engine}, {count} threads"] = summary
    columns = ["model", "threads#", f"{_RIVAL} ms#"]
    columns += [column for name in names for column in (f"{name} ms#", f"{name} / {_RIVAL}#", f"{name} runs")]
    lines = [
        f"Medians of {rounds} rounds of whole calls, a turn being {_BURST} calls of which the first does not count; ratios are of turns of the same round, with their middle halves, and the "
        "median of what a call takes longer in microseconds; below 1 oplet is faster.",
        "",
        *common.table(columns, rows),
        "",
        *(
            f"- {name}: geometric mean {mean:.3f}, slowest {worst:.3f}, of {number}"
            for name, (mean, worst, number) in data["means"].items()
        ),
    ]
    return common.Section("Engines", lines, data)


def _measure(
    name: str, content: bytes, count: int, names: Sequence[str], rounds: int
) -> tuple[list[str], dict[str, dict[str, Any]]]:
    calls: dict[str, Callable[[], object]] = {}
    runs: dict[str, str] = {}
    for engine in (_RIVAL, *names):
        try:
            if engine == _RIVAL:
                calls[engine] = _call(runners.make(engine, content, count))
            else:
                calls[engine], runs[engine] = _engine(engine, content, count)
        except Exception as error:  # each engine has classes of its own
            runs[engine] = " ".join(str(error).split())[:120]
    seconds = common.take_turns(calls, rounds, burst=_BURST)
    medians = {engine: float(np.median(values)) * 1e3 for engine, values in seconds.items()}
    row = [name, str(count), f"{medians[_RIVAL]:.3f}" if _RIVAL in medians else "-"]
    described: dict[str, dict[str, Any]] = {}
    for engine in names:
        ratio = ratio_of(seconds[engine], seconds[_RIVAL]) if {engine, _RIVAL} <= seconds.keys() else None
        each = described[engine] = {"runs": runs.get(engine, ""), "ms": medians.get(engine), "ratio": ratio}
        cell = "-"
        if ratio is not None:
            more = float(np.median(np.asarray(seconds[engine]) - np.asarray(seconds[_RIVAL]))) * 1e6
            each["more"] = more
            cell = f"{ratio[0]:.3f} ({ratio[1]:.3f} to {ratio[2]:.3f}), {more:+.0f} us"
        row += [f"{medians[engine]:.3f}" if engine in medians else "-", cell, runs.get(engine, "")]
    return row, described


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--least-bytes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--threads", type=int, nargs="+", default=(1, 2))
    arguments = parser.parse_args()
    found = list(common.models(arguments.folder, arguments.least_bytes))
    tell = lambda line: print(line, file=sys.stderr, flush=True)  # noqa: E731
    print(engines(found, arguments.threads, arguments.rounds, tell).markdown)


if __name__ == "__main__":
    main()
