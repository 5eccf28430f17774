"""Float RNN cells, compiled: their description as a `Cell`, and which nodes the compiled steps serve."""

from __future__ import annotations

from oplet import Context, Node, decline
from oplet.kernels.activations import CLAMPS, float_activation_range
from oplet.kernels.operands import all_constant
from oplet.schema.enums import ActivationFunctionType
from oplet_builtin_ops.recurrent.rnn_cell import RnnCell
from oplet_compiled_ops.overriding import Bind
from oplet_compiled_ops.recurrent.cells import Cell, bind_directions, plan_direction
from oplet_compiled_ops.recurrent.steps import RNN_STEPS

__all__ = ["plan_rnn", "rnn_cell"]


def plan_rnn(context: Context, node: Node) -> Bind:
    """Plan an RNN node; decline (leave to numpy's kernel) weights that are no constants, and uncommon activations."""
    cell, output = rnn_cell(node.prepared), node.outputs[0]
    direction = plan_direction(context, node, cell, node.inputs[0])
    rows = cell.layout.steps * cell.layout.batches
    return bind_directions(context, [direction], lambda: [(output.data.reshape(rows, output.shape[-1]), 0)])


def rnn_cell(prepared: RnnCell, backward: bool = False, passes: int = 1) -> Cell:
    """Describe an RNN cell in one direction as a `Cell`; decline weights that are no constants, and uncommon activations.

    `prepared` is what the numpy kernel has prepared; `backward` means from the last step to the first, `passes` how many times.
    """
    tensors, activation = prepared.tensors, prepared.activation
    if not all_constant([tensors.inputs, tensors.recurrent, tensors.bias, tensors.auxiliary]):
        decline("its weights are no constants.")
    if activation != ActivationFunctionType.TANH and activation not in CLAMPS:
        decline("its activation is not one that it computes.")
    numbers = int(activation in CLAMPS), *float_activation_range(activation)
    products = prepared.inputs, prepared.recurrent, prepared.auxiliary
    return Cell(prepared.layout, *products, [tensors.bias], [tensors.state], RNN_STEPS, lambda: ((), numbers), backward, passes)
