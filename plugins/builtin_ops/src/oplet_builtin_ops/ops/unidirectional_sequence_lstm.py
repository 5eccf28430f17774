"""UNIDIRECTIONAL_SEQUENCE_LSTM: an LSTM over a sequence; its states are variable tensors.

Float, hybrid (float activations, int8 weights) and integer (int8 activations, int16 cell state). Recurrent weights may be
diagonal matrices. Numerics: tflite/kernels/unidirectional_sequence_lstm.cc, lstm_eval.cc
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.schema.options import UnidirectionalSequenceLSTMOptions
from oplet_builtin_ops.recurrent.lstm_float import FloatLstm
from oplet_builtin_ops.recurrent.lstm_integer import IntegerLstm
from oplet_builtin_ops.recurrent.lstm_tensors import SPARSE_WEIGHTS, LstmSettings, ensure_dense, read_lstm
from oplet_builtin_ops.recurrent.sequences import sequence_layout


def prepare(context: Context, node: Node) -> None:
    ensure(len(node.inputs) in (20, 24), f"it has {len(node.inputs)} inputs and takes 20, or 24 with layer normalization.")
    ensure(len(node.outputs) == 1, f"it has {len(node.outputs)} outputs and gives 1.")
    ensure(node.has_input(0), "input 0 is left out (-1) and may not be.")
    source, output = node.inputs[0], node.outputs[0]
    options = node.options(UnidirectionalSequenceLSTMOptions)
    ensure_type(source, TensorType.FLOAT32, TensorType.INT8)
    integer = source.type == TensorType.INT8
    ensure_type(output, source.type)
    if integer:
        ensure_dense(node)
    layout = sequence_layout(source, options.time_major)
    lstm = read_lstm(node, 1, 18, norms=20)
    lstm.check(source.shape[-1], layout.batches, integer=integer, diagonal=not integer)
    settings = LstmSettings.of(options)
    context.resize_tensor(output, (*source.shape[:-1], lstm.outputs))
    kind = IntegerLstm if integer else FloatLstm
    node.prepared = kind(context, node, lstm, settings, layout)


def bind(context: Context, node: Node) -> Thunk:
    lstm: FloatLstm | IntegerLstm = node.prepared
    return lstm.thunk(node.inputs[0], None, node.outputs[0].data)


REGISTRATION = Registration(prepare=prepare, bind=bind, sparse=SPARSE_WEIGHTS, types=(TensorType.FLOAT32, TensorType.INT8))
