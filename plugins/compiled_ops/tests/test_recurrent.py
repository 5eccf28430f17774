"""Compiled recurrent cells answer as the numpy ones do and as LiteRT's do, and carry their states on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from plugins.compiled_ops.tests.compiled import is_compiled

from oplet import Interpreter
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import (
    BidirectionalSequenceLSTMOptions,
    BidirectionalSequenceRNNOptions,
    LSTMOptions,
    RNNOptions,
    SequenceRNNOptions,
    UnidirectionalSequenceLSTMOptions,
)
from oplet_compiled_ops.recurrent import cells as recurrent
from oplet_compiled_ops.threads import team
from oplet_testing import Spec, invoke_steps, litert_interpreter, one_op_model

OPS = ["LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM", "RNN", "UNIDIRECTIONAL_SEQUENCE_RNN"]
OPTIONS: dict[str, Any] = {
    "LSTM": LSTMOptions,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": UnidirectionalSequenceLSTMOptions,
    "RNN": RNNOptions,
    "UNIDIRECTIONAL_SEQUENCE_RNN": SequenceRNNOptions,
}
KINDS = ["float", "int8", "uint8", "asymmetric"]
#: Where activations are quantized, the last bit of a state may tip it to the next integer.
TOLERANCES = {"float": 1e-5, "int8": 5e-3, "uint8": 5e-3, "asymmetric": 5e-3}
BATCHES, STEPS, DEPTH, CELLS = 2, 5, 19, 37


def cell(
    op: str,
    kind: str,
    batches: int = BATCHES,
    seed: int = 0,
    cifg: bool = False,
    peephole: bool = False,
    norm: bool = False,
    projection: int = 0,
    **options: Any,
) -> tuple[bytes, list[Any]]:
    """A one-op model of a recurrent cell, and inputs of several invokes.

    Args:
        projection: the outputs; 0 for no projection.
    """
    outputs = projection or CELLS
    random = np.random.default_rng(seed)

    def weights(*shape: int) -> Any:
        if kind == "float":
            return random.normal(0, 0.15, shape).astype("float32")
        data = random.integers(-127, 128, shape).astype("int8")
        type = "uint8" if kind == "uint8" else "int8"
        return Spec(type, shape, float(random.uniform(0.0007, 0.0015)), 0, data=data.view(type))

    def bias() -> Any:
        return random.normal(0, 0.3, CELLS).astype("float32")

    options = {"fused_activation_function": ActivationFunctionType.TANH, **options}
    sequence = "SEQUENCE" in op
    shape: tuple[int, ...] = (batches, DEPTH)
    if sequence:
        shape = (STEPS, batches, DEPTH) if options.get("time_major") else (batches, STEPS, DEPTH)
    if "LSTM" in op:
        four = slice(1, 4) if cifg else slice(0, 4)
        left_out = [None] if cifg else []
        side = [None if cifg else weights(CELLS), weights(CELLS), weights(CELLS)] if peephole else [None] * 3
        inputs = [Spec("float32", shape)]
        inputs += left_out + [weights(CELLS, DEPTH) for _ in range(4)][four]
        inputs += left_out + [weights(CELLS, outputs) for _ in range(4)][four]
        inputs += side + left_out + [bias() for _ in range(4)][four]
        inputs += [weights(outputs, CELLS), np.resize(bias(), outputs)] if projection else [None, None]
        inputs += [Spec("float32", (batches, width), variable=True) for width in (outputs, CELLS)]
        inputs += left_out + [bias() + 1 for _ in range(4)][four] if norm else [None] * 4
    else:
        state = Spec("float32", (batches, CELLS), variable=True)
        inputs = [Spec("float32", shape), weights(CELLS, DEPTH), weights(CELLS, CELLS), bias(), state]
    table = OPTIONS[op](asymmetric_quantize_inputs=kind == "asymmetric", **options)
    model = one_op_model(op, inputs, [Spec("float32", (*shape[:-1], outputs))], table, version=3 if "LSTM" in op else 2)
    return model, [random.normal(0, 1, shape).astype("float32") for _ in range(3)]


def outputs(model: bytes, feeds: Sequence[Any], interpreter: Any = Interpreter, **arguments: Any) -> Any:
    """The outputs of invokes one after the other, the states going on."""
    return np.array(invoke_steps(interpreter(model_content=model, **arguments), [[feed] for feed in feeds]))[:, 0]


def check(model: bytes, feeds: Sequence[Any], tolerance: float) -> None:
    assert is_compiled(model)
    results = outputs(model, feeds)
    np.testing.assert_allclose(results, outputs(model, feeds, plugins=["oplet-builtin-ops"]), rtol=tolerance, atol=tolerance)
    wanted = outputs(model, feeds, litert_interpreter("BUILTIN_WITHOUT_DEFAULT_DELEGATES"))
    np.testing.assert_allclose(results, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", OPS)
def test_compiled_cells_agree_with_numpy_and_litert(op: str, kind: str, batches: int) -> None:
    check(*cell(op, kind, batches), TOLERANCES[kind])


@pytest.mark.parametrize("options", [{"time_major": True}, {"cell_clip": 0.2}, {"cifg": True}])
@pytest.mark.parametrize("kind", ["float", "int8"])
def test_options_of_an_lstm_are_obeyed(kind: str, options: Any) -> None:
    check(*cell("UNIDIRECTIONAL_SEQUENCE_LSTM", kind, **options), TOLERANCES[kind])


@pytest.mark.parametrize("activation", ["NONE", "RELU", "RELU_N1_TO_1", "RELU6"])
@pytest.mark.parametrize("kind", ["float", "asymmetric"])
def test_bounds_of_a_basic_cell_are_kept(kind: str, activation: str) -> None:
    model, feeds = cell(
        "UNIDIRECTIONAL_SEQUENCE_RNN", kind, time_major=True, fused_activation_function=ActivationFunctionType[activation]
    )
    check(model, feeds, TOLERANCES[kind])


@pytest.mark.parametrize("cifg", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"peephole": True},
        {"norm": True},
        {"projection": 11, "proj_clip": 0.3},
        {"peephole": True, "norm": True, "projection": 50, "cell_clip": 0.4},
        {"fused_activation_function": ActivationFunctionType.RELU},
    ],
    ids=["peephole", "norm", "projection", "all", "relu"],
)
@pytest.mark.parametrize("kind", ["float", "int8", "asymmetric"])
def test_peepholes_norms_and_projections_are_compiled(kind: str, options: Any, cifg: bool) -> None:
    for op in ("LSTM", "UNIDIRECTIONAL_SEQUENCE_LSTM"):
        check(*cell(op, kind, cifg=cifg, **options), TOLERANCES[kind])


def both(op: str, kind: str, merged: bool, auxiliary: bool, weighted: bool, **options: Any) -> tuple[bytes, list[list[Any]]]:
    """A one-op model of cells in both directions, and inputs of several invokes."""
    random = np.random.default_rng(1)

    def weights(*shape: int) -> Any:
        if kind == "float":
            return random.normal(0, 0.15, shape).astype("float32")
        return Spec(
            "int8", shape, float(random.uniform(0.0007, 0.0015)), 0, data=random.integers(-127, 128, shape).astype("int8")
        )

    def bias() -> Any:
        return random.normal(0, 0.3, CELLS).astype("float32")

    shape = (STEPS, BATCHES, DEPTH) if options.get("time_major") else (BATCHES, STEPS, DEPTH)
    state = Spec("float32", (BATCHES, CELLS), variable=True)
    x = Spec("float32", shape)
    second = [x if auxiliary else None]
    if op == "BIDIRECTIONAL_SEQUENCE_LSTM":
        inputs: list[Any] = [x]
        for _ in range(2):
            inputs += [weights(CELLS, DEPTH) for _ in range(4)] + [weights(CELLS, CELLS) for _ in range(4)]
            inputs += [None] * 3 + [bias() for _ in range(4)] + [None, None]
        inputs += [state] * 4 + second + [weights(CELLS, DEPTH) if weighted else None for _ in range(8)]
        table: Any = BidirectionalSequenceLSTMOptions
    else:
        one = [weights(CELLS, DEPTH), weights(CELLS, CELLS), bias(), state]
        other = [weights(CELLS, DEPTH), weights(CELLS, CELLS), bias(), state]
        inputs = [x, *one, *other, *second, *(weights(CELLS, DEPTH) if weighted else None for _ in range(2))]
        table = BidirectionalSequenceRNNOptions
    sizes = [2 * CELLS] if merged else [CELLS, CELLS]
    asked = table(
        fused_activation_function=ActivationFunctionType.TANH,
        asymmetric_quantize_inputs=kind == "asymmetric",
        merge_outputs=merged,
        **options,
    )
    model = one_op_model(op, inputs, [Spec("float32", (*shape[:-1], size)) for size in sizes], asked, version=3)
    feeds = [[random.normal(0, 1, shape).astype("float32") for _ in range(2 if auxiliary else 1)] for _ in range(3)]
    return model, feeds


@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize(("auxiliary", "weighted"), [(False, False), (True, False), (True, True)])
@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("kind", ["float", "int8", "asymmetric"])
@pytest.mark.parametrize("op", ["BIDIRECTIONAL_SEQUENCE_LSTM", "BIDIRECTIONAL_SEQUENCE_RNN"])
def test_both_directions_agree_with_numpy(
    op: str, kind: str, merged: bool, auxiliary: bool, weighted: bool, time_major: bool
) -> None:
    model, feeds = both(op, kind, merged, auxiliary, weighted, time_major=time_major)
    assert is_compiled(model)
    found, wanted = (
        invoke_steps(Interpreter(model_content=model, plugins=plugins), feeds) for plugins in (None, ["oplet-builtin-ops"])
    )
    for one, other in zip(found, wanted, strict=True):
        for mine, numpys in zip(one, other, strict=True):
            np.testing.assert_allclose(mine, numpys, rtol=TOLERANCES[kind], atol=TOLERANCES[kind])


@pytest.mark.parametrize("options", [{"fused_activation_function": ActivationFunctionType.SIGN_BIT}, {"batches": 9}])
def test_what_is_not_compiled_stays_with_numpy(options: Any) -> None:
    model, feeds = cell("UNIDIRECTIONAL_SEQUENCE_LSTM", "float", **options)
    assert not is_compiled(model)
    np.testing.assert_array_equal(outputs(model, feeds), outputs(model, feeds, plugins=["oplet-builtin-ops"]))


@pytest.mark.parametrize("op", ["UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"])
@pytest.mark.parametrize("kind", ["float", "int8"])
def test_threads_and_stretches_change_no_bit(monkeypatch: pytest.MonkeyPatch, op: str, kind: str) -> None:
    model, feeds = cell(op, kind)
    whole = outputs(model, feeds)
    monkeypatch.setattr(recurrent, "_WORTH", 1)
    monkeypatch.setattr(recurrent, "_UNWATCHED", 1)
    looks: list[int] = []
    monkeypatch.setattr(team, "checkpoint", lambda: looks.append(1))
    np.testing.assert_array_equal(outputs(model, feeds, num_threads=2), whole)
    assert len(looks) >= (STEPS - 1) * len(feeds)


@pytest.mark.parametrize("value", [0.0, -0.0, 1e-41, 1e-30, 3e38, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("kind", ["int8", "asymmetric"])
def test_rows_that_hardly_quantize_are_numpys(kind: str, value: float) -> None:
    model, feeds = cell("RNN", kind, 1, fused_activation_function=ActivationFunctionType.NONE)
    feed = np.full_like(feeds[0], value)
    feed[0, 3:7] = [value / 3, -value / 5, value, value / 2]
    with np.errstate(all="ignore"):
        results, wanted = (outputs(model, [feed], **names) for names in ({}, {"plugins": ["oplet-builtin-ops"]}))
    np.testing.assert_allclose(results, wanted, rtol=1e-6)


@pytest.mark.parametrize("kind", ["int8", "asymmetric"])
def test_quantized_rows_are_numpys_bit_for_bit(kind: str) -> None:
    model, _ = cell("RNN", kind, 1, fused_activation_function=ActivationFunctionType.NONE)
    random = np.random.default_rng(3)
    for _ in range(20):
        # Whole and half numbers of steps are where rounding goes one way or the other.
        feed = (random.integers(-254, 255, (1, DEPTH)) / 2).astype("float32")
        np.testing.assert_array_equal(outputs(model, [feed]), outputs(model, [feed], plugins=["oplet-builtin-ops"]))
