"""Models whose constants follow from shapes, resized up, down and back: as in a fresh interpreter, and as in LiteRT."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest
from tests.kinds import part
from tests.lifecycle.family import FAMILY, NESTS, WIDTH, family_model
from tests.lifecycle.switching import switched
from tests.lifecycle.ways import FEW, WAYS, Way, needs
from tests.recorded.test_resizing import complaint, run, values
from tests.recorded_cases import GROUPS, Case, cases, chosen

from oplet.errors import OpletError
from oplet.ops.context import Node
from oplet_testing import invoke, litert_interpreter

Array = np.ndarray[Any, Any]
MODELS = [(name, nest) for name in FAMILY for nest in NESTS]
#: Up, down, back, and one row.
LENGTHS = (3, 7, 2, 3, 12, 1, 3)


def rows(length: int) -> Array:
    return np.random.default_rng(length).normal(size=(length, WIDTH)).astype(np.float32)


def answer(interpreter: Any, length: int) -> Array:
    result: Array = invoke(interpreter, rows(length), resize=True)[0]
    return result


def same(got: Array, wanted: Array, what: str) -> None:
    assert got.shape == wanted.shape, what
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4, err_msg=what)


def check(content: bytes, way: Way, lengths: Sequence[int] = LENGTHS) -> None:
    """Run a model through lengths; all are compared with LiteRT, and the last ones with a fresh interpreter."""
    litert = litert_interpreter("BUILTIN_WITHOUT_DEFAULT_DELEGATES")
    needs(way)
    interpreter = way.open(content)
    for step, length in enumerate(lengths):
        got = answer(interpreter, length)
        if step >= len(lengths) - 2:
            same(
                got,
                answer(way._replace(late=False).open(content), length),
                f"{way}, length {length} at step {step}, against a fresh interpreter",
            )
        same(got, answer(litert(model_content=content), length), f"{way}, length {length} at step {step}, against LiteRT")
        if step == 0 and way.late:
            way.delegate(interpreter)


@pytest.mark.parametrize("number", range(len(FAMILY)), ids=list(FAMILY))
def test_what_follows_from_the_length_follows_it_through_resizes(number: int) -> None:
    # Each kind is seen in one nest and one way; OpenVINO, which takes long to compile, in a few.
    way = FEW[number % len(FEW)]
    check(family_model(list(FAMILY)[number], NESTS[number // 2 % len(NESTS)]), way, (3, 7, 2, 3))


@pytest.mark.sweep
@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(map(str, way)))
def test_what_follows_from_the_length_follows_it_in_every_way(way: Way) -> None:
    for name, nest in MODELS:
        check(family_model(name, nest), way)


OPS = [group for group in GROUPS if group.parent.name == "ops"]


def _switched_cases(cases: Iterable[Case]) -> list[tuple[str, bytes, int]]:
    return [(case.name, *made) for case in cases if case.runs and (made := switched(case.model())) is not None]


def _compare_switched(cases: list[tuple[str, bytes, int]], ways: list[Way]) -> tuple[int, list[str]]:
    """Run each model in one of the ways with its constants, with others, and with its own again."""
    wrong, changed = [], 0
    for number, (name, content, _) in enumerate(cases):
        way = ways[number % len(ways)]
        interpreter = Way(way.engine, way.threads, late=True).open(content)
        if any(node.registration is None or not node.registration.pure for s in interpreter._subgraphs for node in s.nodes):
            continue
        way.delegate(interpreter)
        shapes = [tuple(map(int, details["shape"])) for details in interpreter.get_input_details()][:-1]
        answers = []
        for length in (1, 2, 1):
            inputs = values(interpreter, [*shapes, (length,)])
            got = run(interpreter, inputs)
            said = complaint(got, run(way._replace(late=False).open(content), inputs))
            answers.append(got)
            if said:
                wrong.append(f"{name}, {way}, constants {length}: {said}")
        if all(isinstance(found, list) for found in answers[:2]):
            changed += any(not np.array_equal(a, b) for a, b in zip(*answers[:2]))
    return changed, wrong


@pytest.mark.sweep
@pytest.mark.skipif(not GROUPS, reason="the recorded cases lie outside the project and are not here")
def test_kernels_give_up_what_they_made_of_constants_that_changed() -> None:
    pytest.importorskip("oplet_compiled_ops")
    few = [case for group in OPS for case in cases(group) if zlib.crc32(case.name.encode()) % 60 == 0]
    changed, wrong = _compare_switched(_switched_cases(few), [Way("numpy", 1), Way("compiled", 1)])
    assert not wrong, "\n".join(wrong)
    assert changed > 3  # so that there was something to give up


@pytest.mark.sweep(cases=True)
@pytest.mark.skipif(not GROUPS, reason="the recorded cases lie outside the project and are not here")
@pytest.mark.parametrize("shift", range(2))
def test_kernels_and_delegates_give_up_what_they_made_of_any_constants_that_changed(shift: int) -> None:
    for package in ("oplet_compiled_ops", "ai_edge_litert", "openvino"):
        pytest.importorskip(package)
    changed, wrong = _compare_switched(_switched_cases(chosen(*OPS)), FEW[3 * shift :] + FEW[: 3 * shift])
    assert not wrong, "\n".join(wrong)
    assert changed > part().least(300)


def test_the_sweep_finds_a_kernel_that_keeps_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[Any, Any] = {}

    def cached(self: Node, key: Any, sources: Any, make: Any, **how: Any) -> Any:
        if (id(self), key) not in kept:
            kept[id(self), key] = make(), self
        return kept[id(self), key][0]

    monkeypatch.setattr(Node, "cached", cached)
    with pytest.raises((AssertionError, OpletError)):
        check(family_model("causal_mask", "plain"), Way("numpy", 1))
    with pytest.raises((AssertionError, OpletError)):
        check(family_model("folded_filter", "plain"), Way("numpy", 1))
