"""Plans of recurrent cells with constant weights, for LSTM and RNN nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Context, Node, NodeLimits, Tensor, TensorType, decline
from oplet.kernels.activations import float_activation_range
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.layers.program import Call, run_calls
from oplet_builtin_ops.layers.weights import CLAMPS
from oplet_builtin_ops.recurrent.lstm_float import FloatLstm
from oplet_builtin_ops.recurrent.recurrent_products import Product, all_constant, stacked
from oplet_builtin_ops.recurrent.rnn_cell import RnnCell
from oplet_builtin_ops.recurrent.sequences import Layout
from oplet_numba_ops.compiling.kernels import Kernel
from oplet_numba_ops.overriding import Bind, Thunk
from oplet_numba_ops.recurrent.rows import PROJECT
from oplet_numba_ops.recurrent.steps import LSTM_STEPS, RNN_STEPS
from oplet_numba_ops.threads.splitting import cut, each, in_turn, slots
from oplet_numba_ops.threads.team import Step, ready, thunk

__all__ = ["FLOATS", "plan_lstm", "plan_rnn"]

FLOATS = NodeLimits(inputs=[[TensorType.FLOAT32]])
#: The most rows, by whether the weights are int8; for more, matrix products are faster than compiled code.
_FEW = {False: 4, True: 12}
#: The least products of a part.
_WORTH = 100_000
#: The most products between two checkpoints; the cost of a gate's activation, and of a step, in products.
_UNWATCHED, _GATE, _STEP = 1 << 25, 16, 64
#: The most products of bytes in a sum, which is then surely within int32.
_DEEPEST = 1 << 16


def plan_lstm(context: Context, node: Node) -> Bind:
    """Lay out an LSTM with tanh, without peepholes, layer normalization, projection and diagonal weights; others are declined."""
    prepared = node.prepared
    if not isinstance(prepared, FloatLstm) or not isinstance(prepared.recurrent, Product):
        decline("it is no cell of floats with constant weights.")
    lstm, settings = prepared.lstm, prepared.settings
    if lstm.has_peephole or lstm.has_norm or lstm.projection is not None or not all_constant(list(lstm.constants())):
        decline("it has peepholes, normalization, a projection, or weights that are no constants.")
    if settings.activation != ActivationFunctionType.TANH:
        decline("its activation is not TANH.")
    states = lstm.output_state, lstm.cell_state
    biases = [gate.bias for gate in lstm.gates]
    clip = float(settings.cell_clip)
    return _plan(context, node, prepared.layout, (prepared.inputs, prepared.recurrent), biases, states, LSTM_STEPS, (clip,))


def plan_rnn(context: Context, node: Node) -> Bind:
    """Lay out a basic RNN cell; activations other than the common ones are declined."""
    cell: RnnCell = node.prepared
    tensors, activation = cell.tensors, cell.activation
    if not all_constant([tensors.inputs, tensors.recurrent, tensors.bias]):
        decline("its weights are no constants.")
    if activation != ActivationFunctionType.TANH and activation not in CLAMPS:
        decline("its activation is not one that it computes.")
    settings = int(activation in CLAMPS), *float_activation_range(activation)
    products = cell.inputs, cell.recurrent
    return _plan(context, node, cell.layout, products, [tensors.bias], [tensors.state], RNN_STEPS, settings)


def _plan(
    context: Context,
    node: Node,
    layout: Layout,
    products: tuple[Product, Product],
    biases: list[Tensor],
    states: Any,
    kernels: dict[bool, Kernel],
    settings: tuple[Any, ...],
) -> Bind:
    inputs, recurrent = products
    source, output = node.inputs[0], node.outputs[0]
    hybrid, columns = recurrent.hybrid, recurrent.columns
    steps, batches = layout.steps, layout.batches
    rows, depth, width = steps * batches, source.shape[-1], output.shape[-1]
    if batches > _FEW[hybrid] or not source.size or not output.size or max(depth, width) > _DEEPEST:
        decline("it has many rows side by side, long rows, or nothing to compute.")
    kernel, project = kernels[hybrid], PROJECT[hybrid]
    ready(kernel, project)
    projected = context.add_temporary(node, (rows, columns))
    gates = context.add_temporary(node, (columns,))
    parts = cut(rows, rows * depth * columns // _WORTH, context.num_threads)
    # Memory for a quantized row: of the input in each part, and of the state.
    lines = [context.add_temporary(node, (depth,), TensorType.INT16) if hybrid else None for _ in range(slots(parts))]
    line = context.add_temporary(node, (width,), TensorType.INT16) if hybrid else None
    strides = (batches, 1) if layout.time_major else (1, steps)
    pace = max(1, _UNWATCHED // (batches * (columns * (width + _GATE) + _STEP)))

    def weights_of(product: Product, quantized: Tensor | None) -> tuple[Any, ...]:
        weights = stacked(node, product.weights)
        return (weights,) if quantized is None else (weights, product.scales, quantized.data, int(product.asymmetric))

    def bind() -> Thunk:
        values, target, bias = source.data.reshape(rows, depth), projected.data, stacked(node, biases)
        calls: list[Call] = []
        before: list[Step] = []
        if not hybrid and rows > _FEW[hybrid]:
            calls += [*inputs.calls(values, target), (np.add, (target, bias, target))]
        else:
            weights = [weights_of(inputs, one) for one in lines]
            before.append(
                Step(
                    project,
                    each(parts, lambda some, slot: (values[slice(*some)], *weights[slot], bias, target[slice(*some)])),
                )
            )
        cells = [state.data.reshape(batches, width) for state in states]
        arguments = target, *weights_of(recurrent, line), *cells, gates.data, *settings, output.data.reshape(rows, width)
        before.append(Step(kernel, each(in_turn(steps, pace), lambda some, _: (*arguments, *some, *strides))))
        calls.append((thunk(before, context.num_threads), ()))
        return calls[0][0] if len(calls) == 1 else run_calls(calls)

    return bind
