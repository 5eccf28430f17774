"""Work estimates for profiles: multiply-adds and other operations of a node, counted from its tensors' shapes.

A product counts the multiply-adds of its definition, padding included, whatever a kernel saves or adds. Of everything else a
function of a value is one operation: an addition, a comparison, an exponential. What moves data alone has none. Operators whose work
depends on values (WHERE, WHILE, non-max suppression, hash tables) are not counted here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from oplet import Composite, Node, Work, WorkTable
from oplet.schema.enums import LSTMKernelType
from oplet.schema.options import BatchMatMulOptions, LocalResponseNormalizationOptions, LSTMOptions, Pool2DOptions
from oplet.schema.stablehlo_options import StablehloConvolutionOptions, StablehloDotGeneralOptions

__all__ = ["add_counts"]

#: One operation for each value that is written.
_POINTWISE = """
    ABS ADD ATAN2 BITWISE_XOR CAST CEIL COMPLEX_ABS COS DIV ELU EQUAL EXP FLOOR FLOOR_DIV FLOOR_MOD GELU GREATER GREATER_EQUAL HARD_SWISH LEAKY_RELU
    LESS LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR LOGISTIC MAXIMUM MINIMUM MUL NEG NOT_EQUAL POW PRELU RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1
    RIGHT_SHIFT ROUND RSQRT SELECT SELECT_V2 SIGN SIN SQRT SQUARE SUB TANH
    STABLEHLO_ABS STABLEHLO_ADD STABLEHLO_AND STABLEHLO_CBRT STABLEHLO_COMPARE STABLEHLO_CONVERT STABLEHLO_COSINE STABLEHLO_DIVIDE
    STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG STABLEHLO_LOGISTIC STABLEHLO_MAXIMUM STABLEHLO_MINIMUM STABLEHLO_MULTIPLY STABLEHLO_NEGATE
    STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT STABLEHLO_SELECT STABLEHLO_SHIFT_LEFT STABLEHLO_SUBTRACT STABLEHLO_TANH
"""
#: More than one: quantization scales and shifts, softmax takes a maximum, a difference, an exponential, a sum and a quotient.
_SEVERAL = {
    "QUANTIZE": 2, "DEQUANTIZE": 2, "SQUARED_DIFFERENCE": 2, "STABLEHLO_CLAMP": 2, "FAKE_QUANT": 4, "L2_NORMALIZATION": 3, "SOFTMAX": 5,
    "LOG_SOFTMAX": 5, "RESIZE_BILINEAR": 6,
}  # fmt: skip
#: One for each value that is read.
_REDUCTIONS = """
    ADD_N ARG_MAX ARG_MIN CUMSUM MEAN REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD SUM STABLEHLO_REDUCE SEGMENT_SUM UNSORTED_SEGMENT_MAX
    UNSORTED_SEGMENT_MIN UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_SUM
"""
#: None: they move values.
_MOVES = """
    BATCH_TO_SPACE_ND BITCAST BROADCAST_TO CONCATENATION DENSIFY DEPTH_TO_SPACE DILATE EXPAND_DIMS MIRROR_PAD PACK PAD PADV2 RESHAPE
    RESIZE_NEAREST_NEIGHBOR REVERSE_SEQUENCE REVERSE_V2 SPACE_TO_BATCH_ND SPACE_TO_DEPTH SPLIT SPLIT_V SQUEEZE TILE TRANSPOSE UNPACK MATRIX_DIAG
    MATRIX_SET_DIAG REAL IMAG ONE_HOT FILL ZEROS_LIKE RANGE SHAPE RANK BROADCAST_ARGS STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONCATENATE STABLEHLO_IOTA
    STABLEHLO_PAD STABLEHLO_RESHAPE STABLEHLO_TRANSPOSE
"""
#: None, and they read a part of their first input alone.
_PICKS = """
    EMBEDDING_LOOKUP GATHER GATHER_ND SLICE STRIDED_SLICE STABLEHLO_DYNAMIC_SLICE STABLEHLO_GATHER STABLEHLO_SLICE
"""
_RECURRENT = """
    RNN SVDF UNIDIRECTIONAL_SEQUENCE_LSTM UNIDIRECTIONAL_SEQUENCE_RNN BIDIRECTIONAL_SEQUENCE_LSTM BIDIRECTIONAL_SEQUENCE_RNN
"""


def add_counts(table: WorkTable) -> None:
    """Register the functions that count operations and bytes of operators in the table."""
    table.add(_POINTWISE.split(), _written(1))
    for op, operations in _SEVERAL.items():
        table.add(op, _written(operations))
    table.add(_REDUCTIONS.split(), _reduction)
    table.add(_MOVES.split(), lambda node: Work())
    table.add(_PICKS.split(), _pick)
    table.add(_RECURRENT.split(), _recurrent)
    table.add("CONV_2D", lambda node: _per_output(node, 0))
    table.add("CONV_3D", lambda node: _per_output(node, 4))
    table.add("FULLY_CONNECTED", lambda node: _per_output(node, 0))
    table.add("STABLEHLO_CONVOLUTION", _stablehlo_convolution)
    table.add("DEPTHWISE_CONV_2D", lambda node: _per_output(node, 3))
    table.add(("TRANSPOSE_CONV", "CONV_3D_TRANSPOSE"), _transposed)
    table.add("BATCH_MATMUL", _batch_matmul)
    table.add("STABLEHLO_DOT_GENERAL", _dot_general)
    table.add(("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"), _pool)
    table.add("LOCAL_RESPONSE_NORMALIZATION", _response_normalization)
    table.add("LSTM", _lstm)
    table.add("RFFT2D", _rfft2d)
    table.add(Composite("odml.scaled_dot_product_attention"), _attention)
    table.add(Composite("odml.rms_norm"), _written(4))
    table.add(Composite("odml.group_norm"), _written(6))


def _written(operations: int) -> Callable[[Node], Work]:
    return lambda node: Work(operations=operations * node.outputs[0].size)


def _reduction(node: Node) -> Work:
    inputs = node.inputs if node.op_name == "ADD_N" else node.inputs[:1]
    return Work(operations=sum(tensor.size for tensor in inputs))


def _pick(node: Node) -> Work:
    written = sum(tensor.nbytes for tensor in node.outputs)
    return Work(read=written + sum(tensor.nbytes for tensor in node.inputs[1:] if tensor is not None))


def _per_output(node: Node, filters: int) -> Work:
    """Count a convolution's or matrix product's work: multiply-adds per output value are the weights per filter."""
    weights = node.inputs[1].shape
    return Work(macs=node.outputs[0].size * math.prod(size for axis, size in enumerate(weights) if axis != filters))


def _stablehlo_convolution(node: Node) -> Work:
    return _per_output(node, node.options(StablehloConvolutionOptions).kernel_output_feature_dimension)


def _transposed(node: Node) -> Work:
    """Count a transposed convolution's work: every input value is multiplied with its channel's weights."""
    return Work(macs=node.inputs[2].size * math.prod(node.inputs[1].shape[:-1]))


def _batch_matmul(node: Node) -> Work:
    left = node.inputs[0].shape
    return Work(macs=node.outputs[0].size * left[-2 if node.options(BatchMatMulOptions).adj_x else -1])


def _dot_general(node: Node) -> Work:
    contracted = node.options(StablehloDotGeneralOptions).lhs_contracting_dimensions
    axes = [] if contracted is None else contracted.tolist()
    return Work(macs=node.outputs[0].size * math.prod(node.inputs[0].shape[axis] for axis in axes))


def _pool(node: Node) -> Work:
    options = node.options(Pool2DOptions)
    each = options.filter_height * options.filter_width * (2 if node.op_name == "L2_POOL_2D" else 1)
    return Work(operations=node.outputs[0].size * each)


def _response_normalization(node: Node) -> Work:
    window = 2 * node.options(LocalResponseNormalizationOptions).radius + 1
    return Work(operations=node.outputs[0].size * (2 * window + 4))


def _recurrent(node: Node) -> Work:
    """Count a recurrent layer's work: each weight matrix times a vector, per step and batch row."""
    source, *rest = node.inputs
    states = sum(tensor.shape[-1] for tensor in rest if tensor is not None and tensor.is_variable)
    matrices = sum(tensor.size for tensor in rest if tensor is not None and tensor.ndim == 2 and not tensor.is_variable)
    steps = source.size // max(source.shape[-1], 1)
    # A step applies about four gates and their products to each value of a state.
    return Work(macs=steps * matrices, operations=steps * states * (8 if "LSTM" in node.op_name else 1))


def _lstm(node: Node) -> Work:
    if node.options(LSTMOptions).kernel_type != LSTMKernelType.BASIC:
        return _recurrent(node)
    rows, weights = node.inputs[0].shape[0], node.inputs[2]
    return Work(macs=rows * weights.size, operations=rows * weights.shape[0] * 3)


def _rfft2d(node: Node) -> Work:
    """Count a 2D real FFT's work: 5 n log2 n of a complex transform, halved."""
    source = node.inputs[0]
    points = math.prod(source.shape[-2:])
    return Work(operations=int(2.5 * source.size * math.log2(max(points, 2))))


def _attention(node: Node) -> Work:
    """Count an attention's work: queries times keys, softmax, and its product with the values."""
    query, key, value = node.inputs[:3]
    scores = math.prod(query.shape[:3]) * key.shape[1]
    return Work(macs=scores * (query.shape[-1] + value.shape[-1]), operations=6 * scores)
