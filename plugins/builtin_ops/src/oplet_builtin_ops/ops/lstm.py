"""LSTM: one step. The full kernel has its states in variable tensors; the basic one has 5 inputs and 4 outputs.

Full: float, hybrid (float activations, int8 weights), integer with 5 intermediate scales (products added in int16) or 12 (products
rounded to int8). Numerics: tflite/kernels/lstm.cc, lstm_eval.cc
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.schema.enums import LSTMKernelType
from oplet.schema.options import LSTMOptions
from oplet_builtin_ops.recurrent.lstm_basic import bind_basic, prepare_basic
from oplet_builtin_ops.recurrent.lstm_float import FloatLstm
from oplet_builtin_ops.recurrent.lstm_integer import IntegerLstm
from oplet_builtin_ops.recurrent.lstm_integer_low import LowIntegerLstm
from oplet_builtin_ops.recurrent.lstm_tensors import SPARSE_WEIGHTS, LstmSettings, ensure_dense, read_lstm
from oplet_builtin_ops.recurrent.sequences import Layout


def prepare(context: Context, node: Node) -> None:
    options = node.options(LSTMOptions)
    if options.kernel_type == LSTMKernelType.BASIC:
        ensure_dense(node)
        prepare_basic(context, node)
        return
    ensure(len(node.inputs) in (20, 24), f"it has {len(node.inputs)} inputs and takes 20, or 24 with layer normalization.")
    ensure(len(node.outputs) == 1, f"it has {len(node.outputs)} outputs and gives 1.")
    ensure(node.has_input(0), "input 0 is left out (-1) and may not be.")
    source, output = node.inputs[0], node.outputs[0]
    ensure_type(source, TensorType.FLOAT32, TensorType.INT8)
    ensure_type(output, source.type)
    ensure(source.ndim == 2, f"{source} must have 2 dimensions.")
    batches, depth = source.shape
    integer = source.type == TensorType.INT8
    lstm = read_lstm(node, 1, 18, norms=20)
    lstm.check(depth, batches, integer=integer)
    settings, layout = LstmSettings.of(options), Layout(1, batches, True)
    context.resize_tensor(output, (batches, lstm.outputs))
    if not integer:
        node.prepared = FloatLstm(context, node, lstm, settings, layout)
        return
    ensure_dense(node)
    count = len(node.intermediates)
    ensure(count in (5, 12), f"it has {count} intermediate tensors; an integer LSTM takes 5 or 12.")
    kind = IntegerLstm if count == 5 else LowIntegerLstm
    node.prepared = kind(context, node, lstm, settings, layout)


def bind(context: Context, node: Node) -> Thunk:
    if node.options(LSTMOptions).kernel_type == LSTMKernelType.BASIC:
        return bind_basic(context, node)
    lstm: FloatLstm | IntegerLstm | LowIntegerLstm = node.prepared
    return lstm.thunk(node.inputs[0], None, node.outputs[0].data[None])


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    sparse=SPARSE_WEIGHTS,
    types=(TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8),
    differences="sparse int8 weights are multiplied with the scale of their own activations, where LiteRT takes that of the input",
)
