"""The LSTM cell in integers with 12 intermediate scales: every product is rounded to int8 before the gates add them.

Layer normalization and activations of the gates are computed in single precision. The input gate is always 1 - forget gate.

Numerics: EvalInteger8x8_8 in tflite/kernels/lstm_eval.cc, PopulateQuantizedLstmParams8x8_8 in lstm.cc,
internal/reference/portable_tensor_utils.cc
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Tensor, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import clip, ensure_scale, quantize_multiplier, quotient
from oplet.kernels.operands import all_constant
from oplet_builtin_ops.arithmetic.gate_tables import LOWEST
from oplet_builtin_ops.arithmetic.integer_products import IntegerProduct, rescale_calls, shift_calls
from oplet_builtin_ops.layers.program import Call
from oplet_builtin_ops.recurrent.lstm_integer import clip_calls, effective_scale, look_up_calls, quantized_clip, update_cell_calls
from oplet_builtin_ops.recurrent.lstm_tensors import Gate, LstmSettings, LstmTensors
from oplet_builtin_ops.recurrent.sequences import Layout

__all__ = ["LowIntegerLstm"]

_INT16 = np.array(-32768, np.int64), np.array(32767, np.int64)
_INT8 = np.array(-128, np.int64), np.array(127, np.int64)
_FLOAT = np.float32
#: The first intermediate scale of each gate: of the sum; those of the input's product and the recurrent product follow.
_SCALES = {"forget": 3, "cell": 6, "output": 9}


@functools.cache
def _table(function: Callable[[Array], Array], fraction_bits: int) -> NDArray[np.int64]:
    """Tabulate `function` for every int16 with `fraction_bits` fraction bits; results in units of 2**-15, truncated."""
    values = np.arange(LOWEST, 32768, dtype=np.float64) * 2.0**-fraction_bits
    reals = function(values).astype(np.float32).astype(np.float64)
    return np.clip(np.trunc(reals * 32768), LOWEST, 32767).astype(np.int64)


def _logistic(values: Array) -> Array:
    # As in LiteRT, in single precision after the exponential.
    return np.asarray(_FLOAT(1) / (_FLOAT(1) + np.exp(-values).astype(np.float32)))


def _normalize(values: Array, coefficients: Array, bias: Array) -> None:
    """Layer-normalize int64 values in the int16 range in place, in float32."""
    reals = values.astype(np.float32)
    cells = _FLOAT(values.shape[1])
    # Running sums, as their rounding depends on the order.
    mean = np.add.accumulate(reals, 1)[:, -1:] / cells
    variance = np.add.accumulate(reals * reals, 1)[:, -1:] / cells - mean * mean
    floor = np.where(variance == 0, _FLOAT(1e-8), variance)
    normalized = (reals - mean) * (_FLOAT(1) / np.sqrt(floor))
    steps = (normalized * coefficients[0] * coefficients[1] + bias) * _FLOAT(4096)
    rounded = np.trunc(steps.astype(np.float64) + np.copysign(0.5, steps))
    np.copyto(values, np.clip(rounded, -32768, 32767), casting="unsafe")


class LowIntegerLstm:
    """The checked node of an integer LSTM with 12 intermediate scales; `thunk` makes the function that computes one time step."""

    def __init__(self, context: Context, node: Node, lstm: LstmTensors, settings: LstmSettings, layout: Layout) -> None:
        self.node, self.lstm, self.settings, self.batches = node, lstm, settings, layout.batches
        self.source, self.output = node.inputs[0], node.outputs[0]
        ensure(lstm.has_norm, "an LSTM with 12 intermediate tensors must have layer-norm coefficients.")
        ensure(
            lstm.projection is not None and lstm.projection_bias is not None,
            "an LSTM with 12 intermediate tensors must have projection weights and a projection bias.",
        )
        ensure(lstm.cell_state.scale == 2.0**-15, f"the cell state {lstm.cell_state} must have scale 1/32768.")
        weights = [tensor for gate in lstm.gates for tensor in (gate.inputs, gate.recurrent, gate.norm)]
        for tensor in (self.source, self.output, lstm.output_state, lstm.projection, *weights, *node.intermediates):
            if tensor is not None:
                ensure_scale(tensor)

    def thunk(self, source: Tensor, auxiliary: Tensor | None, output: Array) -> Thunk:
        """Return a function that runs the step; `auxiliary` is not supported."""
        if not all_constant(list(self.lstm.constants())):
            return lambda: self._bind(output)()
        return self._bind(output)

    def _bind(self, output: Array) -> Thunk:
        lstm = self.lstm
        shape = self.batches, lstm.cells
        forget, cell, gate_output, product, spare, state = (np.empty(shape, np.int64) for _ in range(6))
        state_tensor = lstm.cell_state.data.reshape(shape)
        hidden = lstm.output_state.data.reshape(self.batches, lstm.outputs)
        spares = product, spare
        bound = quantized_clip(self.settings.cell_clip, lstm.cell_state.scale, 32767) if self.settings.cell_clip < 1 else 0
        logistic, tanh = _table(_logistic, 12), _table(np.tanh, 12)
        calls: list[Call] = [(np.copyto, (state, state_tensor))]
        calls += [*self._gate(lstm.forget, forget, hidden, spares), *look_up_calls(logistic, forget, spare, forget)]
        calls += [*self._gate(lstm.cell, cell, hidden, spares), *look_up_calls(tanh, cell, spare, cell)]
        calls += update_cell_calls(state, None, forget, cell, 15, bound, spares)
        calls += [
            *self._gate(lstm.output, gate_output, hidden, spares),
            *look_up_calls(logistic, gate_output, spare, gate_output),
        ]
        calls += look_up_calls(_table(np.tanh, 15), state, spare, product)
        calls += [(np.multiply, (gate_output, product, product)), *shift_calls(product, 15, spare)]
        calls += [*self._project(product), (_store, (state_tensor, state))]

        def run() -> None:
            for function, arguments in calls:
                function(*arguments)
            output[...] = hidden

        return run

    def _gate(self, gate: Gate, target: Array, hidden: Array, spares: tuple[Array, Array]) -> list[Call]:
        """Return numpy calls that compute a gate before its activation into `target`."""
        between, first = self.node.intermediates, _SCALES[gate.name]
        recurrent, spare = spares
        calls: list[Call] = []
        for product, activations, values, weights, position in (
            (target, self.source, self.source.data, gate.inputs, first + 1),
            (recurrent, self.lstm.output_state, hidden, gate.recurrent, first + 2),
        ):
            if position == 11:
                # LiteRT reads the last scale of the output gate from a wrong position, and gets a factor of zero.
                calls.append((product.fill, (0,)))
                continue
            scale = effective_scale(weights.scale, activations.scale, between[position].scale)
            layer = IntegerProduct(self.node, [weights], None, -activations.zero_point, [scale])
            zero_point = np.array(between[position].zero_point, np.int64)
            calls += [*layer.calls(values, product), (np.add, (product, zero_point, product))]
            calls += [(clip, (product, *_INT8, product)), (np.subtract, (product, zero_point, product))]
            ratio = float(_FLOAT(quotient(between[position].scale, between[first].scale)))
            calls += rescale_calls(product, *quantize_multiplier(ratio), spare)
        calls += [(np.add, (target, recurrent, target)), (clip, (target, *_INT16, target))]
        return [*calls, self._normalization(gate, target)]

    def _normalization(self, gate: Gate, target: Array) -> Call:
        norm: Any = gate.norm
        multiplier, shift = quantize_multiplier(norm.scale)
        scale = _FLOAT(multiplier * 2.0 ** (shift - 31))
        bias = gate.bias.data.astype(np.float32) * (_FLOAT(2.0**-10) * scale)
        return _normalize, (target, (norm.data.astype(np.float32), scale), bias)

    def _project(self, values: Array) -> list[Call]:
        """Return numpy calls that project int16 values to the output state."""
        lstm: Any = self.lstm
        state = lstm.output_state
        scale = float(_FLOAT(quotient(lstm.projection.scale * 2.0**-15, state.scale)))
        layer = IntegerProduct(self.node, [lstm.projection], [lstm.projection_bias], 0, [quantize_multiplier(scale)], limit=32768)
        result = np.empty((self.batches, lstm.outputs), np.int64)
        calls: list[Call] = [*layer.calls(values, result), (np.add, (result, np.array(state.zero_point, np.int64), result))]
        calls.append((clip, (result, *_INT8, result)))
        calls += clip_calls(result, quantized_clip(self.settings.projection_clip, self.output.scale, 127))
        return [*calls, (_store, (state.data.reshape(result.shape), result))]


def _store(target: Array, values: Array) -> None:
    target[...] = values
