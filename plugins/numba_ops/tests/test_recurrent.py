"""Compiled recurrent cells answer as the numpy ones do and as LiteRT's do, and carry their states on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from plugins.numba_ops.tests.compiled import is_compiled

from oplet import Interpreter
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import LSTMOptions, RNNOptions, SequenceRNNOptions, UnidirectionalSequenceLSTMOptions
from oplet.testing import Spec, invoke_steps, litert_interpreter, one_op_model
from oplet_numba_ops.recurrent import cells as recurrent
from oplet_numba_ops.threads import team

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
    op: str, kind: str, batches: int = BATCHES, seed: int = 0, cifg: bool = False, peephole: bool = False, **options: Any
) -> tuple[bytes, list[Any]]:
    """A one-op model of a recurrent cell, and inputs of several invokes."""
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
        inputs += left_out + [weights(CELLS, CELLS) for _ in range(4)][four]
        inputs += side + left_out + [bias() for _ in range(4)][four]
        inputs += [None, None, *(Spec("float32", (batches, CELLS), variable=True) for _ in range(2)), *[None] * 4]
    else:
        state = Spec("float32", (batches, CELLS), variable=True)
        inputs = [Spec("float32", shape), weights(CELLS, DEPTH), weights(CELLS, CELLS), bias(), state]
    table = OPTIONS[op](asymmetric_quantize_inputs=kind == "asymmetric", **options)
    model = one_op_model(op, inputs, [Spec("float32", (*shape[:-1], CELLS))], table, version=3 if "LSTM" in op else 2)
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


@pytest.mark.parametrize(
    "options", [{"peephole": True}, {"fused_activation_function": ActivationFunctionType.RELU}, {"batches": 9}]
)
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
