"""LSTMBlockCell, BlockLSTM, BlockLSTMV2 and GRUBlockCell: recurrent cells with all gates in one matrix.

Numerics: tensorflow/core/kernels/rnn/{lstm_ops.h,lstm_ops.cc,gru_ops.h}
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oplet import Node, TensorType, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import filled

_HALVES = (TensorType.FLOAT32, TensorType.FLOAT16)
_STATE = "cs_prev: T[2], h_prev: T[2], w: T[2], wci: T[1], wcf: T[1], wco: T[1], b: T[1]"
_GATES = "i: T, cs: T, f: T, o: T, ci: T, co: T, h: T"


class _Lstm(NamedTuple):
    forget_bias: float
    clip: float
    peephole: bool


def _v1(attributes: Attributes) -> _Lstm:
    return _Lstm(
        attributes.number("forget_bias", default=1.0),
        attributes.number("cell_clip", default=3.0),
        attributes.flag("use_peephole", default=False),
    )


def _v2(attributes: Attributes) -> _Lstm:
    return _Lstm(0.0, attributes.number("cell_clip", default=0.0), attributes.flag("use_peephole", default=False))


def _sigmoid(values: Array) -> Any:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-values))


def _ensure_lstm(node: Node, batch: int, inputs: int, start: int) -> int:
    """Return the number of cells, after checking the operands from `start` on: cs_prev, h_prev, w, wci, wcf, wco and b."""
    state, hidden, weights, *peepholes, bias = node.inputs[start:]
    cells = state.shape[1]
    for tensor in (state, hidden):
        ensure(tensor.shape == (batch, cells), f"{tensor} must be {batch} x {cells}.")
    ensure(weights.shape == (inputs + cells, 4 * cells), f"{weights} must be {inputs + cells} x {4 * cells}.")
    for tensor in peepholes:
        ensure(tensor.shape == (cells,), f"{tensor} must have {cells} values.")
    ensure(bias.shape == (4 * cells,), f"{bias} must have {4 * cells} values.")
    return cells


def _lstm_step(given: _Lstm, swapped: bool, x: Array, state: Array, hidden: Array, *weights: Array) -> list[Array]:
    """Compute one LSTM step; return input gate, cell state, forget gate, output gate, cell input, activated state, and output.

    Args:
        swapped: whether the forget gate stands before the new input in the matrix.
    """
    matrix, to_input, to_forget, to_output, bias = weights
    gates = np.concatenate([x, hidden], 1) @ matrix + bias
    first, second, third, fourth = np.split(gates, 4, 1)
    new, forget = (third, second) if swapped else (second, third)
    peek = given.peephole
    opened = _sigmoid(first + state * to_input if peek else first)
    candidate = np.tanh(new)
    forget = forget + forget.dtype.type(given.forget_bias)
    kept = _sigmoid(forget + state * to_forget if peek else forget)
    cell = candidate * opened + state * kept
    if given.clip > 0:
        cell = np.clip(cell, -given.clip, given.clip)
    shown = _sigmoid(fourth + cell * to_output if peek else fourth)
    squashed = np.tanh(cell)
    return [opened, cell, kept, shown, candidate, squashed, squashed * shown]


def _cell_shapes(node: Node, given: _Lstm) -> list[Shape]:
    x = node.inputs[0]
    return [(x.shape[0], _ensure_lstm(node, x.shape[0], x.shape[1], 1))] * 7


def _wide(operands: tuple[Array, ...]) -> list[Array]:
    """Convert half operands to float32, in which they are computed."""
    return [operand.astype(np.float32, copy=False) for operand in operands]


@filled("LSTMBlockCell", f"x: T[2], {_STATE} -> {_GATES}", _cell_shapes, _v1, T=_HALVES)
def LSTMBLOCKCELL(given: _Lstm, outputs: list[Array], *operands: Array) -> None:
    x, state, hidden, *weights = _wide(operands)
    for output, result in zip(outputs, _lstm_step(given, False, x, state, hidden, *weights)):
        output[...] = result


def _block_shapes(node: Node, given: _Lstm) -> list[Shape]:
    x = node.inputs[1]
    time, batch, inputs = x.shape
    return [(time, batch, _ensure_lstm(node, batch, inputs, 2))] * 7


def _block(swapped: bool) -> Any:
    def compute(given: _Lstm, outputs: list[Array], length: Array, *operands: Array) -> None:
        x, state, hidden, *weights = _wide(operands)
        steps = int(length)
        ensure(0 <= steps <= len(x), f"seq_len_max is {steps}; it must be within 0 to {len(x)}, the time.")
        for step in range(steps):
            checkpoint()
            results = _lstm_step(given, swapped, x[step], state, hidden, *weights)
            state, hidden = results[1], results[6]
            for output, result in zip(outputs, results):
                output[step] = result
        for output in outputs:
            output[steps:] = 0

    return compute


_BLOCK = f"seq_len_max: INT64[0], x: T[3], {_STATE} -> {_GATES}"
BLOCKLSTM = filled("BlockLSTM", _BLOCK, _block_shapes, _v1, T=_HALVES)(_block(False))
BLOCKLSTMV2 = filled("BlockLSTMV2", _BLOCK, _block_shapes, _v2, T=_HALVES)(_block(True))


def _gru_shapes(node: Node, given: Any) -> list[Shape]:
    x, hidden, gates, candidate, gate_bias, bias = node.inputs
    (batch, inputs), cells = x.shape, hidden.shape[1]
    wanted = ((batch, cells), (inputs + cells, 2 * cells), (inputs + cells, cells), (2 * cells,), (cells,))
    for tensor, shape in zip((hidden, gates, candidate, gate_bias, bias), wanted):
        ensure(tensor.shape == shape, f"{tensor} must have the shape {list(shape)}.")
    return [(batch, cells)] * 4


@filled(
    "GRUBlockCell",
    "x: T[2], h_prev: T[2], w_ru: T[2], w_c: T[2], b_ru: T[1], b_c: T[1] -> r: T, u: T, c: T, h: T",
    _gru_shapes,
    T=(TensorType.FLOAT32,),
)
def GRUBLOCKCELL(given: Any, outputs: list[Array], x: Array, hidden: Array, gates: Array, weights: Array, *biases: Array) -> None:
    reset, update = np.split(_sigmoid(np.concatenate([x, hidden], 1) @ gates + biases[0]), 2, 1)
    candidate = np.tanh(np.concatenate([x, hidden * reset], 1) @ weights + biases[1])
    for output, result in zip(outputs, (reset, update, candidate, update * hidden + (1 - update) * candidate)):
        output[...] = result
