"""BIDIRECTIONAL_SEQUENCE_LSTM, compiled: float activations, weights of float32 or int8, small batches."""

from __future__ import annotations

from oplet import Context, Node
from oplet.schema.options import BidirectionalSequenceLSTMOptions
from oplet_builtin_ops.ops.bidirectional_sequence_lstm import REGISTRATION as BUILTIN
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.recurrent.both_directions import output_places
from oplet_compiled_ops.recurrent.cells import FLOATS, bind_directions, plan_direction
from oplet_compiled_ops.recurrent.lstm import lstm_cell


def plan(context: Context, node: Node) -> Bind:
    sources, forward, backward = node.prepared
    directions = [
        plan_direction(context, node, lstm_cell(context, node, lstm, backward=lstm is backward), source, sources.auxiliary)
        for lstm, source in ((forward, sources.forward), (backward, sources.backward))
    ]
    merged = node.options(BidirectionalSequenceLSTMOptions).merge_outputs
    rows = forward.layout.steps * forward.layout.batches
    return bind_directions(context, directions, output_places(node, rows, forward.lstm.outputs, merged))


REGISTRATION = override(BUILTIN, plan, FLOATS)
