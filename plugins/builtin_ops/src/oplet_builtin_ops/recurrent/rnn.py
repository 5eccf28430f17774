"""RNN: one step of a basic recurrent cell; UNIDIRECTIONAL_SEQUENCE_RNN: the cell over a sequence. Their states are variable tensors.

Numerics: tflite/kernels/basic_rnn.cc, unidirectional_sequence_rnn.cc, internal/kernel_utils.cc
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.schema.options import RNNOptions, SequenceRNNOptions
from oplet_builtin_ops.recurrent.rnn_cell import RnnCell, RnnTensors
from oplet_builtin_ops.recurrent.sequences import Layout, sequence_layout


def _prepare_rnn(context: Context, node: Node) -> None:
    ensure_operands(node, 5)
    source, *tensors = node.inputs
    output, options = node.outputs[0], node.options(RNNOptions)
    ensure_type(source, TensorType.FLOAT32)
    ensure_type(output, TensorType.FLOAT32)
    ensure(source.ndim == 2, f"{source} must have 2 dimensions.")
    batches, depth = source.shape
    cell = RnnTensors(*tensors)
    cell.check(depth, batches)
    context.resize_tensor(output, (batches, cell.units))
    layout = Layout(1, batches, True)
    node.prepared = RnnCell(context, node, cell, layout, options.fused_activation_function, options.asymmetric_quantize_inputs)


def _bind_rnn(context: Context, node: Node) -> Thunk:
    cell: RnnCell = node.prepared
    return cell.thunk(node.inputs[0], None, node.outputs[0].data[None])


def _prepare_unidirectional_sequence_rnn(context: Context, node: Node) -> None:
    ensure_operands(node, 5)
    source, *tensors = node.inputs
    output, options = node.outputs[0], node.options(SequenceRNNOptions)
    ensure_type(source, TensorType.FLOAT32)
    ensure_type(output, TensorType.FLOAT32)
    layout = sequence_layout(source, options.time_major)
    cell = RnnTensors(*tensors)
    cell.check(source.shape[-1], layout.batches)
    context.resize_tensor(output, (*layout.shape, cell.units))
    node.prepared = RnnCell(context, node, cell, layout, options.fused_activation_function, options.asymmetric_quantize_inputs)


def _bind_unidirectional_sequence_rnn(context: Context, node: Node) -> Thunk:
    cell: RnnCell = node.prepared
    return cell.thunk(node.inputs[0], None, node.outputs[0].data)


RNN = Registration(prepare=_prepare_rnn, bind=_bind_rnn, types=(TensorType.FLOAT32,))
UNIDIRECTIONAL_SEQUENCE_RNN = Registration(
    prepare=_prepare_unidirectional_sequence_rnn, bind=_bind_unidirectional_sequence_rnn, types=(TensorType.FLOAT32,)
)
