"""The LSTM cell in integers: int8 activations and weights, int16 gates and cell state.

Gates have 12 fraction bits; the outputs of their activations have 15. All arithmetic here is in int64, so that values wrap around
only where LiteRT's do, and matrix products are in floats that are wide enough to be exact.

Numerics: EvalInteger8x8_16 in tflite/kernels/lstm_eval.cc, PopulateQuantizedLstmParams8x8_16 in lstm.cc,
internal/reference/portable_tensor_utils.cc
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from oplet import Context, Node, Tensor, checkpoint, ensure
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import clip, ensure_scale, quantize_multiplier, quotient
from oplet.kernels.operands import all_constant
from oplet_builtin_ops.arithmetic.gate_tables import LOWEST, logistic_table, tanh_table
from oplet_builtin_ops.arithmetic.integer_products import IntegerProduct, rescale_calls, shift_calls
from oplet_builtin_ops.arithmetic.scaling import power_of_two_exponent
from oplet_builtin_ops.layers.program import Call
from oplet_builtin_ops.recurrent.integer_layer_norm import IntegerLayerNorm
from oplet_builtin_ops.recurrent.lstm_tensors import Gate, LstmSettings, LstmTensors
from oplet_builtin_ops.recurrent.sequences import Layout

__all__ = ["IntegerLstm", "clip_calls", "effective_scale", "look_up_calls", "quantized_clip", "update_cell_calls"]

_INT16: Final = np.array(-32768, np.int64), np.array(32767, np.int64)
_INT8: Final = np.array(-128, np.int64), np.array(127, np.int64)
_OFFSET: Final = np.array(-LOWEST, np.int64)
_ORDER: Final = {"input": 0, "forget": 1, "cell": 2, "output": 3}


def effective_scale(a: float, b: float, c: float) -> tuple[int, int]:
    """Return a * b / c, computed in float32, as (multiplier, shift): multiplier * 2**(shift - 31)."""
    with np.errstate(all="ignore"):
        return quantize_multiplier(float(np.float32(a) * np.float32(b) / np.float32(c)))


def quantized_clip(bound: float, scale: float, largest: int) -> int:
    """Quantize a clipping bound in steps of `scale`, at most `largest`; 0 means no clipping."""
    return int(min(max(np.float32(bound) / np.float32(scale), np.float32(-largest - 1)), np.float32(largest))) if bound > 0 else 0


def clip_calls(values: Array, bound: int) -> list[Call]:
    """Return numpy calls that clamp to [-bound, bound] in place; none if the bound is 0."""
    return [(clip, (values, np.array(-bound, np.int64), np.array(bound, np.int64), values))] if bound > 0 else []


def look_up_calls(table: Array, values: Array, index: Array, target: Array) -> list[Call]:
    """Return numpy calls: target = table[values], with values saturated to int16; `index` is scratch."""
    return [(np.add, (values, _OFFSET, index)), (table.take, (index, None, target, "clip"))]


def update_cell_calls(
    state: Array,
    input_gate: Array | None,
    forget: Array,
    cell: Array,
    fraction_bits: int,
    bound: int,
    spares: tuple[Array, Array],
) -> list[Call]:
    """Return numpy calls: state = forget * state + input * cell, saturating; without an input gate, input = 1 - forget (CIFG).

    Args:
        fraction_bits: the fraction bits of the state; gates have 15.
        bound: the bound of the state; 0 for none.
    """
    product, spare = spares
    calls: list[Call] = [(np.multiply, (forget, state, state)), *shift_calls(state, 15, spare)]
    if input_gate is None:
        calls.append((np.subtract, (_INT16[1], forget, forget)))
    calls += [(np.multiply, (forget if input_gate is None else input_gate, cell, product))]
    calls += shift_calls(product, 30 - fraction_bits, spare)
    calls += [(np.add, (state, product, state)), (clip, (state, *_INT16, state))]
    return calls + clip_calls(state, bound)


class IntegerLstm:
    """The plan of an integer LSTM over a sequence: int8 activations, int16 gates and cell state."""

    def __init__(self, context: Context, node: Node, lstm: LstmTensors, settings: LstmSettings, layout: Layout) -> None:
        self.node, self.lstm, self.settings, self.layout = node, lstm, settings, layout
        count = len(node.intermediates)
        ensure(count == 5, f"it has {count} intermediate tensors; an integer LSTM takes 5.")
        self.source, self.output = node.inputs[0], node.outputs[0]
        self.hidden = node.intermediates[4]
        for tensor in (self.source, self.output, self.hidden, lstm.output_state):
            ensure_scale(tensor)
        exponent = power_of_two_exponent(ensure_scale(lstm.cell_state))
        ensure(
            exponent is not None and -15 <= exponent <= -9,
            f"the cell state {lstm.cell_state} has scale {lstm.cell_state.scale:g}; it must be a power of two from 2**-15 to 2**-9.",
        )
        self.fraction_bits = -(exponent or 0)
        for gate in lstm.gates:
            self._gate_scale(gate)
            for weights in (gate.inputs, gate.recurrent, gate.peephole, gate.norm):
                if weights is not None:
                    ensure_scale(weights)
        if lstm.projection is not None:
            ensure_scale(lstm.projection)

    def _gate_scale(self, gate: Gate) -> float:
        """Return the scale of a gate before its activation: 2**-12, or the intermediate tensor's if it is layer-normalized."""
        return ensure_scale(self.node.intermediates[_ORDER[gate.name]]) if self.lstm.has_norm else 2.0**-12

    def thunk(self, source: Tensor, auxiliary: Tensor | None, output: Array) -> Thunk:
        """Return a function that runs the cell over the sequence; `auxiliary` is not supported."""
        if not all_constant(list(self.lstm.constants())):
            return lambda: self._bind(source, output)()
        return self._bind(source, output)

    def _bind(self, source: Tensor, output: Array) -> Thunk:
        lstm, (steps, batches, _) = self.lstm, self.layout
        inputs, recurrent = self._products()
        columns = inputs.columns
        projected = np.empty((steps * batches, columns), np.int64)
        before = [
            *inputs.calls(source.data.reshape(steps * batches, source.shape[-1]), projected),
            (clip, (projected, *_INT16, projected)),
        ]
        gates = np.empty((batches, columns), np.int64)
        hidden, state = (np.empty(shape, np.int64) for shape in ((batches, lstm.outputs), (batches, lstm.cells)))
        again, step = recurrent.calls(hidden, gates), self._step(gates, state, hidden)
        hidden_tensor = lstm.output_state.data.reshape(hidden.shape)
        state_tensor = lstm.cell_state.data.reshape(state.shape)
        seen_steps = self.layout.steps_of(projected.reshape(*self.layout.shape, columns))
        given_steps = self.layout.steps_of(output)

        def run() -> None:
            for function, arguments in before:
                function(*arguments)
            hidden[...] = hidden_tensor
            state[...] = state_tensor
            for seen, given in zip(seen_steps, given_steps):
                checkpoint()
                for function, arguments in again:
                    function(*arguments)
                np.add(gates, seen, gates)
                for function, arguments in step:
                    function(*arguments)
                given[...] = hidden
            hidden_tensor[...] = hidden
            state_tensor[...] = state

        return run

    def _products(self) -> tuple[IntegerProduct, IntegerProduct]:
        """Return the two products of all gates: input by input weights, and previous output by recurrent weights."""
        gates, norm = self.lstm.gates, self.lstm.has_norm
        scales = [
            [effective_scale(weights.scale, tensor.scale, self._gate_scale(gate)) for gate, weights in zip(gates, weights_of)]
            for tensor, weights_of in (
                (self.source, [gate.inputs for gate in gates]),
                (self.lstm.output_state, [gate.recurrent for gate in gates]),
            )
        ]
        biases = None if norm else [gate.bias for gate in gates]
        inputs = IntegerProduct(self.node, [gate.inputs for gate in gates], biases, -self.source.zero_point, scales[0])
        zero_point = -self.lstm.output_state.zero_point
        return inputs, IntegerProduct(self.node, [gate.recurrent for gate in gates], None, zero_point, scales[1])

    def _step(self, gates: Array, state: Array, hidden: Array) -> list[Call]:
        """Return numpy calls for one time step, after the recurrent matrix product."""
        lstm, shape = self.lstm, state.shape
        early = lstm.gates[:-2]
        blocks = gates.reshape(shape[0], len(lstm.gates), shape[1])
        spares = np.empty(shape, np.int64), np.empty(shape, np.int64)
        index = np.empty(blocks.shape, np.int64)
        simple = not (lstm.has_peephole or lstm.has_norm)
        calls: list[Call] = []
        if not simple:
            calls.append((clip, (gates, *_INT16, gates)))
            for position, gate in enumerate(early):
                calls += self._corrected(blocks[:, position], gate, state, spares)
            calls += self._corrected(blocks[:, -1], lstm.cell, state, spares)
        now = slice(len(early) + 1) if simple else slice(len(early))
        calls += look_up_calls(logistic_table(), blocks[:, now], index[:, now], blocks[:, now])
        output, cell = blocks[:, -2], blocks[:, -1]
        calls += look_up_calls(tanh_table(3), cell, index[:, -1], cell)
        input_gate = None if lstm.input is None else blocks[:, 0]
        bound = quantized_clip(self.settings.cell_clip, lstm.cell_state.scale, 32767)
        calls += update_cell_calls(state, input_gate, blocks[:, len(early) - 1], cell, self.fraction_bits, bound, spares)
        if not simple:
            calls += self._corrected(output, lstm.output, state, spares)
            calls += look_up_calls(logistic_table(), output, index[:, -2], output)
        return [*calls, *self._output(state, output, hidden, spares)]

    def _corrected(self, values: Array, gate: Gate, state: Array, spares: tuple[Array, Array]) -> list[Call]:
        """Return numpy calls that add the peephole term to a gate and layer-normalize it."""
        calls: list[Call] = []
        product, spare = spares
        if gate.peephole is not None:
            scale = float(np.float32(quotient(2.0**-self.fraction_bits * gate.peephole.scale, self._gate_scale(gate))))
            calls += [(np.multiply, (state, self._peephole(gate.peephole.data), product))]
            calls += rescale_calls(product, *quantize_multiplier(scale), spare)
            calls += [(np.add, (values, product, values)), (clip, (values, *_INT16, values))]
        if gate.norm is not None:
            calls += IntegerLayerNorm.of(gate.norm, gate.bias).calls(values)
        return calls

    def _peephole(self, weights: Array) -> Array:
        """Return peephole weights as (batches, cells), in the order in which LiteRT reads them.

        With fewer outputs than cells, the first `outputs` weights are repeated for each batch, without gaps; zeros fill the rest.
        """
        batches, cells, outputs = self.layout.batches, self.lstm.cells, self.lstm.outputs
        if outputs >= cells:
            return weights.astype(np.int64)
        taken = np.zeros(batches * cells, np.int64)
        taken[: batches * outputs] = np.tile(weights[:outputs], batches)
        return taken.reshape(batches, cells)

    def _output(self, state: Array, output: Array, hidden: Array, spares: tuple[Array, Array]) -> list[Call]:
        product, spare = spares
        calls = look_up_calls(tanh_table(15 - self.fraction_bits), state, spare, product)
        calls.append((np.multiply, (output, product, product)))
        scale = float(np.float32(quotient(2.0**-15, self.hidden.scale) * 2.0**-15))
        calls += rescale_calls(product, *quantize_multiplier(scale), spare)
        projection, zero_point = self.lstm.projection, self.hidden.zero_point
        if projection is None:
            return [*calls, (np.add, (product, _scalar(zero_point), hidden)), (clip, (hidden, *_INT8, hidden))]
        # As in LiteRT, the zero point is subtracted here and added by the projection's bias.
        calls += [(np.add, (product, _scalar(-zero_point), product)), (clip, (product, *_INT8, product))]
        state_scale = self.lstm.output_state.scale
        scales = [effective_scale(projection.scale, self.hidden.scale, state_scale)]
        bias = self.lstm.projection_bias
        layer = IntegerProduct(self.node, [projection], None if bias is None else [bias], zero_point, scales)
        calls += [*layer.calls(product, hidden), (np.add, (hidden, _scalar(self.lstm.output_state.zero_point), hidden))]
        calls.append((clip, (hidden, *_INT8, hidden)))
        return calls + clip_calls(hidden, quantized_clip(self.settings.projection_clip, self.output.scale, 127))


def _scalar(value: int) -> Any:
    return np.array(value, np.int64)
