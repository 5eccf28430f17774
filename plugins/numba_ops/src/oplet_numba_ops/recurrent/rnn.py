"""Basic recurrent cells of floats, compiled: which of their nodes compiled steps serve."""

from __future__ import annotations

from oplet import Context, Node, decline
from oplet.kernels.activations import CLAMPS, float_activation_range
from oplet.kernels.operands import all_constant
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.kit.rnn import RnnCell
from oplet_numba_ops.overriding import Bind
from oplet_numba_ops.recurrent.cells import plan_cell
from oplet_numba_ops.recurrent.steps import RNN_STEPS

__all__ = ["plan_rnn"]


def plan_rnn(context: Context, node: Node) -> Bind:
    """Lay out a basic cell; one of an uncommon activation is declined."""
    cell: RnnCell = node.prepared
    tensors, activation = cell.tensors, cell.activation
    if not all_constant([tensors.inputs, tensors.recurrent, tensors.bias]):
        decline("its weights are no constants.")
    if activation != ActivationFunctionType.TANH and activation not in CLAMPS:
        decline("its activation is not one that it computes.")
    settings = int(activation in CLAMPS), *float_activation_range(activation)
    products = cell.inputs, cell.recurrent
    return plan_cell(context, node, cell.layout, products, [tensors.bias], [tensors.state], RNN_STEPS, settings)
