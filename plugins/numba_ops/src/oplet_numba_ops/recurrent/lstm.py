"""LSTM cells of floats, compiled: which of their nodes compiled steps serve."""

from __future__ import annotations

from oplet import Context, Node, decline
from oplet.kernels.operands import all_constant
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.kit.lstm import FloatLstm
from oplet_builtin_ops.kit.recurrence import Product
from oplet_numba_ops.overriding import Bind
from oplet_numba_ops.recurrent.cells import plan_cell
from oplet_numba_ops.recurrent.steps import LSTM_STEPS

__all__ = ["plan_lstm"]


def plan_lstm(context: Context, node: Node) -> Bind:
    """Lay out an LSTM of tanh without peepholes, layer normalization, projection and diagonal weights; another one is declined."""
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
    return plan_cell(context, node, prepared.layout, (prepared.inputs, prepared.recurrent), biases, states, LSTM_STEPS, (clip,))
