"""Batches of random graphs: each is made once, and goes through all states of a process, processes that share a folder of plans, and LiteRT."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from tests.places import ROOT
from tests.random_graphs.generating import Made, Step, generate
from tests.random_graphs.states import STATES, Difference, Outcome, differences, in_state, in_states, outcomes, plans_in, run_step

from oplet import Interpreter, Model

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
    "a variable of another size than the tensor that it is read into": "^(invoke|sign): InvokeError: the variable .* is read into .* becomes an answer",
    "rows that the weights do not divide": "^(invoke|sign): InvokeError: .* cannot be cut into rows of .* becomes an answer",
    "ATAN2 of tensors of two shapes": "^(invoke|sign|set): .* must have the same shape. Node number .* .ATAN2. failed to prepare",
    "variables of a signature that has no memory yet": "^reset: an answer becomes RuntimeError: .* tensor.data.raw != nullptr",
    "an output without elements": "^(invoke|sign): an answer becomes ValueError: Invalid tensor size",
    "an intermediate tensor that waits for the run": "^set: an answer becomes ValueError: Cannot set tensor: Tensor is unallocated",
    "STRIDED_SLICE of more axes than there are": "^(invoke|sign|set): .* becomes an answer, .* begin has .* which do not fit the",
    "lengths beyond the axis that REVERSE_SEQUENCE turns": "^(invoke|sign): InvokeError: length .* is beyond the .* becomes an answer",
    "an intermediate tensor after a run that was refused": "^set: TensorError: .* Tensor is unallocated.* becomes an answer, (Prepare|Invoke)Error:",
    "a tensor that is worked out when tensors are allocated": "^set: TensorError: .* is a constant. becomes an answer",
}
#: What is told of the first node that answers otherwise, where the reference kernels lack an operator of the model.
ROUNDED = r"^((QUANTIZE|(DEPTHWISE_)?CONV_2D|FULLY_CONNECTED) to int8 by 1|(LOGISTIC|TANH) to int16 by \d\d?)$"


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


def _first_unlike(made: Made, steps: list[Step], opened: list[partial[Any]]) -> str:
    """The first operator whose answer differs in two engines that keep all tensors, its type, and by how much."""
    both = [each(experimental_preserve_all_tensors=True) for each in opened]
    for each in both:
        for step in steps:
            with suppress(ValueError, RuntimeError):
                run_step(each, step, made.signatures)
    model, place = cast(Any, Model.from_bytes(made.data).root), steps[-1].place
    for node in model.subgraphs[place].operators:
        for index in node.outputs:
            with suppress(ValueError, RuntimeError):
                a, b = (each.get_tensor(index, place) for each in both)
                if a.dtype.kind != "O" and not _alike(a, b):
                    name = model.operator_codes[node.opcode_index].builtin_code.name
                    return f"{name} to {a.dtype} by {np.abs(a.astype(float) - b.astype(float)).max():.3g}"
    return "no node"


def _unlike_litert(made: Made, ours: list[Outcome]) -> list[tuple[int, str, str]]:
    """The steps that LiteRT answers otherwise: its number, how, and what is known of that."""
    from ai_edge_litert.interpreter import Interpreter as LiteRT
    from ai_edge_litert.interpreter import OpResolverType

    served: list[tuple[list[partial[Any]], list[Outcome], list[Outcome]]] = []
    for kernels in KERNELS:
        given = {"model_content": made.data, "experimental_op_resolver_type": OpResolverType[kernels]}
        opened = [partial(Interpreter, **given), partial(LiteRT, **given)]
        its = outcomes(opened[1], made, (ValueError, RuntimeError))
        if str(its[0]).startswith("ValueError: Didn't find op"):
            continue
        if any(_told(*each).endswith("differs") for each in zip(ours, its)):
            served.append((opened, outcomes(opened[0], made), its))  # with the numbers of these kernels
        else:
            served.append((opened, ours, its))
    found, refused, kept = [], "", ""
    for number, step in enumerate(made.steps):
        if step.what in ("allocate", "feed"):  # whoever refuses these refuses to invoke
            if step.what == "allocate":
                refused, kept = f", {ours[number]}" if isinstance(ours[number], str) else "", ""
            continue
        if step.what in ("invoke", "sign") and isinstance(ours[number], str) and not ours[number].startswith("StateError"):
            refused = f", {ours[number]}"  # what the refusals that follow hang on
        told = [_told(mine[number], each[number]) for _, mine, each in served]
        if not all(told):
            continue
        what = f"{step.what}: {told[-1]}" + refused * told[-1].startswith(
            ("StateError", "TensorError: Cannot set tensor: Tensor is unallocated")
        )
        known = next((name for name, form in KNOWN.items() if re.search(form, what, re.DOTALL)), "")
        if step.what == "set":
            kept = known
        elif what.endswith("differs") and kept:
            known = kept  # LiteRT reads what was set
        elif what.endswith("differs") and any(
            not _told(
                mine[number],
                outcomes(partial(its, experimental_preserve_all_tensors=True), made, (ValueError, RuntimeError))[number],
            )
            for (_, its), mine, _ in served
        ):
            known = "memory that LiteRT writes over too early"
        elif what.endswith("differs"):
            before = made.steps[:number]
            # LiteRT keeps what is wrong after some resizes, and does not where they come first.
            last = [each for kind in ("resize", "allocate", "feed") for each in [one for one in before if one.what == kind][-1:]]
            alone = made._replace(steps=[*last, step])
            if not _told(served[-1][1][number], outcomes(served[-1][0][1], alone, (ValueError, RuntimeError))[-1]):
                known = "what LiteRT keeps wrong after a resize"
            nodes = [_first_unlike(made, [*each, step], served[-1][0]) for each in (before, last)]
            what += f", first {' or '.join(nodes)}"
            if len(served) == 1 and any(re.search(ROUNDED, node) for node in nodes):
                known = "the rounding of the optimized kernels, which alone run the model"
        found.append((number, what, known))
    return found


def _read(path: Path) -> list[Any]:
    found: list[Any] = []
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
            if ended.returncode >= 0:
                raise RuntimeError(f"The process of {who} ended with {ended.returncode} before it had done its {count} graphs.")
            _append(folder / who, {})
    return found


def compared(first: int, count: int, litert: bool) -> tuple[list[Difference], Counter[str]]:
    """Run a batch everywhere; return what differs, and how often what was seen."""
    graphs = [generate(seed) for seed in range(first, first + count)]
    seen: Counter[str] = Counter()
    found: list[Difference] = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        _append(folder / "graphs", graphs)
        every = [_answers(who, count, folder) for who in (ONE, *PROCESSES, *([LITERT] if litert else ()))]
        seen["plans stored"] += len(list((folder / "plans").rglob("*.plan")))
    for seed, graph, *told in zip(range(first, first + count), graphs, *every):
        answers = {who: each for part in told for who, each in part.items()}
        found += [Difference(seed, who, 0, "the process ended") for who in (*STATES, *PROCESSES) if who not in answers]
        seen["LiteRT, its process ended"] += litert and LITERT not in answers
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
