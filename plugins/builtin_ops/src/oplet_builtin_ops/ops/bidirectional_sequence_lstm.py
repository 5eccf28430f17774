"""BIDIRECTIONAL_SEQUENCE_LSTM: one LSTM over a sequence forwards and another backwards; their states are variable tensors.

Float, or hybrid (float activations, int8 weights). An auxiliary input is a second input of both LSTMs if there are weights for it,
else the input of the backward one. Numerics: tflite/kernels/bidirectional_sequence_lstm.cc, lstm_eval.cc
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.schema.options import BidirectionalSequenceLSTMOptions
from oplet_builtin_ops.recurrent.bidirectional import in_order, output_views, read_sources, resize_outputs
from oplet_builtin_ops.recurrent.lstm_float import FloatLstm
from oplet_builtin_ops.recurrent.lstm_tensors import LstmSettings, read_lstm
from oplet_builtin_ops.recurrent.sequences import sequence_layout

#: The weights of both LSTMs, and those of their auxiliary inputs.
_SPARSE = frozenset({*range(1, 9), 16, *range(18, 26), 33, *range(40, 48)})


def prepare(context: Context, node: Node) -> None:
    ensure(len(node.inputs) == 48, f"it has {len(node.inputs)} inputs and takes 48.")
    ensure(node.has_input(0), "input 0 is left out (-1) and may not be.")
    options = node.options(BidirectionalSequenceLSTMOptions)
    ensure_type(node.inputs[0], TensorType.FLOAT32)
    layout = sequence_layout(node.inputs[0], options.time_major)
    settings = LstmSettings.of(options)
    # There are auxiliary weights if the forget gate has some.
    weighted = node.has_input(41)
    for position in (41, 42, 43, 45, 46, 47):
        ensure(node.has_input(position) == weighted, f"input {position}: auxiliary weights must be given for all gates or none.")
    sources = read_sources(node, 39, weighted)
    lstms = []
    for first, states, auxiliary in ((1, 35, 40), (18, 37, 44)):
        tensors = read_lstm(node, first, states, auxiliary=auxiliary)
        depth = sources.forward.shape[-1]
        tensors.check(depth, layout.batches, integer=False, auxiliary_depth=sources.auxiliary_depth)
        lstms.append(FloatLstm(context, node, tensors, settings, layout))
    forward, backward = (lstm.lstm for lstm in lstms)
    ensure(
        forward.output.inputs.type == backward.output.inputs.type,
        f"the weights of both directions must be of one type: {forward.output.inputs} and {backward.output.inputs}.",
    )
    resize_outputs(context, node, layout, (forward.outputs, backward.outputs), options.merge_outputs)
    node.prepared = sources, *lstms


def bind(context: Context, node: Node) -> Thunk:
    sources, forward, backward = node.prepared
    merged = node.options(BidirectionalSequenceLSTMOptions).merge_outputs
    first, second = output_views(node, forward.lstm.outputs, merged)
    run_forward = forward.thunk(sources.forward, sources.auxiliary, first)
    run_backward = backward.thunk(sources.backward, sources.auxiliary, second, backward=True)
    return in_order(run_forward, run_backward)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    sparse=_SPARSE,
    types=(TensorType.FLOAT32,),
    differences="with batch-major merged outputs each batch keeps its own state, where LiteRT writes beyond it",
)
