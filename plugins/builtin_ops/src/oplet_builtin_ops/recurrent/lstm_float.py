"""The LSTM cell in float over a sequence; weights are float32, or int8 with activations quantized at run time (hybrid).

The inputs' contributions to the gates are computed for all steps in one product, before the loop over steps.

Numerics: EvalFloat and EvalHybrid in tflite/kernels/lstm_eval.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Tensor, checkpoint
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.fixed_point import clip
from oplet.kernels.operands import all_constant
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.arithmetic.fused_activations import apply_activation
from oplet_builtin_ops.layers.program import Call
from oplet_builtin_ops.recurrent.lstm_tensors import Gate, LstmSettings, LstmTensors
from oplet_builtin_ops.recurrent.recurrent_products import Product, recurrent_products, stacked
from oplet_builtin_ops.recurrent.sequences import Layout

__all__ = ["FloatLstm"]

_ONE = np.array(1, np.float32)
_MINUS_ONE = np.array(-1, np.float32)
_VARIANCE_FLOOR = np.array(1e-8, np.float32)


def sigmoid_calls(values: Array) -> list[Call]:
    """Return numpy calls that compute 1 / (1 + exp(-x)) in place; exp may overflow."""
    # Not np.negative: numpy 2.4 gives wrong values where source and target have a stride of four values.
    return [
        (np.multiply, (values, _MINUS_ONE, values)),
        (np.exp, (values, values)),
        (np.add, (values, _ONE, values)),
        (np.divide, (_ONE, values, values)),
    ]


def activation_calls(values: Array, activation: ActivationFunctionType) -> list[Call]:
    """Return numpy calls that apply the activation in place."""
    if activation == ActivationFunctionType.TANH:
        return [(np.tanh, (values, values))]
    return [(apply_activation, (values, activation))]


def clip_calls(values: Array, bound: float) -> list[Call]:
    """Return numpy calls that clamp to [-bound, bound] in place; none if the bound is 0."""
    return [(clip, (values, np.array(-bound, np.float32), np.array(bound, np.float32), values))] if bound > 0 else []


def _normalization_calls(blocks: Array, coefficients: Array, bias: Array) -> list[Call]:
    """Return numpy calls that layer-normalize along the last axis, in place."""
    depth = blocks.shape[-1]
    shares = np.full(depth, 1 / depth, np.float32)
    means, squares = np.empty(blocks.shape[:-1], np.float32), np.empty(blocks.shape, np.float32)
    column = means[..., None]
    return [
        (np.matmul, (blocks, shares, means)),
        (np.subtract, (blocks, column, blocks)),
        (np.multiply, (blocks, blocks, squares)),
        (np.matmul, (squares, shares, means)),
        (np.add, (means, _VARIANCE_FLOOR, means)),
        (np.sqrt, (means, means)),
        (np.divide, (blocks, column, blocks)),
        (np.multiply, (blocks, coefficients, blocks)),
        (np.add, (blocks, bias, blocks)),
    ]


class FloatLstm:
    """Plan of one float LSTM in one direction.

    Args:
        context: the node's context.
        node: the node.
        lstm: the tensors of the LSTM.
        settings: the options of the LSTM.
        layout: the layout of the sequence in its tensors.
    """

    def __init__(self, context: Context, node: Node, lstm: LstmTensors, settings: LstmSettings, layout: Layout) -> None:
        self.node, self.lstm, self.settings, self.layout = node, lstm, settings, layout
        gates, batches, asymmetric = lstm.gates, layout.batches, settings.asymmetric
        rows, columns = layout.steps * batches, len(gates) * lstm.cells
        self.inputs = Product(context, node, [gate.inputs for gate in gates], rows, asymmetric)
        second = [gate.auxiliary for gate in gates if gate.auxiliary is not None]
        self.auxiliary = Product(context, node, second, rows, asymmetric) if second else None
        self.recurrent = recurrent_products(context, node, [gate.recurrent for gate in gates], batches, asymmetric)
        self.projection = None if lstm.projection is None else Product(context, node, [lstm.projection], batches, asymmetric)
        self.projected = [context.add_temporary(node, (rows, columns)) for _ in range(2 if second else 1)]
        self.gates = context.add_temporary(node, (batches, columns))
        self.spare = context.add_temporary(node, (batches, max(1, len(gates) - 2), lstm.cells))

    def thunk(self, source: Tensor, auxiliary: Tensor | None, output: Array, *, backward: bool = False) -> Thunk:
        """Return a function that runs the cell over the sequence.

        Args:
            source: the input of all steps.
            auxiliary: the second input of all steps, if the gates have weights for one.
            output: receives the outputs of all steps, in the layout of the input; may be a view.
            backward: whether to run from the last step to the first.
        """
        if not all_constant(list(self.lstm.constants())):
            return lambda: self._bind(source, auxiliary, output, backward)()
        return self._bind(source, auxiliary, output, backward)

    def _bind(self, source: Tensor, auxiliary: Tensor | None, output: Array, backward: bool) -> Thunk:
        gates = self.gates.data
        projected = self.projected[0].data
        before = self._project_inputs(source, auxiliary)
        hidden = self.lstm.output_state.data.reshape(self.layout.batches, self.lstm.outputs)
        recurrent = self.recurrent.calls(hidden, gates)
        step = self._step(hidden)
        inputs = self.layout.steps_of(projected.reshape(*self.layout.shape, projected.shape[1]), backward)
        outputs = self.layout.steps_of(output, backward)

        def run() -> None:
            for function, arguments in before:
                function(*arguments)
            with np.errstate(over="ignore"):
                for seen, given in zip(inputs, outputs):
                    checkpoint()
                    for function, arguments in recurrent:
                        function(*arguments)
                    np.add(gates, seen, gates)
                    for function, arguments in step:
                        function(*arguments)
                    given[...] = hidden

        return run

    def _project_inputs(self, source: Tensor, auxiliary: Tensor | None) -> list[Call]:
        """Return numpy calls that compute the inputs' part of all gates for all steps, plus the bias unless gates are normalized."""
        projected = self.projected[0].data
        calls: list[Call] = []
        if not self.lstm.has_norm:
            bias = stacked(self.node, [gate.bias for gate in self.lstm.gates])
            calls.append((np.add, (projected, bias, projected)))
        if self.auxiliary is not None and auxiliary is not None:
            second = self.projected[1].data
            calls += self.auxiliary.calls(auxiliary.data.reshape(len(second), auxiliary.shape[-1]), second)
            calls.append((np.add, (projected, second, projected)))
        return [*self.inputs.calls(source.data.reshape(len(projected), source.shape[-1]), projected), *calls]

    def _step(self, hidden: Array) -> list[Call]:
        """Return numpy calls for one time step, after the recurrent matrix product."""
        lstm, settings = self.lstm, self.settings
        early = lstm.gates[:-2]
        blocks = self.gates.data.reshape(self.layout.batches, len(lstm.gates), lstm.cells)
        first, output, cell = blocks[:, : len(early)], blocks[:, -2], blocks[:, -1]
        spares = self.spare.data
        spare = spares[:, 0]
        state = lstm.cell_state.data.reshape(self.layout.batches, lstm.cells)
        calls: list[Call] = []
        if lstm.has_peephole:
            calls += [(np.multiply, (state[:, None], self._peepholes(early), spares)), (np.add, (first, spares, first))]
            calls += [*self._normalized(first, early), *sigmoid_calls(first)]
        else:
            calls += [*self._normalized(blocks[:, :-1], lstm.gates[:-1]), *sigmoid_calls(blocks[:, :-1])]
        calls += [*self._normalized(cell[:, None], [lstm.cell]), *activation_calls(cell, settings.activation)]
        forget = first[:, -1]
        calls.append((np.multiply, (forget, state, state)))
        if lstm.input is None:
            calls.append((np.subtract, (_ONE, forget, forget)))
        calls += [(np.multiply, (first[:, 0], cell, spare)), (np.add, (state, spare, state))]
        calls += clip_calls(state, settings.cell_clip)
        if lstm.has_peephole:
            calls += [(np.multiply, (state, self._peepholes([lstm.output])[0], spare)), (np.add, (output, spare, output))]
            calls += [*self._normalized(output[:, None], [lstm.output]), *sigmoid_calls(output)]
        return [*calls, *self._output(state, output, cell, spare, hidden)]

    def _output(self, state: Array, output: Array, cell: Array, spare: Array, hidden: Array) -> list[Call]:
        activation = self.settings.activation
        calls: list[Call] = []
        if activation == ActivationFunctionType.NONE:
            # As in LiteRT, whose activation NONE copies nothing, so that the buffer keeps the cell gate.
            spare = cell
        elif activation == ActivationFunctionType.TANH:
            calls.append((np.tanh, (state, spare)))
        else:
            calls += [(np.copyto, (spare, state)), *activation_calls(spare, activation)]
        if self.projection is None:
            return [*calls, (np.multiply, (output, spare, hidden))]
        calls += [(np.multiply, (output, spare, output)), *self.projection.calls(output, hidden)]
        if self.lstm.projection_bias is not None:
            calls.append((np.add, (hidden, self.lstm.projection_bias.data, hidden)))
        return calls + clip_calls(hidden, self.settings.projection_clip)

    def _normalized(self, blocks: Array, gates: list[Gate]) -> list[Call]:
        if not self.lstm.has_norm:
            return []
        coefficients = stacked(self.node, [gate.norm for gate in gates if gate.norm is not None])
        bias = stacked(self.node, [gate.bias for gate in gates])
        shape = len(gates), self.lstm.cells
        return _normalization_calls(blocks, coefficients.reshape(shape), bias.reshape(shape))

    def _peepholes(self, gates: list[Gate]) -> Array:
        """Return the peephole weights as float32, one row per gate."""
        tensors = [gate.peephole for gate in gates if gate.peephole is not None]
        rows = stacked(self.node, tensors, np.dtype(np.float32)).reshape(len(gates), -1)
        if not self.inputs.hybrid:
            return rows
        return rows * np.array([[tensor.scale] for tensor in tensors], np.float32)
