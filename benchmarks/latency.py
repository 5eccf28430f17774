"""Median latencies of real models, side by side: oplet, LiteRT with XNNPACK and LiteRT without, one thread each.

    python benchmarks/latency.py FOLDER [--least-bytes N] [--rounds N] [--markdown FILE]

FOLDER holds .tflite files, or the .zip files of recorded cases with a `model.tflite` in each case's folder. Each model's runners
take turns, in processes of one thread, so that the machine's moods fall on all of them alike; believe the ratios, not the
milliseconds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Before numpy is imported: its BLAS reads this once.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np  # noqa: E402  the variables above must be set before

RUNNERS = ("oplet", "litert", "litert-xnnpack")


def models(folder: Path, least_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Every different model in the folder that is large enough, with its name."""
    seen: set[bytes] = set()
    for path in sorted(folder.iterdir()):
        if path.suffix == ".tflite":
            found = [(path.stem, path.read_bytes())]
        elif path.suffix == ".zip" and path.stem != "unrunnable":
            with zipfile.ZipFile(path) as archive:
                found = [(n.split("/")[-2], archive.read(n)) for n in archive.namelist() if n.endswith("/model.tflite")]
        else:
            continue
        for name, content in found:
            if len(content) > least_bytes and content not in seen:
                seen.add(content)
                yield name, content


def runner(kind: str, content: bytes) -> Any:
    """An interpreter with its inputs set."""
    if kind == "oplet":
        from oplet import Interpreter

        interpreter: Any = Interpreter(model_content=content, num_threads=1)
    else:
        from ai_edge_litert.interpreter import Interpreter as LiteRT
        from ai_edge_litert.interpreter import OpResolverType

        resolver = OpResolverType.AUTO if kind == "litert-xnnpack" else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        interpreter = LiteRT(model_content=content, num_threads=1, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    random = np.random.default_rng(0)
    for detail in interpreter.get_input_details():
        dtype = np.dtype(detail["dtype"])
        if dtype.kind == "f":
            value = random.random(detail["shape"]).astype(dtype)
        elif dtype.kind in "iu":
            value = random.integers(0, 2 if dtype.itemsize > 1 else 100, detail["shape"]).astype(dtype)
        else:
            value = np.zeros(detail["shape"], dtype)
        interpreter.set_tensor(detail["index"], value)
    return interpreter


def measure(content: bytes, rounds: int) -> dict[str, float]:
    """Median seconds of an invoke by runner; absent where it cannot run the model."""
    invokes: dict[str, Callable[[], None]] = {}
    for kind in RUNNERS:
        try:
            invokes[kind] = runner(kind, content).invoke
            invokes[kind]()
        except (ValueError, RuntimeError) as error:
            invokes.pop(kind, None)
            print(f"  {kind}: {str(error)[:160]}", file=sys.stderr)
    times: dict[str, list[float]] = {kind: [] for kind in invokes}
    for _ in range(rounds):
        for kind, invoke in invokes.items():
            start = time.perf_counter()
            invoke()
            times[kind].append(time.perf_counter() - start)
    return {kind: statistics.median(values) for kind, values in times.items()}


def geometric_mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values)))) if values else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--least-bytes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--markdown", type=Path, help="also write the table here")
    arguments = parser.parse_args()
    lines = [
        "| model | oplet ms | LiteRT ms | LiteRT XNNPACK ms | oplet / LiteRT | oplet / XNNPACK |",
        "|---|---|---|---|---|---|",
    ]
    ratios: dict[str, list[float]] = {"litert": [], "litert-xnnpack": []}
    for name, content in models(arguments.folder, arguments.least_bytes):
        median = measure(content, arguments.rounds)
        cells = [f"{median[kind] * 1e3:.2f}" if kind in median else "-" for kind in RUNNERS]
        for rival, values in ratios.items():
            if "oplet" in median and rival in median:
                values.append(median["oplet"] / median[rival])
                cells.append(f"{values[-1]:.2f}")
            else:
                cells.append("-")
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    means = [f"{geometric_mean(ratios[rival]):.2f}" for rival in ratios]
    lines.append(f"| geometric mean of {len(ratios['litert'])} | | | | {means[0]} | {means[1]} |")
    print(lines[-1])
    if arguments.markdown:
        arguments.markdown.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
