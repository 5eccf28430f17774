"""RNN: one step of a basic recurrent cell; its state is a variable tensor. Numerics: tflite/kernels/basic_rnn.cc"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.schema.options import RNNOptions
from oplet_builtin_ops.recurrent.rnn_cell import RnnCell, RnnTensors
from oplet_builtin_ops.recurrent.sequences import Layout


def prepare(context: Context, node: Node) -> None:
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


def bind(context: Context, node: Node) -> Thunk:
    cell: RnnCell = node.prepared
    return cell.thunk(node.inputs[0], None, node.outputs[0].data[None])


REGISTRATION = Registration(prepare=prepare, bind=bind, types=(TensorType.FLOAT32,))
