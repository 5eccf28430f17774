"""Batches of random graphs: each is made once, and goes through all states of a process, processes that share a folder of plans, and LiteRT."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tests.places import ROOT
from tests.random_graphs.generating import Made, Step, generate
from tests.random_graphs.states import STATES, Difference, Outcome, differences, in_state, in_states, outcomes, plans_in, run_step

from oplet import Interpreter

__all__ = ["child", "compared"]

#: Who runs the graphs of a batch, one after the other: what the second process stores, the third and the fourth take.
PROCESSES = ("notes", "stores", "takes", "takes again")
#: Who is asked for all states of one process, and for what LiteRT answers otherwise.
ONE, LITERT = "states", "LiteRT"
#: LiteRT's reference and optimized kernels, each of which lack some operators: what one of them answers is right.
KERNELS = ("BUILTIN_REF", "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
#: The share of the largest value by which LiteRT's floats may differ.
_NEAR = 1e-3
#: What differs on purpose or by LiteRT's fault, as docs/differences.md and docs/numerics.md have it: what is told of a step.
KNOWN = {
    "a variable of another size than the tensor that it is read into": "^InvokeError: the variable .* is read into .* becomes an answer",
    "rows that the weights do not divide": "^InvokeError: .* cannot be cut into rows of .* becomes an answer",
    "SLICE into the shape that the file declares, after a resize": "^an answer becomes RuntimeError: .*Node number .* .SLICE. failed to",
}
#: What is told of the first node that answers otherwise, where the reference kernels lack an operator of the model.
ROUNDED = "^(QUANTIZE|CONV_2D|FULLY_CONNECTED) to int8 by 1$"


def _told(one: Outcome, other: Outcome) -> str:
    """How LiteRT's answer differs, "" if it does not: all refusals are alike, and integers have the same bits."""
    if isinstance(one, str) or isinstance(other, str):
        said = [each if isinstance(each, str) else "an answer" for each in (one, other)]
        return "" if isinstance(one, str) and isinstance(other, str) else " becomes ".join(said)
    for place, (a, b) in enumerate(zip(one or [], other or [], strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            return f"output {place}: {a.dtype}{list(a.shape)} becomes {b.dtype}{list(b.shape)}"
        if not _alike(a, b):
            return f"output {place} of {a.dtype} differs"
    return ""


def _alike(a: Any, b: Any) -> bool:
    if a.dtype.kind != "f":
        return np.array_equal(a, b)
    finite = np.isfinite(a) & np.isfinite(b)
    near = _NEAR * max(1.0, float(np.abs(a[finite]).max(initial=0)))
    return bool((np.isfinite(a) == np.isfinite(b)).all() and (np.abs(a[finite] - b[finite]) <= near).all())


def _first_unlike(made: Made, steps: list[Step], *both: Any) -> str:
    """The operator of the first node whose answer differs in two interpreters that keep all tensors, its type, and by how much."""
    for each in both:
        for step in steps:
            with suppress(ValueError, RuntimeError):
                run_step(each, step, made.signatures)
    for node in both[0]._get_ops_details():
        for index in node["outputs"]:
            with suppress(ValueError, RuntimeError):
                a, b = (each.get_tensor(index) for each in both)
                if not _alike(a, b):
                    return f"{node['op_name']} to {a.dtype} by {np.abs(a.astype(float) - b.astype(float)).max():.3g}"
    return "no node of the main subgraph"


def _unlike_litert(made: Made, ours: list[Outcome]) -> list[tuple[int, str, str]]:
    """The steps that LiteRT answers otherwise: its number, how, and what is known of that."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT
    from ai_edge_litert.interpreter import OpResolverType

    opened = [
        partial(LiteRT, model_content=made.data, experimental_op_resolver_type=OpResolverType[kernels]) for kernels in KERNELS
    ]
    its = [outcomes(each, made, (ValueError, RuntimeError)) for each in opened]
    served = [
        (make, each)
        for make, each in zip(opened, its)
        if made.steps and not str(each[0]).startswith("ValueError: Didn't find op")
    ]
    found = []
    for number, (step, mine) in enumerate(zip(made.steps, ours)):
        if step.what in ("allocate", "feed"):
            continue  # whoever refuses these refuses to invoke
        told = [_told(mine, each[number]) for _, each in served]
        if not all(told):
            continue
        known = next((name for name, form in KNOWN.items() if re.search(form, told[-1], re.DOTALL)), "")
        if told[-1].endswith("differs"):
            both = (
                Interpreter(model_content=made.data, experimental_preserve_all_tensors=True),
                served[-1][0](experimental_preserve_all_tensors=True),
            )
            told[-1] += ", first " + (node := _first_unlike(made, made.steps[: number + 1], *both))
            known = (
                "halves that the optimized kernels round otherwise"
                if len(served) < len(KERNELS) and re.search(ROUNDED, node)
                else ""
            )
        found.append((number, f"{step.what}: {told[-1]}", known))
    return found


def _read(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    with suppress(EOFError, FileNotFoundError), open(path, "rb") as file:
        while True:
            found.append(pickle.load(file))
    return found


def child(who: str, folder: Path) -> None:
    """Write the outcomes of a batch's graphs, or what LiteRT answers otherwise, from the first on of which there are none."""
    [graphs] = _read(folder / "graphs")
    ones = _read(folder / ONE)
    for number in range(len(_read(folder / who)), len(graphs)):
        made = graphs[number]
        if who == ONE:
            answers: dict[str, Any] = in_states(made, folder / "plans of one")
        elif who == LITERT:
            answers = {who: _unlike_litert(made, ones[number].get("first", []))}
        else:
            with plans_in(folder / "plans"):
                answers = {who: in_state(made, who)}
        _append(folder / who, answers)


def _append(path: Path, value: Any) -> None:
    with open(path, "ab") as file:
        file.write(pickle.dumps(value))


def _answers(who: str, count: int, folder: Path) -> list[dict[str, Any]]:
    """What a process of its own answers to a batch, nothing to a graph within which it ended."""
    while len(found := _read(folder / who)) < count:
        command = [sys.executable, "-m", "tests.random_graphs", "--child", who, str(folder)]
        ended = subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if len(_read(folder / who)) < count:
            if not ended.returncode:
                raise RuntimeError(f"The process of {who} ended after {len(found)} of {count} graphs as if it had done them all.")
            _append(folder / who, {})
    return found


def compared(first: int, count: int, litert: bool) -> tuple[list[Difference], Counter[str]]:
    """Run a batch everywhere; return what differs, and how often what was seen."""
    graphs = [generate(seed) for seed in range(first, first + count)]
    seen: Counter[str] = Counter()
    found: list[Difference] = []
    chains = [(ONE, *([LITERT] if litert else [])), PROCESSES]
    with tempfile.TemporaryDirectory() as made, ThreadPoolExecutor(len(chains)) as pool:
        folder = Path(made)
        _append(folder / "graphs", graphs)
        parts = pool.map(lambda chain: [_answers(who, count, folder) for who in chain], chains)
        every = [each for part in parts for each in part]
        seen["plans stored"] += len(list((folder / "plans").rglob("*.plan")))
    for seed, graph, *told in zip(range(first, first + count), graphs, *every):
        answers = {who: each for part in told for who, each in part.items()}
        asked = (*STATES, *PROCESSES, *([LITERT] if litert else ()))
        found += [Difference(seed, who, 0, "the process ended") for who in asked if who not in answers]
        seen.update(f"graphs, {who}" for who in answers)
        for step, what, known in answers.pop(LITERT, ()):
            if known:
                seen[f"LiteRT, {known}"] += 1
            else:
                found.append(Difference(seed, LITERT, step, what))
        if {"numpy", "first"} <= answers.keys():
            found += differences(seed, graph, answers)
            seen.update(f"steps {each.partition(':')[0] if isinstance(each, str) else 'answered'}" for each in answers["first"])
    return found, seen
