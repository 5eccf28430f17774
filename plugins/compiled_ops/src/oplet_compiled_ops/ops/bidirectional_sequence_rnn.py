"""BIDIRECTIONAL_SEQUENCE_RNN, compiled: float activations, weights of float32 or int8, small batches."""

from __future__ import annotations

from oplet import Context, Node
from oplet.schema.options import BidirectionalSequenceRNNOptions
from oplet_builtin_ops.ops.bidirectional_sequence_rnn import REGISTRATION as BUILTIN
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.recurrent.both_directions import output_places
from oplet_compiled_ops.recurrent.cells import FLOATS, bind_directions, plan_direction
from oplet_compiled_ops.recurrent.rnn import rnn_cell


def plan(context: Context, node: Node) -> Bind:
    sources, forward, backward = node.prepared
    layout = forward.layout
    # As in LiteRT, like the numpy kernel: which input the backward cell reads, and how often hybrid cells run over the sequence.
    against = sources.backward if layout.time_major else sources.forward
    passes = layout.steps if layout.time_major and forward.inputs.hybrid else 1
    directions = [
        plan_direction(context, node, rnn_cell(cell, cell is backward, passes), source, sources.auxiliary)
        for cell, source in ((forward, sources.forward), (backward, against))
    ]
    merged = node.options(BidirectionalSequenceRNNOptions).merge_outputs
    rows = layout.steps * layout.batches
    return bind_directions(context, directions, output_places(node, rows, forward.tensors.units, merged))


REGISTRATION = override(BUILTIN, plan, FLOATS)
