"""Nodes that oplet's kernels accept but that can crash the process in LiteRT's.

Found by running mutated models (`fuzz/`), and one-node models with everything about them turned (`tests/delegate_sweep/`), with the
delegate; ai-edge-litert 2.3. A rule is as wide as its cause in LiteRT's sources, which it names.
"""

from __future__ import annotations

import numpy as np

from oplet import BuiltinOperator, Node, Tensor, TensorType
from oplet.schema.options import LocalResponseNormalizationOptions, ReverseSequenceOptions, StridedSliceOptions

__all__ = ["dies_of"]

_Op = BuiltinOperator
_COMPARES = frozenset({_Op.EQUAL, _Op.NOT_EQUAL, _Op.GREATER, _Op.GREATER_EQUAL, _Op.LESS, _Op.LESS_EQUAL})
_UNCOMPARED = frozenset({TensorType.UINT16, TensorType.UINT32, TensorType.UINT64})
_DIVIDES = frozenset({_Op.DIV, _Op.FLOOR_DIV, _Op.FLOOR_MOD})
_RECURRENT = frozenset(
    {
        _Op.BIDIRECTIONAL_SEQUENCE_LSTM, _Op.BIDIRECTIONAL_SEQUENCE_RNN, _Op.LSTM, _Op.RNN, _Op.SVDF,
        _Op.UNIDIRECTIONAL_SEQUENCE_LSTM, _Op.UNIDIRECTIONAL_SEQUENCE_RNN,
    }
)  # fmt: skip
_QUANTIZES_ONCE = frozenset({_Op.ADD, _Op.SUB, _Op.MUL})
#: Where LiteRT takes weights with scales of their own, also one for each channel.
_WEIGHTED = frozenset(
    {
        _Op.BATCH_MATMUL, _Op.CONV_2D, _Op.DEPTHWISE_CONV_2D, _Op.DEQUANTIZE, _Op.EMBEDDING_LOOKUP, _Op.FULLY_CONNECTED,
        _Op.TRANSPOSE_CONV, _Op.UNIDIRECTIONAL_SEQUENCE_LSTM,
    }
)  # fmt: skip
_WEIGHTED_LAYERS = frozenset({_Op.CONV_2D, _Op.DEPTHWISE_CONV_2D, _Op.FULLY_CONNECTED})
_T = TensorType
#: The types of data and weights of which its layers have kernels.
_LAYERS = frozenset(
    {
        (_T.FLOAT32, _T.FLOAT32), (_T.FLOAT32, _T.INT8), (_T.FLOAT32, _T.INT4), (_T.FLOAT32, _T.INT2), (_T.FLOAT32, _T.UINT8),
        (_T.FLOAT16, _T.FLOAT16), (_T.BFLOAT16, _T.BFLOAT16), (_T.INT8, _T.INT8), (_T.INT8, _T.INT4), (_T.INT8, _T.INT2),
        (_T.UINT8, _T.UINT8), (_T.INT16, _T.INT8), (_T.INT16, _T.INT4),
    }
)  # fmt: skip
#: Where it looks whether an input is left out.
_OPTIONAL = frozenset(
    {
        _Op.BIDIRECTIONAL_SEQUENCE_LSTM, _Op.BIDIRECTIONAL_SEQUENCE_RNN, _Op.CONV_2D, _Op.CONV_3D, _Op.CONV_3D_TRANSPOSE,
        _Op.FULLY_CONNECTED, _Op.LSTM, _Op.SVDF, _Op.TRANSPOSE_CONV, _Op.UNIDIRECTIONAL_SEQUENCE_LSTM,
    }
)  # fmt: skip
_QUANTIZED = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)
#: Broadcasting kernels check that there are no more dimensions with an abort (reference/broadcast_loop.h, select.h), and no kernel is
#: written for more: tables of eight are common (transpose.h, strided_slice.h, reduce.h).
_MOST_DIMENSIONS = 8
_WIDEST = 1024
#: Its fixed-point arithmetic is made for scales that are nearer to one another than this.
_FARTHEST = 2.0**16


def dies_of(node: Node) -> str:
    """Return why LiteRT could crash on the node; "" if no reason is known."""
    tensors = [tensor for tensor in (*node.inputs, *node.outputs) if tensor is not None]
    for tensor in tensors:
        if tensor.ndim > _MOST_DIMENSIONS:
            return f"{tensor} has {tensor.ndim} dimensions, and some of LiteRT's kernels end the process above {_MOST_DIMENSIONS}"
        if not tensor.size:
            return f"{tensor} is empty, and some of LiteRT's kernels end the process then"
        if tensor.sparsity is not None and node.op is not _Op.DENSIFY:
            # XNNPACK takes what is stored for dense weights, and so do most of its own kernels (fully_connected.cc knows some blocks).
            return f"{tensor} is stored sparse, and LiteRT may read it as if it were dense, past its end, unless a DENSIFY does"
        if tensor.sparsity is not None and tensor.type not in (TensorType.FLOAT32, TensorType.FLOAT16):
            return f"{tensor} is sparse, which LiteRT can do for floats only"
        several = tensor.quantization is not None and tensor.quantization.per_channel
        if tensor.quantization is not None and not (tensor.quantization.scales > 0).all():
            return f"{tensor} has a scale that is not above zero"
        if several and (node.op not in _WEIGHTED or not tensor.is_constant):
            return f"{tensor} has several scales, and LiteRT does not look whether it can do with them"
    if len(tensors) < len(node.inputs) + len(node.outputs) and node.op not in _OPTIONAL:
        return "LiteRT does not look whether its optional input is there"
    if node.op not in _WEIGHTED and _far_apart(tensors):
        return "LiteRT ends the process where scales differ so much"
    if getattr(node.raw_options, "fused_activation_function", 0) and any(
        t.type in _QUANTIZED and t.quantization is None for t in node.outputs
    ):
        return "without a scale LiteRT clamps to bounds that it has not computed"
    return _of_this_operator(node)


def _of_this_operator(node: Node) -> str:
    if node.op is _Op.BROADCAST_ARGS:
        return "LiteRT ends the process where the shapes do not fit"
    if node.op is _Op.STABLEHLO_GATHER:
        return "LiteRT reads wherever an index says"
    if node.op in _COMPARES and any(t.type in _UNCOMPARED for t in node.inputs):
        return f"LiteRT does not compare {node.inputs[0].type.name}"
    if node.op in _COMPARES and any(t.type in _QUANTIZED and not 0 < t.scale < 1 for t in node.inputs):
        return "LiteRT ends the process where a scale is missing, or not below 1"
    if node.op is _Op.REVERSE_SEQUENCE and not _lengths_fit(node):
        return "LiteRT writes where it must not if a length is negative or too large"
    if node.op is _Op.LOCAL_RESPONSE_NORMALIZATION and not 0 <= node.options(LocalResponseNormalizationOptions).radius <= _WIDEST:
        return f"LiteRT makes tables as wide as the radius, {node.options(LocalResponseNormalizationOptions).radius}"
    if node.op in _QUANTIZES_ONCE and node.inputs[0].type is not node.outputs[0].type:
        return f"LiteRT ends the process where {node.inputs[0].type.name} becomes {node.outputs[0].type.name}"
    if node.op is _Op.SVDF and node.inputs[4].type is TensorType.INT8:
        return "LiteRT takes an int8 state for an int16 one and writes past its end"
    if node.op in _RECURRENT and not all(t is None or t.is_constant or t.is_variable for t in node.inputs[1:]):
        return "LiteRT does not look whether its weights are constant"
    if node.op is _Op.DEPTHWISE_CONV_2D and not node.has_input(2):
        return "LiteRT ends the process where the bias is left out"
    if node.op is _Op.RESHAPE:
        return _of_reshape(node)
    if node.op is _Op.STRIDED_SLICE and node.options(StridedSliceOptions).offset:
        # Its prepare takes the end for the size without a look at the input, and its eval reads there (strided_slice.cc).
        return "LiteRT does not look whether an end that counts from the begin lies inside"
    if node.op in _WEIGHTED_LAYERS and (node.inputs[0].type, node.inputs[1].type) not in _LAYERS:
        return f"LiteRT reads the bytes of {node.inputs[1].type.name} weights as if they were others"
    if node.op in _DIVIDES and node.inputs[1].type in (TensorType.INT32, TensorType.INT64):
        divisor = node.inputs[1]
        if not divisor.is_constant or np.isin(divisor.data, (0, -1)).any():
            return "LiteRT ends the process where the lowest number is divided by -1"
    return ""


def _of_reshape(node: Node) -> str:
    """Return why LiteRT could crash on a RESHAPE; it uses the shape input only if that is an INT32 vector, else the options."""
    if len(node.inputs) < 2:
        return "LiteRT ends the process where no shape is given" if node.raw_options is None else ""
    shape = node.inputs[1]
    if not shape.is_constant or shape.type is not TensorType.INT32 or shape.ndim != 1:
        return "LiteRT looks for the shape elsewhere if it is no constant vector of INT32"
    return ""


def _lengths_fit(node: Node) -> bool:
    data, lengths = node.inputs
    longest = data.shape[node.options(ReverseSequenceOptions).seq_dim]
    return lengths.is_constant and bool(((lengths.data >= 0) & (lengths.data <= longest)).all())


def _far_apart(tensors: list[Tensor]) -> bool:
    scales = [
        tensor.scale for tensor in tensors if tensor.type in _QUANTIZED and tensor.quantization is not None and tensor.scale > 0
    ]
    return bool(scales) and (max(scales) > _FARTHEST * min(scales) or max(scales) > 1e9 or min(scales) < 1e-9)
