"""Shared parts of the measurements: models, inputs, alternating runs, and tables.

It must be imported before numpy, because it limits BLAS to one thread.
"""

from __future__ import annotations

import os
import statistics
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# BLAS reads these once, when numpy is imported.
for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402  the variables above must be set before
from numpy.typing import NDArray  # noqa: E402

__all__ = ["Section", "geometric_mean", "models", "random_value", "table", "take_turns"]


@dataclass
class Section:
    """The results of one measurement.

    Attributes:
        title: the heading.
        lines: the results in Markdown.
        data: the results as numbers, for JSON and for the plot.
    """

    title: str
    lines: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def markdown(self) -> str:
        return "\n".join([f"## {self.title}", "", *self.lines, ""])


def models(folder: Path, least_bytes: int) -> Iterator[tuple[str, bytes]]:
    """The distinct models in a folder that are large enough, with their names.

    The folder holds .tflite files, or .zip files of recorded cases with a `model.tflite` in each case's folder.
    """
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


def random_value(details: Mapping[str, Any], seed: int = 0) -> NDArray[Any]:
    """A random value for an input: floats in 0..1, or small integers that fit every quantized type."""
    random = np.random.default_rng(seed)
    dtype, shape = np.dtype(details["dtype"]), tuple(details["shape"])
    if dtype.kind == "f":
        return np.asarray(random.random(shape)).astype(dtype)
    if dtype.kind in "iu":
        return random.integers(0, 2 if dtype.itemsize > 1 else 100, shape).astype(dtype)
    return np.zeros(shape, dtype)


def take_turns(
    invokes: Mapping[str, Callable[[], object]],
    rounds: int,
    rare: Sequence[str] = (),
    every: int = 5,
    burst: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Run all runners in turn, round by round; returns the seconds of each, NaN for rounds in which it did not run.

    The order rotates, so that changes in the machine's speed and the state of the caches affect all runners alike.

    Args:
        rounds: the number of rounds.
        rare: slow runners, which take part in one of `every` rounds.
        burst: runs of a runner in its turn. Of several runs the first is dropped, because threads of the previous runner may still
            spin on a core; the median of the others counts.
        clock: the clock, in seconds.
    """
    names = list(invokes)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for number in range(rounds):
        for place in range(len(names)):
            name = names[(number + place) % len(names)]
            if name in rare and number % every:
                seconds[name].append(float("nan"))
                continue
            invoke = invokes[name]
            taken = []
            for _ in range(burst):
                start = clock()
                invoke()
                taken.append(clock() - start)
            seconds[name].append(statistics.median(taken[1:] or taken))
    return seconds


def geometric_mean(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values)))) if len(values) else float("nan")


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """A Markdown table; columns named "name#" hold numbers and are aligned to the right."""
    head = [column.rstrip("#") for column in columns]
    rule = ["---:" if column.endswith("#") else "---" for column in columns]
    return [f"| {' | '.join(str(cell).replace('|', '/') for cell in row)} |" for row in (head, rule, *rows)]
