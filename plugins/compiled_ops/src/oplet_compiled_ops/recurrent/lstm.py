"""Float LSTM cells, compiled: their description as a `Cell`, and which nodes the compiled steps serve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oplet import Context, Node, Tensor, TensorType, decline
from oplet.kernels.activations import CLAMPS, float_activation_range
from oplet.kernels.operands import all_constant
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.recurrent.lstm_float import FloatLstm
from oplet_builtin_ops.recurrent.recurrent_products import Product, stacked
from oplet_compiled_ops.library.memory import Array
from oplet_compiled_ops.overriding import Bind
from oplet_compiled_ops.recurrent.cells import Cell, bind_directions, plan_direction, product_arguments
from oplet_compiled_ops.recurrent.full_steps import BOUNDED, FULL_LSTM_STEPS, LEFT_OUT, TANH
from oplet_compiled_ops.recurrent.steps import LSTM_STEPS

__all__ = ["lstm_cell", "plan_lstm"]


def plan_lstm(context: Context, node: Node) -> Bind:
    """Plan an LSTM node; decline (leave to numpy's kernel) weights that are no constants or are diagonal, and uncommon
    activations.
    """
    if not isinstance(node.prepared, FloatLstm):
        decline("it is no cell of floats.")
    cell, output = lstm_cell(context, node, node.prepared), node.outputs[0]
    direction = plan_direction(context, node, cell, node.inputs[0])
    rows = cell.layout.steps * cell.layout.batches
    return bind_directions(context, [direction], lambda: [(output.data.reshape(rows, output.shape[-1]), 0)])


def lstm_cell(context: Context, node: Node, prepared: FloatLstm, backward: bool = False) -> Cell:
    """Describe an LSTM in one direction as a `Cell`; decline weights that are no constants or are diagonal, and uncommon
    activations.

    `prepared` is what the numpy kernel has prepared; `backward` means from the last step to the first.
    """
    lstm, settings, recurrent = prepared.lstm, prepared.settings, prepared.recurrent
    if not isinstance(recurrent, Product) or not all_constant(list(lstm.constants())):
        decline("its weights are no constants, or diagonal matrices.")
    activation = settings.activation
    if activation != ActivationFunctionType.TANH and activation not in CLAMPS:
        decline("its activation is not one that it computes.")
    states, biases = (lstm.output_state, lstm.cell_state), [gate.bias for gate in lstm.gates]
    products = prepared.inputs, recurrent, prepared.auxiliary
    plain = not (lstm.has_peephole or lstm.has_norm or lstm.projection is not None)
    if plain and activation == ActivationFunctionType.TANH:
        clip = float(settings.cell_clip)
        return Cell(prepared.layout, *products, biases, states, LSTM_STEPS, lambda: ((), (clip,)), backward)
    code = {ActivationFunctionType.TANH: TANH, ActivationFunctionType.NONE: LEFT_OUT}.get(activation, BOUNDED)
    numbers = code, *float_activation_range(activation), float(settings.cell_clip), float(settings.projection_clip)
    quantized = context.add_temporary(node, (lstm.cells,), TensorType.INT16) if recurrent.hybrid else None
    none: Array = np.zeros((0, 0), np.float32)

    def rows(tensors: Sequence[Tensor]) -> Array:
        return stacked(node, tensors, np.dtype(np.float32)).reshape(len(tensors), lstm.cells) if tensors else none

    def more() -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        peepholes = rows(side := [gate.peephole for gate in lstm.gates if gate.peephole is not None])
        if recurrent.hybrid and side:
            peepholes = peepholes * np.array([[tensor.scale] for tensor in side], np.float32)
        coefficients = rows([gate.norm for gate in lstm.gates if gate.norm is not None])
        bias = np.zeros(0, np.float32) if lstm.projection_bias is None else lstm.projection_bias.data
        early = _projection(node, prepared, quantized)
        return early, (peepholes, coefficients, rows(biases) if lstm.has_norm else none, bias, *numbers)

    return Cell(prepared.layout, *products, None if lstm.has_norm else biases, states, FULL_LSTM_STEPS, more, backward)


def _projection(node: Node, prepared: FloatLstm, quantized: Tensor | None) -> tuple[Any, ...]:
    """Return the kernel arguments of the projection, all empty if there is none, and zeros as what is added to its product.

    `quantized` is memory for the quantized row; None if the weights are floats.
    """
    nothing: Array = np.zeros(prepared.lstm.outputs, np.float32)
    if prepared.projection is not None:
        return *product_arguments(node, prepared.projection, quantized)[:3], nothing
    if quantized is None:
        return np.zeros((0, 0), np.float32), nothing
    return np.zeros((0, 0), np.int8), np.zeros(0, np.float32), quantized.data, nothing
