"""Batch rules of built-in operators: which treat the rows of a batch independently, and which of those give the same bits as row
by row.

A tensor is *batched* if its first dimension goes through the rows, a number of slices for each. A rule gets a node that reads one, and
returns why the node might mix rows or lose them, "" if it keeps them apart. Whether the output's first dimension grows with the batch
is checked for every node, from its shapes at two batch sizes; rules are about the values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Node, Tensor
from oplet.schema.enums import ActivationFunctionType, BuiltinOperator, TensorType
from oplet.schema.options import (
    BatchMatMulOptions,
    ConcatenationOptions,
    GatherOptions,
    OneHotOptions,
    PackOptions,
    ReverseSequenceOptions,
    StridedSliceOptions,
    UnpackOptions,
)

__all__ = ["RULES", "Reads", "keeps_bits"]

_Op = BuiltinOperator
_FLOATS = {
    TensorType.FLOAT16,
    TensorType.BFLOAT16,
    TensorType.FLOAT32,
    TensorType.FLOAT64,
    TensorType.COMPLEX64,
    TensorType.COMPLEX128,
}


class Reads:
    """View of a node, prepared for one row, from which a batch rule decides whether the node can run on several rows at once.

    Attributes:
        node: the node.
        batched: all tensors of the graph whose first dimension is the batch.
        varying: constants that differ for another number of rows, such as the shape operand of a RESHAPE.
    """

    def __init__(self, node: Node, batched: Collection[Tensor], varying: Collection[Tensor]) -> None:
        self.node = node
        self.batched = batched
        self.varying = varying

    def is_batched(self, position: int) -> bool:
        """Return whether the first dimension of the input at this position is the batch."""
        inputs = self.node.inputs
        return position < len(inputs) and inputs[position] in self.batched

    def is_free(self, position: int) -> bool:
        """Return whether the input at this position is the same for every row and any number of rows, or is omitted."""
        inputs = self.node.inputs
        return position >= len(inputs) or (inputs[position] not in self.batched and inputs[position] not in self.varying)

    def rank(self, position: int) -> int:
        """Return the number of dimensions of an input."""
        return len(self.node.inputs[position].shape)

    def constant(self, position: int) -> NDArray[Any] | None:
        """Return the value of an input that is constant, and the same for any number of rows; None if it is not."""
        inputs = self.node.inputs
        if position >= len(inputs) or not self.is_free(position) or inputs[position] is None or not inputs[position].is_constant:
            return None
        return np.asarray(inputs[position].data)


Rule = Callable[[Reads], str]

_UNKNOWN = "its operands are not those whose rows are known to stay apart"


def _first_only(least: int = 2) -> Rule:
    """Make a batch rule: only the first input is batched, with at least `least` dimensions; the others are the same for every
    row.
    """

    def rule(node: Reads) -> str:
        others = range(1, len(node.node.inputs))
        return "" if node.is_batched(0) and node.rank(0) >= least and all(map(node.is_free, others)) else _UNKNOWN

    return rule


def _shape_from_second(node: Reads) -> str:
    """Apply the batch rule of ops whose second input is the output's shape, which may depend on the number of rows."""
    return "" if node.is_batched(0) and not node.is_batched(1) else _UNKNOWN


def _elementwise(node: Reads) -> str:
    rank = max(len(tensor.shape) for tensor in node.node.outputs)
    lead = {tensor.shape[0] for tensor in node.node.inputs if tensor in node.batched}
    if len(lead) != 1:
        return "it pairs rows of different sizes"
    for position, tensor in enumerate(node.node.inputs):
        if tensor is None:
            continue
        if node.is_batched(position):
            if len(tensor.shape) != rank:
                return "it broadcasts rows along another dimension"
        elif tensor in node.varying:
            return "it reads a value that depends on the number of rows"
        elif len(tensor.shape) == rank and tensor.shape[0] != 1:
            return "an operand has its own first dimension"
    return ""


def _not_axis_zero(axes: NDArray[Any] | int | None, rank: int) -> str:
    if axes is None:
        return "its axis is not a constant"
    normal = [int(axis) + rank if axis < 0 else int(axis) for axis in np.atleast_1d(axes).reshape(-1)]
    return "it works along the rows" if not all(0 < axis < rank for axis in normal) else ""


def _axes_at(position: int) -> Rule:
    def rule(node: Reads) -> str:
        return _not_axis_zero(node.constant(position), node.rank(0)) if node.is_batched(0) else _UNKNOWN

    return rule


def _split(node: Reads) -> str:
    return _not_axis_zero(node.constant(0), node.rank(1)) if node.is_batched(1) else _UNKNOWN


def _arg(node: Reads) -> str:
    return _first_only()(node) or _not_axis_zero(node.constant(1), node.rank(0))


def _fully_connected(node: Reads) -> str:
    return _first_only()(node)


def _concatenation(node: Reads) -> str:
    options = node.node.options(ConcatenationOptions)
    if not all(map(node.is_batched, range(len(node.node.inputs)))):
        return "it joins rows with a constant"
    return _not_axis_zero(options.axis, node.rank(0))


def _pack(node: Reads) -> str:
    if not all(map(node.is_batched, range(len(node.node.inputs)))):
        return "it joins rows with a constant"
    return _not_axis_zero(node.node.options(PackOptions).axis, node.rank(0) + 1)


def _unpack(node: Reads) -> str:
    return _not_axis_zero(node.node.options(UnpackOptions).axis, node.rank(0))


def _transpose(node: Reads) -> str:
    order = node.constant(1)
    return "" if order is not None and order.size and order.reshape(-1)[0] == 0 else "it moves the rows to another dimension"


def _pad(node: Reads) -> str:
    widths = node.constant(1)
    if widths is None or not node.is_batched(0) or not node.is_free(2):
        return _UNKNOWN
    return "" if not widths.reshape(-1, 2)[0].any() else "it pads the rows"


def _slice(node: Reads) -> str:
    begin = node.constant(1)
    if begin is None or not node.is_batched(0) or node.is_batched(2):
        return _UNKNOWN
    return "" if begin.reshape(-1)[0] == 0 else "it takes some of the rows"


def _strided_slice(node: Reads) -> str:
    options, begin, strides = node.node.options(StridedSliceOptions), node.constant(1), node.constant(3)
    if begin is None or strides is None or not node.is_batched(0) or node.is_batched(2) or not begin.size:
        return _UNKNOWN
    if (options.ellipsis_mask | options.new_axis_mask | options.shrink_axis_mask) & 1 or strides.reshape(-1)[0] != 1:
        return "it takes some of the rows"
    return "" if options.begin_mask & 1 or begin.reshape(-1)[0] == 0 else "it takes some of the rows"


def _batch_matmul(node: Reads) -> str:
    options, left, right = node.node.options(BatchMatMulOptions), node.rank(0), node.rank(1)
    if not node.is_batched(0):
        return _UNKNOWN
    if node.is_batched(1):
        return "" if left == right >= 3 else "it multiplies rows with one another"
    if not node.is_free(1):
        return _UNKNOWN
    if left == 2 and options.adj_x:
        return "it sums over the rows"
    alone = right < max(left, 3) or node.node.inputs[1].shape[0] == 1
    return "" if alone and right <= max(left, 2) else "the other factor has a first dimension of its own"


def _gather(node: Reads) -> str:
    options = node.node.options(GatherOptions)
    rank = node.rank(0)
    axis = options.axis + rank if options.axis < 0 else options.axis
    if node.is_batched(0) and node.is_batched(1):
        return "" if 1 <= options.batch_dims <= axis and axis > 0 else "it takes some of the rows"
    if node.is_batched(0):
        return _UNKNOWN if options.batch_dims or not node.is_free(1) else _not_axis_zero(axis, rank)
    return "" if node.is_free(0) and axis == 0 and not options.batch_dims else _UNKNOWN  # an embedding: rows of indices


def _look_up(values: int, indices: int, least: int) -> Rule:
    """Make a batch rule for lookups: input number `indices` is batched, of rank `least` or more, and input `values` is not."""

    def rule(node: Reads) -> str:
        return "" if node.is_batched(indices) and node.is_free(values) and node.rank(indices) >= least else _UNKNOWN

    return rule


def _one_hot(node: Reads) -> str:
    if not node.is_batched(0) or not all(map(node.is_free, (1, 2, 3))):
        return _UNKNOWN
    axis = node.node.options(OneHotOptions).axis
    return "" if axis == -1 or axis > 0 else "it works along the rows"


def _tile(node: Reads) -> str:
    counts = node.constant(1)
    return (
        "" if counts is not None and counts.size and counts.reshape(-1)[0] == 1 and node.is_batched(0) else "it repeats the rows"
    )


def _reverse_sequence(node: Reads) -> str:
    options = node.node.options(ReverseSequenceOptions)
    both = node.is_batched(0) and node.is_batched(1)
    return "" if both and options.batch_dim == 0 and options.seq_dim > 0 else "it works along the rows"


def _transpose_conv(node: Reads) -> str:
    return "" if node.is_batched(2) and not node.is_batched(0) and node.is_free(1) and node.is_free(3) else _UNKNOWN


def _broadcast_to(node: Reads) -> str:
    whole = len(node.node.outputs[0].shape) == node.rank(0)
    return _shape_from_second(node) if whole else "it broadcasts rows along another dimension"


def _ops(names: str) -> set[BuiltinOperator]:
    return {BuiltinOperator[name] for name in names.split()}


_ELEMENTWISE = _ops(
    """
    ABS ADD ADD_N ATAN2 BITWISE_XOR CAST CEIL COMPLEX_ABS COS DEQUANTIZE DIV ELU EQUAL EXP FAKE_QUANT FLOOR FLOOR_DIV
    FLOOR_MOD GELU GREATER GREATER_EQUAL HARD_SWISH IMAG LEAKY_RELU LESS LESS_EQUAL LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR
    LOGISTIC MAXIMUM MINIMUM MUL NEG NOT_EQUAL POW PRELU QUANTIZE REAL RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RIGHT_SHIFT ROUND
    RSQRT SELECT SELECT_V2 SIGN SIN SQRT SQUARE SQUARED_DIFFERENCE SUB TANH
    """
)
_REDUCERS = _ops(
    """
    MEAN REDUCE_ALL REDUCE_ANY REDUCE_MAX REDUCE_MIN REDUCE_PROD SUM
    """
)
#: Operators that work on the dimensions after the first of their first input.
_INNER = _ops(
    """
    AVERAGE_POOL_2D CONV_2D CONV_3D DEPTHWISE_CONV_2D DEPTH_TO_SPACE L2_NORMALIZATION L2_POOL_2D
    LOCAL_RESPONSE_NORMALIZATION LOG_SOFTMAX MAX_POOL_2D RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR SOFTMAX SPACE_TO_DEPTH
    TOPK_V2
    """
)

#: The rules; an operator without one may mix rows.
RULES: dict[BuiltinOperator, Rule] = {
    **dict.fromkeys(_ELEMENTWISE, _elementwise),
    **dict.fromkeys(_REDUCERS, _axes_at(1)),
    **dict.fromkeys(_INNER, _first_only()),
    _Op.ARG_MAX: _arg,
    _Op.ARG_MIN: _arg,
    _Op.BATCH_MATMUL: _batch_matmul,
    _Op.BITCAST: _shape_from_second,
    _Op.BROADCAST_TO: _broadcast_to,
    _Op.CONCATENATION: _concatenation,
    _Op.CONV_3D_TRANSPOSE: _transpose_conv,
    _Op.CUMSUM: _axes_at(1),
    _Op.EMBEDDING_LOOKUP: _look_up(values=1, indices=0, least=1),
    _Op.EXPAND_DIMS: _shape_from_second,
    _Op.FULLY_CONNECTED: _fully_connected,
    _Op.GATHER: _gather,
    _Op.GATHER_ND: _look_up(values=0, indices=1, least=2),
    _Op.MIRROR_PAD: _pad,
    _Op.ONE_HOT: _one_hot,
    _Op.PACK: _pack,
    _Op.PAD: _pad,
    _Op.PADV2: _pad,
    _Op.RESHAPE: _shape_from_second,
    _Op.REVERSE_SEQUENCE: _reverse_sequence,
    _Op.REVERSE_V2: _axes_at(1),
    _Op.SLICE: _slice,
    _Op.SPLIT: _split,
    _Op.SPLIT_V: _axes_at(2),
    _Op.SQUEEZE: _first_only(1),
    _Op.STRIDED_SLICE: _strided_slice,
    _Op.TILE: _tile,
    _Op.TRANSPOSE: _transpose,
    _Op.TRANSPOSE_CONV: _transpose_conv,
    _Op.UNPACK: _unpack,
}

#: Operators whose floats do not depend on how many elements are computed together: they move values, or IEEE 754 defines every bit.
_EXACT_FLOATS = _ops(
    """
    ABS ADD ARG_MAX ARG_MIN BITCAST BROADCAST_TO CAST CEIL CONCATENATION DEPTH_TO_SPACE DEQUANTIZE DIV EMBEDDING_LOOKUP
    EQUAL EXPAND_DIMS FLOOR GATHER GATHER_ND GREATER GREATER_EQUAL LESS LESS_EQUAL MAXIMUM MAX_POOL_2D MINIMUM MIRROR_PAD
    MUL NEG NOT_EQUAL ONE_HOT PACK PAD PADV2 QUANTIZE REDUCE_MAX REDUCE_MIN RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 RESHAPE
    RESIZE_NEAREST_NEIGHBOR REVERSE_SEQUENCE REVERSE_V2 ROUND SELECT SELECT_V2 SIGN SLICE SPACE_TO_DEPTH SPLIT SPLIT_V
    SQUEEZE STRIDED_SLICE SUB TILE TOPK_V2 TRANSPOSE UNPACK
    """
)
_EXACT_ACTIVATIONS = {
    ActivationFunctionType.NONE,
    ActivationFunctionType.RELU,
    ActivationFunctionType.RELU6,
    ActivationFunctionType.RELU_N1_TO_1,
}


def keeps_bits(node: Node) -> bool:
    """Return whether a node, whose rows are known to be independent, gives the same bits for rows in a batch as one by one.

    Integer results always are. Sums of floats are not: BLAS adds in an order that depends on the matrices' sizes.
    """
    activation = getattr(node.raw_options, "fused_activation_function", ActivationFunctionType.NONE)
    tensors = [tensor for tensor in (*node.inputs, *node.outputs) if tensor is not None]
    if not any(tensor.type in _FLOATS for tensor in tensors):
        return True
    return node.op in _EXACT_FLOATS and activation in _EXACT_ACTIVATIONS
