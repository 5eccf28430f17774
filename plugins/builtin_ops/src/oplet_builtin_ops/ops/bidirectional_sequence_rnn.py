"""BIDIRECTIONAL_SEQUENCE_RNN: one basic recurrent cell over a sequence forwards and another backwards.

An auxiliary input is a second input of both if there are weights for it, else the input of the backward cell.

Numerics: tflite/kernels/bidirectional_sequence_rnn.cc, internal/kernel_utils.cc
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.schema.options import BidirectionalSequenceRNNOptions
from oplet_builtin_ops.recurrent.bidirectional import in_order, output_views, read_sources, resize_outputs
from oplet_builtin_ops.recurrent.rnn_cell import RnnCell, RnnTensors
from oplet_builtin_ops.recurrent.sequences import sequence_layout


def prepare(context: Context, node: Node) -> None:
    ensure(len(node.inputs) == 12, f"it has {len(node.inputs)} inputs and takes 12.")
    for position in range(9):
        ensure(node.has_input(position), f"input {position} is left out (-1) and may not be.")
    options = node.options(BidirectionalSequenceRNNOptions)
    ensure_type(node.inputs[0], TensorType.FLOAT32)
    layout = sequence_layout(node.inputs[0], options.time_major)
    weighted = node.has_input(10)
    ensure(weighted == node.has_input(11), "auxiliary weights (inputs 10 and 11) must be given for both directions or none.")
    sources = read_sources(node, 9, weighted)
    activation, asymmetric = options.fused_activation_function, options.asymmetric_quantize_inputs
    cells = []
    for first, auxiliary in ((1, 10), (5, 11)):
        weights, recurrent, bias, state = node.inputs[first : first + 4]
        tensors = RnnTensors(weights, recurrent, bias, state, node.optional_input(auxiliary))
        tensors.check(sources.forward.shape[-1], layout.batches, sources.auxiliary_depth)
        cells.append(RnnCell(context, node, tensors, layout, activation, asymmetric))
    forward, backward = cells
    ensure(
        forward.tensors.inputs.type == backward.tensors.inputs.type,
        f"the weights of both directions must be of one type: {forward.tensors.inputs} and {backward.tensors.inputs}.",
    )
    resize_outputs(context, node, layout, (forward.tensors.units, backward.tensors.units), options.merge_outputs)
    node.prepared = sources, forward, backward


def bind(context: Context, node: Node) -> Thunk:
    sources, forward, backward = node.prepared
    layout, options = forward.layout, node.options(BidirectionalSequenceRNNOptions)
    first, second = output_views(node, forward.tensors.units, options.merge_outputs)
    # As in LiteRT: without time_major both cells read the input, and hybrid cells run over the
    # sequence as many times as it has steps.
    against = sources.backward if layout.time_major else sources.forward
    passes = layout.steps if layout.time_major and forward.inputs.hybrid else 1
    run_forward = forward.thunk(sources.forward, sources.auxiliary, first, passes=passes)
    run_backward = backward.thunk(against, sources.auxiliary, second, backward=True, passes=passes)
    return in_order(run_forward, run_backward)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    types=(TensorType.FLOAT32,),
    differences="hybrid cells give merged outputs for several batches, where LiteRT crashes, and an auxiliary input may have a depth of its own, where LiteRT reads beside it",
)
