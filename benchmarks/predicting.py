"""Throughput of many inputs: `Predictor.map` with one and two workers, beside loops over LiteRT's interpreters in as many threads.

    python -m benchmarks.predicting FOLDER [--models NAME ...] [--images N] [--rounds N] [--workers N]

FOLDER holds .tflite files, or the .zip files of recorded cases; models are those whose name contains a NAME. The images are divided into
rounds, in each of which all ways take turns on the same images; ratios are medians of those of one round. CPU time is that of the process:
on a busy machine it says more than the wall clock. Every result is compared with that of oplet's serial loop, bit for bit.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import common, runners  # first: it has BLAS use one thread

import numpy as np  # isort: skip

__all__ = ["throughput"]

_MODELS = ("mobilenet_v2_quantized", "mp_face_detection_short_range", "mp_hand_landmark_lite")

#: Runs the model on images, and returns the outputs of each.
Way = Callable[[Any], "list[list[Any]]"]


def loop(interpreter: Any, images: Any) -> list[list[Any]]:
    """The outputs of one interpreter for each image."""
    given = interpreter.get_input_details()[0]["index"]
    made = [detail["index"] for detail in interpreter.get_output_details()]
    results = []
    for image in images:
        interpreter.set_tensor(given, image[None])
        interpreter.invoke()
        results.append([interpreter.get_tensor(index)[0] for index in made])
    return results


def allocated(kind: str, content: bytes) -> Any:
    interpreter = runners.make(kind, content)
    interpreter.allocate_tensors()
    return interpreter


def ways(content: bytes, workers: Sequence[int]) -> dict[str, Way]:
    """The ways of running a model on images, by name."""
    from oplet import Predictor

    predict = Predictor(content)
    kind = "oplet-compiled" if runners.installed("oplet-compiled") else "oplet-numpy"
    serial = allocated(kind, content)
    found: dict[str, Way] = {"Interpreter loop": lambda images: loop(serial, images)}
    for count in workers:

        def mapped(images: Any, count: int = count) -> list[list[Any]]:
            return [list(result.values()) for result in predict.map(images, count)]

        found[f"Predictor.map, {count}"] = mapped
    if runners.installed("litert-xnnpack"):
        for count in workers:
            interpreters = [allocated("litert-xnnpack", content) for _ in range(count)]
            pool = ThreadPoolExecutor(count)

            def looped(images: Any, interpreters: list[Any] = interpreters, pool: ThreadPoolExecutor = pool) -> list[list[Any]]:
                parts = pool.map(loop, interpreters, np.array_split(images, len(interpreters)))
                return [result for part in parts for result in part]

            found[f"LiteRT loops, {count}"] = looped
    return found


def throughput(
    found: Sequence[tuple[str, bytes]], images: int, rounds: int, workers: Sequence[int], tell: Callable[[str], None]
) -> common.Section:
    """Images per second and CPU milliseconds per image of each way."""
    rows: list[list[object]] = []
    data: dict[str, Any] = {}
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    for name, content in found:
        tell(name)
        each = ways(content, workers)
        detail = allocated("oplet-numpy", content).get_input_details()[0]
        wall: dict[str, list[float]] = {way: [] for way in each}
        cpu: dict[str, list[float]] = {way: [] for way in each}
        per_round = -(-images // rounds)
        equal = True
        warm = np.stack([common.random_value(detail)[0]] * 4)
        for run in each.values():
            run(warm)
        for number in range(rounds):
            batch = np.stack([common.random_value(detail, number * per_round + i)[0] for i in range(per_round)])
            outputs: dict[str, list[list[Any]]] = {}
            names = list(each)
            for place in range(len(names)):
                way = names[(number + place) % len(names)]
                start, used = time.perf_counter(), time.process_time()
                outputs[way] = each[way](batch)
                wall[way].append(time.perf_counter() - start)
                cpu[way].append(time.process_time() - used)
            expected = outputs["Interpreter loop"]
            for way, got in outputs.items():
                if way.startswith("Predictor"):
                    pairs = zip(expected, got)
                    equal = equal and all(a.tobytes() == np.asarray(b).tobytes() for x, y in pairs for a, b in zip(x, y))
        data[name] = {"wall": wall, "cpu": cpu, "equal": equal, "images": per_round * rounds, "load": load}
        for way in each:
            count = way.rpartition(", ")[2]
            rival = f"LiteRT loops, {count}"
            one = f"{way.rpartition(', ')[0]}, {workers[0]}"
            rows.append(
                [
                    name,
                    way,
                    f"{per_round / statistics.median(wall[way]):.0f}",
                    f"{statistics.median(cpu[way]) / per_round * 1e3:.2f}",
                    _ratio(wall.get(one), wall[way]) if way != one else "",
                    _ratio(wall.get(rival), wall[way]) if way.startswith("Predictor") else "",
                    _ratio(cpu[way], cpu.get(rival)) if way.startswith("Predictor") else "",
                    ("yes" if equal else "NO") if way.startswith("Predictor") else "",
                ]
            )
    lines = [
        f"{rounds} rounds; the load of the machine was {load:.1f} on {os.cpu_count()} cores.",
        "",
        *common.table(
            [
                "model",
                "way, workers",
                "images/s#",
                "CPU ms#",
                "times one worker#",
                "times LiteRT#",
                "CPU of LiteRT's#",
                "bits equal",
            ],
            rows,
        ),
    ]
    return common.Section("Many inputs", lines, {"models": data})


def _ratio(a: list[float] | None, b: list[float] | None) -> str:
    return "" if not a or not b else f"{statistics.median([x / y for x, y in zip(a, b)]):.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.predicting", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+", default=_MODELS, metavar="NAME", help="parts of the models' names")
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--workers", type=int, nargs="+", default=(1, 2))
    arguments = parser.parse_args()
    found = [
        (name, content) for name, content in common.models(arguments.folder, 0) if any(part in name for part in arguments.models)
    ]
    section = throughput(
        found, arguments.images, arguments.rounds, arguments.workers, lambda text: print(text, file=sys.stderr, flush=True)
    )
    sys.stdout.write(section.markdown)


if __name__ == "__main__":
    main()
