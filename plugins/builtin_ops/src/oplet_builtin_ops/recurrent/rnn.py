"""RNN: one step of a basic recurrent cell; UNIDIRECTIONAL_SEQUENCE_RNN: the cell over a sequence. Their states are variable tensors.

Numerics: tflite/kernels/basic_rnn.cc, unidirectional_sequence_rnn.cc, internal/kernel_utils.cc
"""

from __future__ import annotations

from oplet import BuiltinOperator, Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.schema.options import RNNOptions, SequenceRNNOptions
from oplet_builtin_ops.recurrent.rnn_cell import RnnCell, RnnTensors
from oplet_builtin_ops.recurrent.sequences import Layout, sequence_layout


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 5)
    source, *tensors = node.inputs
    output = node.outputs[0]
    ensure_type(source, TensorType.FLOAT32)
    ensure_type(output, TensorType.FLOAT32)
    options: RNNOptions | SequenceRNNOptions
    if node.op is BuiltinOperator.RNN:
        options = node.options(RNNOptions)
        ensure(source.ndim == 2, f"{source} must have 2 dimensions.")
        layout, shape = Layout(1, source.shape[0], True), source.shape[:1]
    else:
        options = node.options(SequenceRNNOptions)
        layout = sequence_layout(source, options.time_major)
        shape = layout.shape
    cell = RnnTensors(*tensors)
    cell.check(source.shape[-1], layout.batches)
    context.resize_tensor(output, (*shape, cell.units))
    node.prepared = RnnCell(context, node, cell, layout, options.fused_activation_function, options.asymmetric_quantize_inputs)


def bind(context: Context, node: Node) -> Thunk:
    cell: RnnCell = node.prepared
    output = node.outputs[0].data
    return cell.thunk(node.inputs[0], None, output[None] if node.op is BuiltinOperator.RNN else output)


RNN = UNIDIRECTIONAL_SEQUENCE_RNN = Registration(prepare=prepare, bind=bind, types=(TensorType.FLOAT32,))
