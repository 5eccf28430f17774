"""UNIDIRECTIONAL_SEQUENCE_RNN: a basic recurrent cell over a sequence; its state is a variable tensor.

Numerics: tflite/kernels/unidirectional_sequence_rnn.cc, internal/kernel_utils.cc
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.schema.options import SequenceRNNOptions
from oplet_builtin_ops.recurrent.rnn_cell import RnnCell, RnnTensors
from oplet_builtin_ops.recurrent.sequences import sequence_layout


def prepare(context: Context, node: Node) -> None:
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


def bind(context: Context, node: Node) -> Thunk:
    cell: RnnCell = node.prepared
    return cell.thunk(node.inputs[0], None, node.outputs[0].data)


REGISTRATION = Registration(prepare=prepare, bind=bind, types=(TensorType.FLOAT32,))
