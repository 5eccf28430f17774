"""Random graphs in processes of their own, which share a folder of plans, and in LiteRT: python -m tests.random_graphs.elsewhere COUNT."""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from tests.places import ROOT
from tests.random_graphs.generating import Made, generate
from tests.random_graphs.states import Outcome, differ, outcomes, run_step

__all__ = ["compared"]

#: Who runs the graphs of a batch, one after the other: what the second process stores, the third and the fourth take.
PROCESSES = ("notes", "stores", "takes", "takes again")
LITERT = "LiteRT"
#: Graphs of a batch.
BATCH = 200
#: The share of the largest value by which LiteRT's floats may differ, and its quantized values.
_NEAR, _STEPS = 1e-3, 2


def litert_outcomes(made: Made, resolver: Any) -> list[Outcome]:
    """What each step answers in LiteRT with some of its kernels: None, arrays, or "refused"."""
    from ai_edge_litert.interpreter import Interpreter

    found: list[Outcome] = []
    try:
        interpreter = Interpreter(model_content=made.data, experimental_op_resolver_type=resolver)
    except (ValueError, RuntimeError):
        return ["refused"]
    for step in made.steps:
        try:
            found.append(run_step(interpreter, step, made.signatures))
        except (ValueError, RuntimeError):
            found.append("refused")
    return found


def _of_both_kernels(made: Made) -> list[list[Outcome]]:
    """The outcomes of LiteRT's optimized kernels and of its reference kernels, each of which lack some operators."""
    from ai_edge_litert.interpreter import OpResolverType

    return [
        litert_outcomes(made, each) for each in (OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES, OpResolverType.BUILTIN_REF)
    ]


def _child(who: str, first: int, count: int, path: str) -> None:
    with warnings.catch_warnings(), open(path, "wb") as file:
        warnings.simplefilter("ignore", RuntimeWarning)
        for seed in range(first, first + count):
            made = generate(seed)
            pickle.dump(_of_both_kernels(made) if who == LITERT else outcomes(made, "first"), file)
            file.flush()


def _answers(who: str, first: int, count: int, folder: Path) -> list[list[Outcome]]:
    """The outcomes of a batch in a process of its own; of fewer graphs if it ended within one."""
    path = folder / "answers"
    environment = {**os.environ, "OPLET_CACHE_DIR": str(folder), "OPLET_PLANS": ""}
    command = [sys.executable, "-m", "tests.random_graphs.elsewhere", "--child", who, str(first), str(count), str(path)]
    ended = subprocess.run(command, cwd=ROOT, env=environment, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = []
    with open(path, "rb") as file:
        while len(found) < count:
            try:
                found.append(pickle.load(file))
            except EOFError:
                break
    if len(found) < count and not ended.returncode:
        raise RuntimeError(f"The process of {who} ended after {len(found)} of {count} graphs as if it had done them all.")
    return found


def _unlike_litert(ours: list[Outcome], its: list[Outcome]) -> tuple[int, str]:
    """The first step that LiteRT answers otherwise, and how; "" if there is none."""
    for number, (mine, other) in enumerate(zip(ours, its)):
        if (refused := isinstance(mine, str)) != isinstance(other, str):
            return number, f"{mine if refused else 'an answer'} is {'an answer' if refused else 'refused'} there"
        if refused or mine is None:
            continue
        for place, (a, b) in enumerate(zip(mine, other, strict=True)):
            a, b = np.asarray(a), np.asarray(b)
            if (a.shape, a.dtype) != (b.shape, b.dtype):
                return number, f"output {place}: {a.dtype}{list(a.shape)} is {b.dtype}{list(b.shape)} there"
            if not _alike(a, b):
                return number, f"output {place} of {a.dtype} differs"
    return 0, ""


def _alike(a: Any, b: Any) -> bool:
    if a.dtype.kind != "f":
        return bool((np.abs(a.astype(np.int64) - b.astype(np.int64)) <= (_STEPS if a.dtype == np.int8 else 0)).all())
    finite = np.isfinite(a) & np.isfinite(b)
    near = _NEAR * max(1.0, float(np.abs(a[finite]).max(initial=0)))
    return bool((np.isfinite(a) == np.isfinite(b)).all() and (np.abs(a[finite] - b[finite]) <= near).all())


def compared(first: int, count: int, litert: bool) -> tuple[list[str], Counter[str]]:
    """Run a batch everywhere; return what differs, and how many steps were answered and refused where."""
    seen: Counter[str] = Counter()
    told: list[str] = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        answers = {who: _answers(who, first, count, folder) for who in PROCESSES + ((LITERT,) if litert else ())}
        seen["plans stored"] += len(list(folder.rglob("*.plan")))
    base = answers[PROCESSES[0]]
    for who, all_of_it in answers.items():
        if len(all_of_it) < count:
            told.append(f"{first + len(all_of_it)} {who}, the process ended")
        for number, (one, other) in enumerate(zip(base, all_of_it)):
            graph = generate(first + number)
            seen[f"graphs, {who}"] += 1
            if who == LITERT:
                found = [_unlike_litert(one, its) for its in other]
                step, what = found[0]
                if all(what for _, what in found):
                    told.append(f"{first + number} {who}, step {step}, {graph.steps[step].what}: {what}")
                continue
            for answer in other:
                seen[f"steps {answer if isinstance(answer, str) else 'answered'}"] += 1
            for step, (a, b) in enumerate(zip(one, other, strict=True)):
                if what := differ(a, b, None):
                    told.append(f"{first + number} {who}, step {step}, {graph.steps[step].what}: {what}")
                    break
    return told, seen


def main() -> int:
    """Run graphs in batches; 1 if one answers otherwise in a process or in LiteRT."""
    if sys.argv[1:2] == ["--child"]:
        _child(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
        return 0
    parser = argparse.ArgumentParser(prog="python -m tests.random_graphs.elsewhere", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="the most seconds; fewer graphs are run then")
    parser.add_argument("--litert", action="store_true", help="compare with LiteRT too")
    given = parser.parse_args()
    ends = time.monotonic() + given.seconds
    seen: Counter[str] = Counter()
    bad = 0
    for first in range(given.first, given.first + given.count, BATCH):
        if time.monotonic() > ends:
            break
        told, counts = compared(first, min(BATCH, given.first + given.count - first), given.litert)
        seen += counts
        bad += len(told)
        sys.stdout.write("".join(f"{each}\n" for each in told))
        sys.stdout.flush()
    sys.stdout.write("".join(f"{what}: {count}\n" for what, count in sorted(seen.items())) + f"{bad} differences\n")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
