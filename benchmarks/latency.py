"""Latencies of models, side by side: oplet with numpy's kernels and with compiled ones, LiteRT, and other runtimes where they can run them.

    python -m benchmarks.latency FOLDER [--least-bytes N] [--rounds N] [--onnx FOLDER] [--markdown FILE]

FOLDER holds .tflite files, or the .zip files of recorded cases with a `model.tflite` in each case's folder. Each model's runners
alternate in one process with one thread, so that changes in the machine's speed affect all of them alike; ratios are those of runs in the
same round. The ratios are reliable, the milliseconds less so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import common, runners  # first: it has BLAS use one thread

import numpy as np  # isort: skip

from oplet.model.files.atomic_write import write_atomically

__all__ = ["latency", "ratio_of"]

#: The ratios that are reported: (numerator, denominator).
_PAIRS = (
    ("oplet-numpy", "litert"),
    ("oplet-numpy", "litert-xnnpack"),
    ("oplet-compiled", "litert-xnnpack"),
    ("oplet-numpy", "litert-reference"),
    ("oplet-numpy", "tflite-micro"),
    ("oplet-numpy", "onnx.reference"),
    ("oplet-compiled", "oplet-numpy"),
)


def ratio_of(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float] | None:
    """Median and quartiles of the ratios of the rounds; None if there is no round with both."""
    ratios = np.asarray(ours) / np.asarray(theirs)
    ratios = ratios[~np.isnan(ratios)]
    if not len(ratios):
        return None
    low, median, high = np.percentile(ratios, [25, 50, 75]).tolist()
    return median, low, high


def measure(
    name: str, content: bytes, rounds: int, onnx_folder: Path | None = None
) -> tuple[dict[str, list[float]], dict[str, str]]:
    """The seconds of each runner's runs, and the reasons of runners that cannot run the model."""
    invokes: dict[str, Callable[[], object]] = {}
    refused = {}
    for kind in runners.RUNNERS:
        if not runners.installed(kind):
            refused[kind] = f"{runners.RUNNERS[kind]} is not installed"
            continue
        try:
            invoke = runners.prepared(kind, name, content, onnx_folder)
            for _ in range(1 if kind in runners.SLOW else 3):
                invoke()
            invokes[kind] = invoke
        except Exception as error:  # each runtime has its own exception classes
            refused[kind] = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return common.take_turns(invokes, rounds, rare=runners.SLOW), refused


def latency(
    found: Sequence[tuple[str, bytes]], rounds: int, onnx_folder: Path | None = None, tell: Callable[[str], None] = print
) -> common.Section:
    """Measure every model."""
    section = common.Section("Latency", data={"models": {}, "means": {}, "refused": {}})
    columns = ["model", *(f"{kind} ms#" for kind in runners.RUNNERS), *(f"{a} / {b}#" for a, b in _PAIRS)]
    rows = []
    ratios: dict[tuple[str, str], list[float]] = {pair: [] for pair in _PAIRS}
    for name, content in found:
        seconds, refused = measure(name, content, rounds, onnx_folder)
        cells = [f"{np.nanmedian(seconds[kind]) * 1e3:.2f}" if kind in seconds else "-" for kind in runners.RUNNERS]
        described = {}
        for pair in _PAIRS:
            ours, theirs = pair
            ratio = ratio_of(seconds[ours], seconds[theirs]) if ours in seconds and theirs in seconds else None
            if ratio is None:
                cells.append("-")
                continue
            median, low, high = ratio
            ratios[pair].append(median)
            described[" / ".join(pair)] = ratio
            cells.append(f"{median:.3g} ({low:.3g} to {high:.3g})")
        rows.append([name, *cells])
        section.data["models"][name] = {
            "ms": {kind: float(np.nanmedian(values) * 1e3) for kind, values in seconds.items()},
            "ratios": described,
        }
        section.data["refused"][name] = refused
        tell(f"| {' | '.join(rows[-1])} |")
    means = {pair: common.geometric_mean(values) for pair, values in ratios.items()}
    section.data["means"] = {" / ".join(pair): (mean, len(ratios[pair])) for pair, mean in means.items()}
    blanks = [""] * len(runners.RUNNERS)
    rows.append(["geometric mean", *blanks, *(f"{means[p]:.3g} of {len(ratios[p])}" if ratios[p] else "-" for p in _PAIRS)])
    section.lines = [
        f"Medians of {rounds} rounds (of every fifth for {', '.join(runners.SLOW)}), one thread; ratios are of runs of the same "
        "round, with their middle halves; below 1 the first one is faster.",
        "",
        *common.table(columns, rows),
        "",
        *_reasons(section.data["refused"]),
    ]
    return section


def _reasons(refused: dict[str, dict[str, str]]) -> list[str]:
    """The reasons for missing numbers, each with all the models that it applies to."""
    models: dict[tuple[str, str], list[str]] = {}
    for model, kinds in refused.items():
        for kind, why in kinds.items():
            models.setdefault((kind, why), []).append(model)
    return [
        f"- {kind}: {why} ({'all models' if len(names) == len(refused) else ', '.join(names)})"
        for (kind, why), names in sorted(models.items())
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--least-bytes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--onnx", type=Path, help="the same models in ONNX, called NAME.onnx")
    parser.add_argument("--markdown", type=Path, help="also write the table here")
    arguments = parser.parse_args()
    found = list(common.models(arguments.folder, arguments.least_bytes))
    section = latency(found, arguments.rounds, arguments.onnx, tell=lambda line: print(line, file=sys.stderr, flush=True))
    print(section.markdown)
    if arguments.markdown:
        write_atomically(arguments.markdown, section.markdown)


if __name__ == "__main__":
    main()
