"""No model that oplet's kernels accept ends the process, hangs, escapes or answers wrong in a delegate's native code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import pytest
from tests.kinds import part

pytest.importorskip("ai_edge_litert")

from tests.delegate_sweep.cases import OPERATORS, singles, some
from tests.delegate_sweep.drafts import Draft
from tests.delegate_sweep.hostile_sizes import HOSTILE
from tests.delegate_sweep.worker import Job, run

from oplet.schema import options as o
from oplet_testing import Spec, one_op_model

#: What a verdict may be; the others are findings.
FINE = {"refused", "kept", "alike", "like LiteRT"}
DELEGATES = ("litert", "openvino")


def _models(drafts: Iterable[Draft]) -> Iterator[tuple[str, bytes]]:
    for draft in drafts:
        try:
            yield draft.name, draft.to_bytes()
        except Exception:  # no model comes of it
            continue


def findings(models: list[tuple[str, bytes]], delegate: str, **options: str) -> list[str]:
    verdicts = run(Job(models, delegate, options))
    assert len(verdicts) == len(models)
    return [f"{name}: {verdict.kind}, {verdict.text}" for (name, _), verdict in zip(models, verdicts) if verdict.kind not in FINE]


_NINE = (2, 1, 2, 1, 2, 1, 2, 1, 2)
_ROW = (*[1] * 8, 2)
_BROADCAST = {
    "float32": "ADD DIV FLOOR_DIV FLOOR_MOD MAXIMUM MINIMUM MUL POW PRELU SQUARED_DIFFERENCE SUB",
    "int32": "BITWISE_XOR EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL NOT_EQUAL RIGHT_SHIFT SELECT_V2",
    "bool": "LOGICAL_AND LOGICAL_OR",
}


def _nine_dimensions() -> Iterator[tuple[str, bytes]]:
    """SIGABRT: broadcasting kernels check with an abort that there are no more than eight."""
    for type, ops in _BROADCAST.items():
        for op in ops.split():
            x, y = Spec(type, _NINE), Spec(type, _ROW)
            made = Spec("bool" if op.startswith(("EQUAL", "GREATER", "LESS", "NOT_EQUAL")) else type, _NINE)
            yield (
                f"{op} of nine dimensions",
                one_op_model(op, [Spec("bool", _NINE), x, y] if op == "SELECT_V2" else [x, y], [made]),
            )


def _causes() -> Iterator[tuple[str, bytes]]:
    """A model of each kind that LiteRT or OpenVINO was found not to survive, or to answer wrong."""
    yield from _nine_dimensions()
    for type in ("int16", "float32", "int8"):
        inputs = [Spec(type, [4, 3]), *(np.array(values, np.int32) for values in ((3, 0), (1 << 20, 3), (1, 1)))]
        yield (
            f"STRIDED_SLICE to an offset, {type}",
            one_op_model("STRIDED_SLICE", inputs, [Spec(type, [1 << 20, 3])], o.StridedSliceOptions(offset=True), version=8),
        )
    x = Spec("float32", [2, 6])
    shape = np.array([3.0, 4.0], np.float32)
    yield (
        "RESHAPE to a shape of floats",
        one_op_model("RESHAPE", [x, shape], [Spec("float32", [3, 4])], o.ReshapeOptions(new_shape=[3, 4])),
    )
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        pool = o.Pool2DOptions(stride_h=1, stride_w=1, filter_height=2, filter_width=2, fused_activation_function=1)
        picture = Spec("int8", [1, 4, 4, 2])
        yield f"{op} with an activation and no scale", one_op_model(op, [picture], [picture], pool, version=2)
    weights = np.ones((2, 3, 3, 2), np.float16)
    yield (
        "CONV_2D of floats by half floats",
        one_op_model(
            "CONV_2D", [Spec("float32", [1, 4, 4, 2]), weights, np.zeros(2, np.float32)], [Spec("float32", [1, 4, 4, 2])],
            o.Conv2DOptions(stride_h=1, stride_w=1), version=8,
        ),
    )  # fmt: skip
    yield "PRELU with one slope", one_op_model("PRELU", [x, np.array(0.5, np.float32)], [x])
    for op in ("GREATER", "GREATER_EQUAL"):  # what is no number is among what is fed last
        yield f"{op} of no number", one_op_model(op, [Spec("float32", [40]), Spec("float32", [40])], [Spec("bool", [40])])
    zeros = one_op_model("DIV", [x, x], [x], o.DivOptions(fused_activation_function=2))
    yield "DIV of zeros with an activation", zeros


@pytest.mark.parametrize("delegate", DELEGATES)
def test_what_once_ended_the_process_or_gave_other_numbers_does_so_no_more(delegate: str) -> None:
    pytest.importorskip("openvino" if delegate == "openvino" else "ai_edge_litert")
    assert not findings(list(_causes()), delegate)


@pytest.mark.sweep
@pytest.mark.parametrize("delegate", DELEGATES)
def test_a_small_model_takes_no_more_memory_or_time_through_a_delegate(delegate: str) -> None:
    pytest.importorskip("openvino" if delegate == "openvino" else "ai_edge_litert")
    models = [(name, make()) for name, make in HOSTILE.items()]
    assert all(len(model) < 2000 for _, model in models)
    assert not findings(models, delegate)


def test_some_models_of_every_operator_survive_litert() -> None:
    models = [model for op in OPERATORS for model in islice(_models(some(op, 4)), 2)]
    assert len(models) > 250
    assert not findings(models, "litert")


def test_every_operator_of_one_node_is_swept() -> None:
    assert len(OPERATORS) > 180


@pytest.mark.sweep(cases=True)
@pytest.mark.parametrize(
    ("delegate", "options", "share", "mixed"),
    [("litert", {}, 20, 20), ("openvino", {}, 120, 2), ("openvino", {"quantized": "1"}, 120, 2)],
)
def test_models_with_everything_turned_survive_the_delegate(
    delegate: str, options: dict[str, str], share: int, mixed: int
) -> None:
    pytest.importorskip("openvino" if delegate == "openvino" else "ai_edge_litert")
    models = [
        model
        for number, op in enumerate(OPERATORS)
        if part().holds(str(op))
        for drafts in (islice(singles(op), number % share, None, share), some(op, mixed, 100))
        for model in _models(drafts)
    ]
    found = [
        text for first in range(0, len(models), 1500) for text in findings(models[first : first + 1500], delegate, **options)
    ]
    assert not found, "\n".join(found)
