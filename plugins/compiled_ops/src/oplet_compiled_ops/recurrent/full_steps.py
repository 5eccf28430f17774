"""Time steps of LSTM cells with peepholes, layer normalization or projection, for all batches; rows are ordered as `steps`
explains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet_compiled_ops.library.kernels import Kernel
from oplet_compiled_ops.library.lazy import inlined
from oplet_compiled_ops.recurrent.gates import sigmoids, tanh
from oplet_compiled_ops.recurrent.rows import multiply_floats, multiply_integers
from oplet_compiled_ops.recurrent.steps import PLACES, clamped, copy

__all__ = ["BOUNDED", "FULL_LSTM_STEPS", "LEFT_OUT", "TANH"]

#: Activations: TANH, none, and those that bound.
TANH, LEFT_OUT, BOUNDED = range(3)

_ONE, _ZERO, _FLOOR = np.float32(1), np.float32(0), np.float32(1e-8)
_inlined: Callable[..., Any] = inlined(error_model="numpy", boundscheck=False)


@_inlined
def _normalize(values, coefficients, bias):  # type: ignore[no-untyped-def]
    """Layer-normalize `values` in place: subtract the mean, divide by the deviation, multiply by `coefficients`, add `bias`."""
    share = _ONE / np.float32(values.size)
    mean = _ZERO
    for i in range(values.size):
        mean += values[i] * share
    variance = _ZERO
    for i in range(values.size):
        values[i] -= mean
        variance += values[i] * values[i] * share
    deviation = np.sqrt(variance + _FLOOR)
    for i in range(values.size):
        values[i] = values[i] / deviation * coefficients[i] + bias[i]


@_inlined
def _activated(value, activation, low, high):  # type: ignore[no-untyped-def]
    if activation == TANH:
        return tanh(value)
    return clamped(value, low, high) if activation == BOUNDED else value


@_inlined
def _full_lstm(gates, state, peepholes, coefficients, biases, activation, low, high, clip):  # type: ignore[no-untyped-def]
    """Compute one LSTM step of one batch, with peepholes and layer normalization.

    Args:
        gates: the gates' sums, in the order input (absent if it is 1 - forget), forget, output, cell; the output gate's place
            receives the output, before a projection.
        state: the cell state, which is updated.
        peepholes: a row of weights for each gate but the cell gate, in that order; no rows if there are none.
        coefficients: a row for each gate, of the normalization; no rows if there is none.
        biases: a row for each gate, added after the normalization.
        activation: that of the cell gate and of the state for the output: TANH, LEFT_OUT (none) or BOUNDED.
        low: the lower bound, if BOUNDED.
        high: the upper bound, if BOUNDED.
        clip: the bound of the cell state's magnitude; 0 for none.
    """
    cells = state.size
    count = gates.size // cells
    for number in range(count):
        gate = gates[number * cells : (number + 1) * cells]
        if peepholes.size and number < count - 2:
            for i in range(cells):
                gate[i] += state[i] * peepholes[number, i]
        is_late = number == count - 2 and peepholes.size > 0  # it reads the new state
        if coefficients.size and not is_late:
            _normalize(gate, coefficients[number], biases[number])
        if number < count - 1 and not is_late:
            sigmoids(gate)
    cell, output, forget = (
        gates[(count - 1) * cells :],
        gates[(count - 2) * cells : (count - 1) * cells],
        gates[(count - 3) * cells :],
    )
    for i in range(cells):
        cell[i] = _activated(cell[i], activation, low, high)
        entered = gates[i] if count > 3 else _ONE - forget[i]
        value = forget[i] * state[i] + entered * cell[i]
        state[i] = clamped(value, -clip, clip) if clip > _ZERO else value
    if peepholes.size:
        for i in range(cells):
            output[i] += state[i] * peepholes[count - 2, i]
        if coefficients.size:
            _normalize(output, coefficients[count - 2], biases[count - 2])
        sigmoids(output)
    for i in range(cells):
        # Without an activation LiteRT copies nothing, so that the buffer keeps the cell gate.
        output[i] *= cell[i] if activation == LEFT_OUT else _activated(state[i], activation, low, high)


@_inlined
def _shift(values, bias, clip):  # type: ignore[no-untyped-def]
    """Add the projection's bias to `values` unless it is empty; clamp them to [-clip, clip] unless `clip` is 0; in place."""
    for i in range(values.size):
        value = values[i] + bias[i] if bias.size else values[i]
        values[i] = clamped(value, -clip, clip) if clip > _ZERO else value


# fmt: off
def _full_steps(  # type: ignore[no-untyped-def]
    projected, weights, projection, nothing, hidden, state, gates, peepholes, coefficients, biases, bias,
    activation, low, high, clip, projection_clip, output, column, steps, begin, step_rows, batch_rows, first, last,
):
    # fmt: on
    for step in range(first, last):
        for batch in range(hidden.shape[0]):
            row = begin + step % steps * step_rows + batch * batch_rows
            multiply_floats(hidden[batch], weights, projected[row], gates)
            _full_lstm(gates, state[batch], peepholes, coefficients, biases, activation, low, high, clip)
            given = gates[gates.size - 2 * state.shape[1] : gates.size - state.shape[1]]
            if projection.size:
                multiply_floats(given, projection, nothing, hidden[batch])
                _shift(hidden[batch], bias, projection_clip)
            else:
                copy(given, hidden[batch])
            copy(hidden[batch], output[row, column : column + hidden.shape[1]])


# fmt: off
def _hybrid_full_steps(  # type: ignore[no-untyped-def]
    projected, weights, scales, quantized, asymmetric, projection, projection_scales, given_quantized, nothing,
    hidden, state, gates, peepholes, coefficients, biases, bias,
    activation, low, high, clip, projection_clip, output, column, steps, begin, step_rows, batch_rows, first, last,
):
    # fmt: on
    for step in range(first, last):
        for batch in range(hidden.shape[0]):
            row = begin + step % steps * step_rows + batch * batch_rows
            multiply_integers(hidden[batch], weights, scales, projected[row], quantized, asymmetric, gates)
            _full_lstm(gates, state[batch], peepholes, coefficients, biases, activation, low, high, clip)
            given = gates[gates.size - 2 * state.shape[1] : gates.size - state.shape[1]]
            if projection.size:
                multiply_integers(given, projection, projection_scales, nothing, given_quantized, asymmetric, hidden[batch])
                _shift(hidden[batch], bias, projection_clip)
            else:
                copy(given, hidden[batch])
            copy(hidden[batch], output[row, column : column + hidden.shape[1]])


_CELL = f"f4[:,::1], f4[:,::1], f4[::1], f4[:,::1], f4[:,::1], f4[:,::1], f4[::1], i8, f4, f4, f4, f4, {PLACES}"
#: By whether the weights are int8.
FULL_LSTM_STEPS = {
    False: Kernel(_full_steps, f"void(f4[:,::1], f4[:,::1], f4[:,::1], f4[::1], {_CELL})"),
    True: Kernel(
        _hybrid_full_steps,
        f"void(f4[:,::1], i1[:,::1], f4[::1], i2[::1], i8, i1[:,::1], f4[::1], i2[::1], f4[::1], {_CELL})",
    ),
}
