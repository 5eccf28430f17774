"""Time steps of recurrent cells for all batches, one call of machine code per step.

The inputs' contributions to the gates, with the bias, are computed before: one row for each batch of each step. Rows are ordered
as in the sequence's tensors: the row of a step and a batch is `begin + step * step_rows + batch * batch_rows`, where a sequence
that runs backwards begins at its end. Where the sequence, of `steps` steps, runs several times, the number of a step goes on
counting. Outputs are written from the column `column` of their rows on, as another direction may have the columns before it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.kernels import Kernel
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.recurrent.gates import sigmoids, tanh, tanhs
from oplet_compiled_ops.recurrent.rows import multiply_floats, multiply_integers

__all__ = ["LSTM_STEPS", "PLACES", "RNN_STEPS", "clamped", "copy"]

_ONE, _ZERO = np.float32(1), np.float32(0)
_inlined: Callable[..., Any] = inlined(error_model="numpy", boundscheck=False)


@_inlined
def clamped(value, low, high):  # type: ignore[no-untyped-def]
    # Both comparisons are false for NaN, which is kept.
    value = low if value < low else value
    return high if value > high else value


@_inlined
def copy(source, target):  # type: ignore[no-untyped-def]
    for i in range(source.size):
        target[i] = source[i]


@_inlined
def _lstm(gates, state, hidden, clip):  # type: ignore[no-untyped-def]
    """Compute one LSTM step of one batch: update the cell state `state`, and write the output to `hidden`.

    `gates` are the gates' sums in the order input (absent if it is 1 - forget), forget, output, cell; `clip` bounds the state's
    magnitude unless it is 0.
    """
    cells = state.size
    early = gates.size - cells
    sigmoids(gates[:early])
    tanhs(gates[early:])
    forget, output, cell = gates[early - 2 * cells : early - cells], gates[early - cells : early], gates[early:]
    entered = gates[:cells]
    for i in range(cells):
        gate = entered[i] if early > 2 * cells else _ONE - forget[i]
        value = forget[i] * state[i] + gate * cell[i]
        value = clamped(value, -clip, clip) if clip > _ZERO else value
        state[i] = value
        hidden[i] = output[i] * tanh(value)


@_inlined
def _rnn(sums, state, bounded, low, high):  # type: ignore[no-untyped-def]
    """Compute one RNN step of one batch: write the activations of `sums` into `state`; a clamp to [low, high] if `bounded`, else
    tanh.
    """
    if bounded:
        for i in range(state.size):
            state[i] = clamped(sums[i], low, high)
    else:
        tanhs(sums)
        for i in range(state.size):
            state[i] = sums[i]


# fmt: off
def _lstm_steps(  # type: ignore[no-untyped-def]
    projected, weights, hidden, state, gates, clip, output, column, steps, begin, step_rows, batch_rows, first, last,
):
    # fmt: on
    for step in range(first, last):
        for batch in range(hidden.shape[0]):
            row = begin + step % steps * step_rows + batch * batch_rows
            multiply_floats(hidden[batch], weights, projected[row], gates)
            _lstm(gates, state[batch], hidden[batch], clip)
            copy(hidden[batch], output[row, column : column + hidden.shape[1]])


# fmt: off
def _hybrid_lstm_steps(  # type: ignore[no-untyped-def]
    projected, weights, scales, quantized, asymmetric, hidden, state, gates, clip, output, column, steps, begin, step_rows, batch_rows, first, last,
):
    # fmt: on
    for step in range(first, last):
        for batch in range(hidden.shape[0]):
            row = begin + step % steps * step_rows + batch * batch_rows
            multiply_integers(hidden[batch], weights, scales, projected[row], quantized, asymmetric, gates)
            _lstm(gates, state[batch], hidden[batch], clip)
            copy(hidden[batch], output[row, column : column + hidden.shape[1]])


# fmt: off
def _rnn_steps(  # type: ignore[no-untyped-def]
    projected, weights, state, sums, bounded, low, high, output, column, steps, begin, step_rows, batch_rows, first, last,
):
    # fmt: on
    for step in range(first, last):
        for batch in range(state.shape[0]):
            row = begin + step % steps * step_rows + batch * batch_rows
            multiply_floats(state[batch], weights, projected[row], sums)
            _rnn(sums, state[batch], bounded, low, high)
            copy(state[batch], output[row, column : column + state.shape[1]])


# fmt: off
def _hybrid_rnn_steps(  # type: ignore[no-untyped-def]
    projected, weights, scales, quantized, asymmetric, state, sums, bounded, low, high, output, column, steps, begin, step_rows, batch_rows, first, last,
):
    # fmt: on
    for step in range(first, last):
        for batch in range(state.shape[0]):
            row = begin + step % steps * step_rows + batch * batch_rows
            multiply_integers(state[batch], weights, scales, projected[row], quantized, asymmetric, sums)
            _rnn(sums, state[batch], bounded, low, high)
            copy(state[batch], output[row, column : column + state.shape[1]])


#: The types of a sequence's places: the output and the column, the numbers of rows, and the first and last step.
PLACES = "f4[:,::1], i8, i8, i8, i8, i8, i8, i8"
_FLOAT, _HYBRID = "f4[:,::1], f4[:,::1]", "f4[:,::1], i1[:,::1], f4[::1], i2[::1], i8"
_LSTM, _RNN = f"f4[:,::1], f4[:,::1], f4[::1], f4, {PLACES}", f"f4[:,::1], f4[::1], i8, f4, f4, {PLACES}"
#: By whether the weights are int8.
LSTM_STEPS = {False: Kernel(_lstm_steps, f"void({_FLOAT}, {_LSTM})"), True: Kernel(_hybrid_lstm_steps, f"void({_HYBRID}, {_LSTM})")}
RNN_STEPS = {False: Kernel(_rnn_steps, f"void({_FLOAT}, {_RNN})"), True: Kernel(_hybrid_rnn_steps, f"void({_HYBRID}, {_RNN})")}
