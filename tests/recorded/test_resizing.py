"""A resize leaves nothing behind: an interpreter that ran other shapes gives what a fresh one and LiteRT give."""

from __future__ import annotations

import re
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.differential.harness import RESOLVERS, Case, LiteRT, difference
from tests.lifecycle.ways import FEW, Way, installed
from tests.recorded_cases import GROUPS, chosen, here

from oplet import Interpreter
from oplet.errors import OpletError
from oplet_testing import invoke

pytestmark = [here, pytest.mark.sweep(cases=True)]

Array = np.ndarray[Any, Any]
_LARGEST = 12

#: Models that differ from LiteRT on purpose, and why; docs/numerics.md and docs/differences.md say more.
_ASKED = "XNNPACK alone runs an output shape that no padding gives, and writes another one; oplet gives the shape that the model asks for"
EXPLAINED = {
    "equal/equal_024_input_dtype=string-input_shape_pair=-fully_quantize=False": "LiteRT's Python gives the address of a scalar text",
    "keras_act/round_int8": "3 / 0.0392157 is 76.5, which the reference kernel, as oplet, rounds away from zero; it has no ROUND",
    **{f"hand_conv/TCONV_{name}": _ASKED for name in ("2_f32_b", "2_i8_b", "2_u8_b", "3_f32_b", "3_u8_b")},
}


def drawn(random: np.random.Generator, shapes: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Other shapes: a new first dimension, another one of one's own, or new sizes wherever the sizes were equal."""
    kind, size, axis = random.integers(3), int(random.integers(1, _LARGEST)), int(random.integers(6))
    sizes = random.integers(1, _LARGEST, (6, 1024))
    if kind == 0:
        return [(size, *shape[1:]) if shape else shape for shape in shapes]
    if kind == 1:
        return [tuple(size if i == axis % len(shape) else d for i, d in enumerate(shape)) for shape in shapes]
    return [tuple(int(sizes[i % 6, d % 1024]) for i, d in enumerate(shape)) for shape in shapes]


def values(interpreter: Interpreter, shapes: list[tuple[int, ...]]) -> list[Array]:
    random = np.random.default_rng(1)
    result = []
    for details, shape in zip(interpreter.get_input_details(), shapes):
        dtype = np.dtype(details["dtype"])
        if dtype.kind == "S":
            result.append(np.full(shape, b"text", object))
        elif dtype.kind in "iu" and dtype.itemsize == 1:
            result.append(random.integers(0, 100, shape).astype(dtype))
        else:
            result.append(random.integers(0, 4, shape).astype(dtype))
    return result


def run(interpreter: Interpreter, inputs: list[Array]) -> list[Array] | OpletError:
    try:
        return invoke(interpreter, *inputs, resize=True)
    except OpletError as error:
        return error


def complaint(resized: list[Array] | OpletError, fresh: list[Array] | OpletError) -> str:
    """What is wrong; "" if nothing is."""
    for result in (resized, fresh):
        if isinstance(result, OpletError) and re.match(r"\w+(Error|Exception|Warning)\b", str(result)):
            return f"a kernel fails instead of refusing: {result}"
    if isinstance(resized, OpletError) or isinstance(fresh, OpletError):
        return "" if type(resized) is type(fresh) else f"resized: {resized}; fresh: {fresh}"
    for got, wanted in zip(resized, fresh):
        if got.dtype.kind in "fc":
            same = got.shape == wanted.shape and np.allclose(got, wanted, rtol=1e-5, atol=1e-5, equal_nan=True)
        else:
            same = np.array_equal(got, wanted)
        if not same:
            return f"resized: {got.shape}, {got.ravel()[:4]}; fresh: {wanted.shape}, {wanted.ravel()[:4]}"
    return ""


def beside_litert(litert: LiteRT, content: bytes, inputs: list[Array], ours: list[Array] | OpletError) -> str:
    """How an answer contradicts each of LiteRT's ways that runs the model on these inputs; "" if it equals one, or none runs.

    The shapes are drawn, and most of what oplet refuses of them LiteRT cuts short, or reads beyond the end.
    """
    if isinstance(ours, OpletError):
        return ""
    case = Case(content, [inputs], rtol=1e-4, atol=1e-4)
    found = []
    for resolver in RESOLVERS:
        answer = litert.run(case, resolver)
        if answer.kind != "ran":
            continue
        said = next((text for a, b in zip(ours, answer.outputs[0]) if (text := difference(a, b, case))), "")
        if not said:
            return ""
        found.append(f"{resolver}: {said}")
    return "; ".join(found)


@pytest.mark.parametrize("group", [g for g in GROUPS if g.parent.name == "ops"], ids=lambda path: path.stem)
def test_a_resized_interpreter_gives_what_a_fresh_one_and_litert_give(group: Path, litert: LiteRT) -> None:
    wrong = []
    for case in chosen(group):
        if not case.runs:
            continue
        name, content = case.name, case.model()
        number = zlib.crc32(name.encode())
        random, way = np.random.default_rng(number), installed(FEW[number % len(FEW)])
        interpreter = Way(way.engine, way.threads, late=True).open(content)
        if any(node.registration is None or not node.registration.pure for s in interpreter._subgraphs for node in s.nodes):
            continue  # what keeps a state keeps it over a resize
        shapes = [tuple(map(int, details["shape"])) for details in interpreter.get_input_details()]
        try:
            way.delegate(way._replace(late=True).open(content))
        except OpletError:  # the shapes of the file fit no node, and no delegate is told anything
            way = Way("numpy", 1)
        if not way.late:
            way.delegate(interpreter)
        run(interpreter, values(interpreter, shapes))
        if way.late:
            way.delegate(interpreter)
        for round in range(3):
            inputs = values(interpreter, drawn(random, shapes))
            ours = run(interpreter, inputs)
            said = complaint(ours, run(way._replace(late=False).open(content), inputs))
            if round == 2 and not said:
                said = beside_litert(litert, content, inputs, ours)
                if f"{group.stem}/{name}" in EXPLAINED:
                    said = "" if said else "is explained and equals LiteRT"
            if said:
                wrong.append(f"{name}, {way}, {[value.shape for value in inputs]}: {said}")
    assert not wrong, "\n".join(wrong)
