"""Seed models of one node each, for operators that need no other nodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from oplet.schema import options as o
from oplet.schema import stablehlo_options as h
from oplet.schema.enums import ActivationFunctionType, Padding, TensorType
from oplet.schema.table import Table
from oplet_testing import one_op_model
from oplet_testing.one_op import Spec

__all__ = ["Seed", "make", "seeds"]

Operand = Spec | np.ndarray[Any, Any] | None


class Seed(NamedTuple):
    """A seed model's node: operator, tensors and options."""

    op: str
    inputs: Sequence[Operand]
    outputs: Sequence[Spec]
    options: Table | None = None
    version: int = 1
    label: str = ""


def make() -> dict[str, bytes]:
    """The models by name."""
    models: dict[str, bytes] = {}
    for seed in seeds():
        name = f"{seed.op.lower()}{'_' + seed.label if seed.label else ''}"
        if name in models:
            name += f"_{len(models)}"
        models[name] = one_op_model(seed.op, seed.inputs, seed.outputs, seed.options, version=seed.version)
    return models


def f32(*shape: int) -> Spec:
    return Spec("float32", shape)


def i32(*shape: int) -> Spec:
    return Spec("int32", shape)


def bools(*shape: int) -> Spec:
    return Spec("bool", shape)


def q8(*shape: int, type: str = "int8", scale: float = 0.05) -> Spec:
    return Spec(type, shape, scale=scale, zero_point=0 if type != "uint8" else 128)


def ints(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32)


def grid(*values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int32).reshape(-1, 2)


def longs(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


def weights(*shape: int) -> np.ndarray[Any, Any]:
    return (np.arange(np.prod(shape, dtype=int)) % 7 - 3).astype(np.float32).reshape(shape)


def q8_weights(*shape: int, scale: Any = 0.02, axis: int = 0) -> Spec:
    return Spec(
        "int8", shape, scale=scale, zero_point=np.zeros(np.size(scale), int), axis=axis, data=weights(*shape).astype(np.int8)
    )


def q32_bias(count: int, scale: Any = 0.001) -> Spec:
    return Spec("int32", [count], scale=scale, zero_point=np.zeros(np.size(scale), int), data=np.arange(count, dtype=np.int32))


def seeds() -> Iterator[Seed]:
    """The nodes of all models."""
    yield from _elementwise()
    yield from _convolutions()
    yield from _shapes()
    yield from _indexing()
    yield from _reductions()
    yield from _recurrent()
    yield from _rest()
    yield from _stablehlo()


_FLOAT_UNARY = (
    "ABS CEIL COS ELU EXP FLOOR GELU HARD_SWISH LEAKY_RELU LOG LOGISTIC LOG_SOFTMAX NEG RELU RELU6 RELU_0_TO_1 RELU_N1_TO_1 ROUND "
    "RSQRT SIGN SIN SOFTMAX SQRT SQUARE TANH ZEROS_LIKE L2_NORMALIZATION"
)
_QUANTIZED_UNARY = "ABS LEAKY_RELU LOGISTIC LOG_SOFTMAX RELU RELU6 RSQRT SOFTMAX TANH L2_NORMALIZATION EXP"
_BINARY = "ADD DIV FLOOR_DIV FLOOR_MOD MAXIMUM MINIMUM MUL POW SQUARED_DIFFERENCE SUB"
_COMPARISONS = "EQUAL GREATER GREATER_EQUAL LESS LESS_EQUAL NOT_EQUAL"


def _elementwise() -> Iterator[Seed]:
    special: dict[str, Table] = {"LEAKY_RELU": o.LeakyReluOptions(alpha=0.1), "SOFTMAX": o.SoftmaxOptions(beta=1.0)}
    for op in _FLOAT_UNARY.split():
        yield Seed(op, [f32(1, 3, 4)], [f32(1, 3, 4)], special.get(op))
    for op in _QUANTIZED_UNARY.split():
        scale = 1 / 256 if op in ("LOGISTIC", "SOFTMAX", "EXP") else 1 / 128 if op in ("TANH", "L2_NORMALIZATION") else 0.05
        out = Spec("int8", [2, 4], scale=16 / 256 if op == "LOG_SOFTMAX" else scale, zero_point=-128 if scale == 1 / 256 else 0)
        if op == "LOG_SOFTMAX":
            out = out._replace(zero_point=127)
        yield Seed(op, [q8(2, 4)], [out], special.get(op), 2, "int8")
    for op in _BINARY.split():
        yield Seed(op, [f32(2, 3), f32(3)], [f32(2, 3)], label="float")
    for op in [
        "ADD",
        "DIV",
        "FLOOR_DIV",
        "FLOOR_MOD",
        "MAXIMUM",
        "MINIMUM",
        "MUL",
        "SUB",
        "BITWISE_XOR",
        "RIGHT_SHIFT",
        "POW",
        "SQUARED_DIFFERENCE",
    ]:
        yield Seed(op, [i32(2, 3), ints(1, 2, 3)], [i32(2, 3)], label="int")
    for op in ["ADD", "MAXIMUM", "MINIMUM", "MUL", "SQUARED_DIFFERENCE", "SUB"]:
        yield Seed(op, [q8(2, 3), q8(1, 3)], [q8(2, 3)], version=2, label="int8")
    for op in ["ADD", "MAXIMUM", "MINIMUM", "MUL", "SUB"]:
        yield Seed(op, [q8(2, 3, type="int16"), q8(2, 3, type="int16")], [q8(2, 3, type="int16")], version=2, label="int16")
    for op in _COMPARISONS.split():
        yield Seed(op, [f32(2, 3), f32(2, 1)], [bools(2, 3)])
        yield Seed(op, [q8(2, 3), q8(2, 3)], [bools(2, 3)], version=2, label="int8")
    for op in ("LOGICAL_AND", "LOGICAL_OR"):
        yield Seed(op, [bools(4), bools(4)], [bools(4)])
    yield Seed("LOGICAL_NOT", [bools(4)], [bools(4)])
    yield Seed("ATAN2", [f32(2, 3), f32(2, 3)], [f32(2, 3)])
    yield Seed("HARD_SWISH", [q8(2, 4)], [q8(2, 4)], label="int8")
    yield Seed("ADD_N", [f32(3), f32(3), f32(3)], [f32(3)])
    yield Seed("PRELU", [f32(1, 2, 2, 3), weights(1, 1, 3)], [f32(1, 2, 2, 3)])
    yield Seed("CAST", [f32(4)], [i32(4)], o.CastOptions(in_data_type=TensorType.FLOAT32, out_data_type=TensorType.INT32))
    yield Seed("BITCAST", [f32(4)], [Spec("uint8", [4, 4])])
    yield Seed("DEQUANTIZE", [q8(2, 3)], [f32(2, 3)], version=2)
    yield Seed("DEQUANTIZE", [q8_weights(2, 3, scale=[0.1, 0.2])], [f32(2, 3)], version=5, label="per_channel")
    yield Seed("QUANTIZE", [f32(2, 3)], [q8(2, 3)])
    yield Seed("QUANTIZE", [q8(2, 3)], [q8(2, 3, type="uint8", scale=0.1)], version=2, label="requantize")
    yield Seed("FAKE_QUANT", [f32(4)], [f32(4)], o.FakeQuantOptions(min=-1.0, max=1.0, num_bits=8))
    yield Seed("SELECT", [bools(2, 3), f32(2, 3), f32(2, 3)], [f32(2, 3)])
    yield Seed("SELECT_V2", [bools(3), f32(2, 3), f32(1)], [f32(2, 3)])
    yield Seed("COMPLEX_ABS", [Spec("complex64", [4])], [f32(4)])
    for op in ("REAL", "IMAG"):
        yield Seed(op, [Spec("complex64", [4])], [f32(4)])
    yield Seed("BUCKETIZE", [f32(4)], [i32(4)], o.BucketizeOptions(boundaries=np.array([0.0, 1.0, 2.0], np.float32)))


def _convolutions() -> Iterator[Seed]:
    conv = o.Conv2DOptions(stride_w=1, stride_h=1)
    channels = [0.1, 0.2]
    yield Seed("CONV_2D", [f32(1, 4, 4, 2), weights(2, 3, 3, 2), weights(2)], [f32(1, 4, 4, 2)], conv)
    yield Seed(
        "CONV_2D", [f32(1, 5, 5, 4), weights(4, 3, 3, 2), None], [f32(1, 2, 2, 4)],
        o.Conv2DOptions(padding=Padding.VALID, stride_w=2, stride_h=2, fused_activation_function=ActivationFunctionType.RELU),
        6, "grouped",
    )  # fmt: skip
    yield Seed(
        "CONV_2D",
        [q8(1, 4, 4, 2), q8_weights(2, 3, 3, 2, scale=channels), q32_bias(2, [0.005, 0.01])],
        [q8(1, 4, 4, 2)],
        conv,
        3,
        "int8",
    )
    yield Seed(
        "CONV_2D", [f32(1, 4, 4, 2), q8_weights(2, 3, 3, 2, scale=channels), weights(2)], [f32(1, 4, 4, 2)], conv, 5, "hybrid"
    )
    depthwise = o.DepthwiseConv2DOptions(stride_w=1, stride_h=1, depth_multiplier=2)
    yield Seed("DEPTHWISE_CONV_2D", [f32(1, 4, 4, 1), weights(1, 3, 3, 2), weights(2)], [f32(1, 4, 4, 2)], depthwise)
    yield Seed(
        "DEPTHWISE_CONV_2D", [q8(1, 4, 4, 1), q8_weights(1, 3, 3, 2, scale=channels, axis=3), q32_bias(2, [0.005, 0.01])],
        [q8(1, 4, 4, 2)], depthwise, 3, "int8",
    )  # fmt: skip
    transposed = o.TransposeConvOptions(stride_w=2, stride_h=2)
    yield Seed("TRANSPOSE_CONV", [ints(1, 4, 4, 1), weights(1, 3, 3, 2), f32(1, 2, 2, 2)], [f32(1, 4, 4, 1)], transposed)
    yield Seed(
        "TRANSPOSE_CONV", [ints(1, 4, 4, 2), q8_weights(2, 3, 3, 2, scale=channels), q8(1, 2, 2, 2), q32_bias(2, [0.005, 0.01])],
        [q8(1, 4, 4, 2)], transposed, 3, "int8",
    )  # fmt: skip
    conv3 = o.Conv3DOptions(stride_d=1, stride_h=1, stride_w=1)
    yield Seed("CONV_3D", [f32(1, 3, 3, 3, 1), weights(2, 2, 2, 1, 2), weights(2)], [f32(1, 3, 3, 3, 2)], conv3)
    yield Seed(
        "CONV_3D_TRANSPOSE", [ints(1, 3, 3, 3, 1), weights(2, 2, 2, 1, 2), f32(1, 3, 3, 3, 2)], [f32(1, 3, 3, 3, 1)], conv3
    )
    pool = o.Pool2DOptions(stride_w=1, stride_h=1, filter_width=2, filter_height=2)
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"):
        yield Seed(op, [f32(1, 4, 4, 2)], [f32(1, 4, 4, 2)], pool)
    for op in ("AVERAGE_POOL_2D", "MAX_POOL_2D"):
        yield Seed(op, [q8(1, 4, 4, 2)], [q8(1, 4, 4, 2)], pool, 2, "int8")
    fully = o.FullyConnectedOptions()
    yield Seed("FULLY_CONNECTED", [f32(2, 4), weights(3, 4), weights(3)], [f32(2, 3)], fully)
    yield Seed("FULLY_CONNECTED", [f32(2, 4), q8_weights(3, 4), weights(3)], [f32(2, 3)], fully, 3, "hybrid")
    yield Seed("FULLY_CONNECTED", [q8(2, 4), q8_weights(3, 4), q32_bias(3)], [q8(2, 3)], fully, 4, "int8")
    yield Seed("FULLY_CONNECTED", [f32(2, 4), f32(3, 4), None], [f32(2, 3)], fully, 6, "no_bias")
    matmul = o.BatchMatMulOptions()
    yield Seed("BATCH_MATMUL", [f32(2, 3, 4), f32(2, 4, 2)], [f32(2, 3, 2)], matmul)
    yield Seed("BATCH_MATMUL", [q8(2, 3, 4), q8(2, 4, 2)], [q8(2, 3, 2)], matmul, 2, "int8")
    yield Seed(
        "SVDF", [f32(2, 3), weights(4, 3), weights(4, 5), None, Spec("float32", [2, 20], variable=True)], [f32(2, 2)],
        o.SVDFOptions(rank=2),
    )  # fmt: skip
    yield Seed("LOCAL_RESPONSE_NORMALIZATION", [f32(1, 2, 2, 6)], [f32(1, 2, 2, 6)],
               o.LocalResponseNormalizationOptions(radius=2, bias=1.0, alpha=0.5, beta=0.5))  # fmt: skip


def _shapes() -> Iterator[Seed]:
    yield Seed("RESHAPE", [f32(2, 6), ints(3, -1)], [f32(3, 4)], o.ReshapeOptions(new_shape=ints(3, 4)))
    yield Seed("RESHAPE", [f32(1, 1), i32(2)], [f32(1, 1)], label="dynamic")
    yield Seed("SQUEEZE", [f32(1, 3, 1)], [f32(3)], o.SqueezeOptions(squeeze_dims=ints(0, 2)))
    yield Seed("EXPAND_DIMS", [f32(2, 3), ints(1)], [f32(2, 1, 3)])
    yield Seed("TRANSPOSE", [f32(2, 3, 4), ints(2, 0, 1)], [f32(4, 2, 3)])
    yield Seed("CONCATENATION", [f32(2, 3), f32(2, 1)], [f32(2, 4)], o.ConcatenationOptions(axis=1))
    yield Seed("CONCATENATION", [q8(2, 3), q8(2, 3)], [q8(4, 3)], o.ConcatenationOptions(axis=0), 2, "int8")
    yield Seed("PACK", [f32(3), f32(3)], [f32(2, 3)], o.PackOptions(values_count=2, axis=0))
    yield Seed("UNPACK", [f32(2, 3)], [f32(3), f32(3)], o.UnpackOptions(num=2, axis=0))
    yield Seed("SPLIT", [ints(1), f32(2, 4)], [f32(2, 2), f32(2, 2)], o.SplitOptions(num_splits=2))
    yield Seed("SPLIT_V", [f32(2, 5), ints(2, -1), ints(1)], [f32(2, 2), f32(2, 3)], o.SplitVOptions(num_splits=2))
    yield Seed("TILE", [f32(2, 3), ints(2, 1)], [f32(4, 3)])
    yield Seed("PAD", [f32(2, 3), grid(1, 1, 0, 2)], [f32(4, 5)])
    yield Seed("PAD", [q8(2, 3), i32(2, 2)], [q8(4, 5)], version=2, label="dynamic")
    yield Seed("PADV2", [f32(2, 3), grid(1, 1, 0, 2), np.array([7.0], np.float32)], [f32(4, 5)])
    yield Seed("MIRROR_PAD", [f32(3, 3), grid(1, 1, 2, 0)], [f32(5, 5)], o.MirrorPadOptions())
    yield Seed("SPACE_TO_DEPTH", [f32(1, 4, 4, 1)], [f32(1, 2, 2, 4)], o.SpaceToDepthOptions(block_size=2))
    yield Seed("DEPTH_TO_SPACE", [f32(1, 2, 2, 4)], [f32(1, 4, 4, 1)], o.DepthToSpaceOptions(block_size=2))
    yield Seed("SPACE_TO_BATCH_ND", [f32(1, 4, 4, 1), ints(2, 2), grid(0, 0, 0, 0)], [f32(4, 2, 2, 1)])
    yield Seed("BATCH_TO_SPACE_ND", [f32(4, 2, 2, 1), ints(2, 2), grid(0, 0, 0, 0)], [f32(1, 4, 4, 1)])
    yield Seed("BROADCAST_TO", [f32(1, 3), ints(2, 3)], [f32(2, 3)], version=2)
    yield Seed("BROADCAST_ARGS", [i32(2), ints(1, 3)], [i32(2)])
    yield Seed("SHAPE", [f32(2, 3)], [i32(2)], o.ShapeOptions(out_type=TensorType.INT32))
    yield Seed("RANK", [f32(2, 3)], [i32()])
    yield Seed("RESIZE_BILINEAR", [f32(1, 3, 3, 1), ints(5, 4)], [f32(1, 5, 4, 1)], o.ResizeBilinearOptions())
    yield Seed("RESIZE_NEAREST_NEIGHBOR", [q8(1, 3, 3, 1), ints(5, 4)], [q8(1, 5, 4, 1)], o.ResizeNearestNeighborOptions(), 2)
    yield Seed("FILL", [ints(2, 3), np.array(5.0, np.float32)], [f32(2, 3)])
    yield Seed("FILL", [i32(2), f32()], [f32(2, 3)], label="dynamic")
    yield Seed("RANGE", [np.array(0, np.int32), i32(), np.array(2, np.int32)], [i32(0)])
    yield Seed("REVERSE_V2", [f32(2, 3), ints(1)], [f32(2, 3)])
    yield Seed("REVERSE_SEQUENCE", [f32(2, 4), ints(2, 3)], [f32(2, 4)], o.ReverseSequenceOptions(seq_dim=1))
    yield Seed("MATRIX_DIAG", [f32(2, 3)], [f32(2, 3, 3)])
    yield Seed("MATRIX_SET_DIAG", [f32(2, 3, 3), f32(2, 3)], [f32(2, 3, 3)])
    yield Seed("DILATE", [f32(2, 3), ints(2, 2), np.array(0.0, np.float32)], [f32(3, 5)])


def _indexing() -> Iterator[Seed]:
    yield Seed("GATHER", [f32(4, 3), ints(0, 2)], [f32(2, 3)], o.GatherOptions(axis=0))
    yield Seed("GATHER", [f32(2, 4, 3), i32(2, 2)], [f32(2, 2, 3)], o.GatherOptions(axis=1, batch_dims=1), 5, "batched")
    yield Seed("GATHER_ND", [f32(4, 3), i32(2, 1)], [f32(2, 3)])
    yield Seed("SCATTER_ND", [i32(2, 1), f32(2, 3), ints(4, 3)], [f32(4, 3)])
    yield Seed("SLICE", [f32(4, 3), ints(1, 0), ints(2, -1)], [f32(2, 3)])
    yield Seed("SLICE", [f32(4, 3), i32(2), i32(2)], [f32(2, 3)], label="dynamic")
    yield Seed("STRIDED_SLICE", [f32(4, 3), ints(0, 0), ints(4, 3), ints(2, 1)], [f32(2, 3)], o.StridedSliceOptions(end_mask=1))
    yield Seed("STRIDED_SLICE", [f32(4, 3), i32(2), i32(2), i32(2)], [f32(2, 3)], o.StridedSliceOptions(), label="dynamic")
    yield Seed("DYNAMIC_UPDATE_SLICE", [f32(4, 3), f32(2, 2), i32(2)], [f32(4, 3)])
    yield Seed("EMBEDDING_LOOKUP", [i32(3), weights(5, 4)], [f32(3, 4)])
    yield Seed(
        "EMBEDDING_LOOKUP_SPARSE",
        [i32(3), i32(3, 2), ints(2, 3), f32(3), f32(4, 2)],
        [f32(2, 3, 2)],
        o.EmbeddingLookupSparseOptions(),
    )
    yield Seed("HASHTABLE_LOOKUP", [i32(3), ints(1, 5, 9), f32(3, 2)], [f32(3, 2), Spec("uint8", [3])])
    yield Seed("ONE_HOT", [i32(3), np.array(4, np.int32), f32(), f32()], [f32(3, 4)], o.OneHotOptions(axis=-1))
    yield Seed("TOPK_V2", [f32(2, 5), ints(2)], [f32(2, 2), i32(2, 2)])
    yield Seed("WHERE", [bools(2, 3)], [Spec("int64", [0, 2])])
    yield Seed("UNIQUE", [i32(5)], [i32(5), i32(5)], o.UniqueOptions())
    yield Seed("SPARSE_TO_DENSE", [i32(3, 2), ints(4, 4), f32(3), f32()], [f32(4, 4)])
    yield Seed("SEGMENT_SUM", [f32(4, 2), ints(0, 0, 1, 2)], [f32(3, 2)])
    for kind in ("MAX", "MIN", "PROD", "SUM"):
        yield Seed(f"UNSORTED_SEGMENT_{kind}", [f32(4, 2), i32(4), ints(3)], [f32(3, 2)])
    boxes: list[Operand] = [f32(6, 4), f32(6), np.array(3, np.int32), np.array(0.5, np.float32), np.array(0.0, np.float32)]
    yield Seed("NON_MAX_SUPPRESSION_V4", boxes, [i32(3), i32()])
    yield Seed("NON_MAX_SUPPRESSION_V5", [*boxes, np.array(0.5, np.float32)], [i32(3), f32(3), i32()])
    yield Seed("LSH_PROJECTION", [weights(3, 4), i32(5, 2), f32(5)], [i32(3)], o.LSHProjectionOptions(type=1))


def _reductions() -> Iterator[Seed]:
    for op in ("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD"):
        yield Seed(op, [f32(2, 3, 4), ints(0, 2)], [f32(3)], o.ReducerOptions())
        yield Seed(op, [q8(2, 3), ints(1)], [q8(2, 1)], o.ReducerOptions(keep_dims=True), 2, "int8")
    for op in ("REDUCE_ALL", "REDUCE_ANY"):
        yield Seed(op, [bools(2, 3), i32(1)], [bools(2)], o.ReducerOptions())
    for op, cls in (("ARG_MAX", o.ArgMaxOptions), ("ARG_MIN", o.ArgMinOptions)):
        yield Seed(op, [f32(2, 3), np.array(1, np.int32)], [i32(2)], cls(output_type=TensorType.INT32))
    yield Seed("CUMSUM", [f32(2, 3), np.array(1, np.int32)], [f32(2, 3)], o.CumsumOptions())
    yield Seed("RFFT2D", [f32(4, 8), ints(4, 8)], [Spec("complex64", [4, 5])])


def _recurrent() -> Iterator[Seed]:
    state = Spec("float32", [1, 2], variable=True)
    cell = [weights(2, 3), weights(2, 2), weights(2)]
    yield Seed("RNN", [f32(1, 3), *cell, state], [f32(1, 2)], o.RNNOptions())
    yield Seed("UNIDIRECTIONAL_SEQUENCE_RNN", [f32(1, 4, 3), *cell, state], [f32(1, 4, 2)], o.SequenceRNNOptions())
    yield Seed(
        "BIDIRECTIONAL_SEQUENCE_RNN", [f32(1, 4, 3), *cell, state, *cell, state, None, None, None], [f32(1, 4, 2), f32(1, 4, 2)],
        o.BidirectionalSequenceRNNOptions(),
    )  # fmt: skip
    gates = [weights(2, 3)] * 4 + [weights(2, 2)] * 4 + [None] * 3 + [weights(2)] * 4 + [None] * 2
    full = [f32(1, 3), *gates, state, state]
    yield Seed("LSTM", [*full, *[None] * 4], [f32(1, 2)], o.LSTMOptions())
    yield Seed("UNIDIRECTIONAL_SEQUENCE_LSTM", [f32(1, 4, 3), *gates, state, state, *[None] * 4], [f32(1, 4, 2)],
               o.UnidirectionalSequenceLSTMOptions())  # fmt: skip
    both = [f32(1, 4, 3), *gates, *gates, state, state, state, state, *[None] * 9]
    yield Seed("BIDIRECTIONAL_SEQUENCE_LSTM", both, [f32(1, 4, 2), f32(1, 4, 2)],
               o.BidirectionalSequenceLSTMOptions(time_major=False))  # fmt: skip


def _rest() -> Iterator[Seed]:
    yield Seed("MULTINOMIAL", [f32(2, 3), np.array(4, np.int32)], [i32(2, 4)], o.RandomOptions(seed=1, seed2=2))
    yield Seed("RANDOM_UNIFORM", [i32(2)], [f32(2, 3)], o.RandomOptions(seed=1, seed2=2))
    yield Seed("RANDOM_STANDARD_NORMAL", [ints(2, 3)], [f32(2, 3)], o.RandomOptions(seed=1, seed2=2))


def _stablehlo() -> Iterator[Seed]:
    for op in ["ABS", "CBRT", "COSINE", "EXPONENTIAL", "FLOOR", "LOG", "LOGISTIC", "NEGATE", "RSQRT", "TANH"]:
        yield Seed(f"STABLEHLO_{op}", [f32(2, 3)], [f32(2, 3)])
    for op in ["ADD", "DIVIDE", "MAXIMUM", "MINIMUM", "MULTIPLY", "POWER", "REMAINDER", "SUBTRACT"]:
        yield Seed(f"STABLEHLO_{op}", [f32(2, 3), f32(2, 3)], [f32(2, 3)])
    for op in ("AND", "OR"):
        yield Seed(f"STABLEHLO_{op}", [bools(3), bools(3)], [bools(3)])
    yield Seed("STABLEHLO_SHIFT_LEFT", [i32(3), i32(3)], [i32(3)], h.StablehloShiftLeftOptions())
    yield Seed("STABLEHLO_CLAMP", [f32(), f32(3), f32()], [f32(3)])
    yield Seed("STABLEHLO_SELECT", [bools(3), f32(3), f32(3)], [f32(3)])
    yield Seed("STABLEHLO_COMPARE", [f32(3), f32(3)], [bools(3)], h.StablehloCompareOptions(comparison_direction=3))
    yield Seed("STABLEHLO_CONVERT", [f32(3)], [i32(3)])
    yield Seed("STABLEHLO_RESHAPE", [f32(2, 3)], [f32(6)])
    yield Seed("STABLEHLO_TRANSPOSE", [f32(2, 3)], [f32(3, 2)], h.StablehloTransposeOptions(permutation=longs(1, 0)))
    yield Seed("STABLEHLO_CONCATENATE", [f32(2, 3), f32(1, 3)], [f32(3, 3)], h.StablehloConcatenateOptions(dimension=0))
    yield Seed(
        "STABLEHLO_BROADCAST_IN_DIM", [f32(3)], [f32(2, 3)], h.StablehloBroadcastInDimOptions(broadcast_dimensions=longs(1))
    )
    yield Seed("STABLEHLO_IOTA", [], [f32(2, 3)], h.StablehloIotaOptions(iota_dimension=1))
    yield Seed("STABLEHLO_SLICE", [f32(4, 3)], [f32(2, 3)],
               h.StablehloSliceOptions(start_indices=longs(1, 0), limit_indices=longs(3, 3), strides=longs(1, 1)))  # fmt: skip
    yield Seed("STABLEHLO_DYNAMIC_SLICE", [f32(4, 3), i32(), i32()], [f32(2, 3)],
               h.StablehloDynamicSliceOptions(slice_sizes=longs(2, 3)))  # fmt: skip
    yield Seed("STABLEHLO_DYNAMIC_UPDATE_SLICE", [f32(4, 3), f32(2, 2), i32(), i32()], [f32(4, 3)])
    yield Seed("STABLEHLO_PAD", [f32(2, 3), f32()], [f32(3, 6)],
               h.StablehloPadOptions(edge_padding_low=longs(1, 0), edge_padding_high=longs(0, 1), interior_padding=longs(0, 1)))  # fmt: skip
    yield Seed("STABLEHLO_DOT_GENERAL", [f32(2, 3), f32(3, 4)], [f32(2, 4)],
               h.StablehloDotGeneralOptions(lhs_contracting_dimensions=longs(1), rhs_contracting_dimensions=longs(0)))  # fmt: skip
    yield Seed("STABLEHLO_GATHER", [f32(4, 3), i32(2, 1)], [f32(2, 3)],
               h.StablehloGatherOptions(offset_dims=longs(1), collapsed_slice_dims=longs(0), start_index_map=longs(0),
                                        index_vector_dim=1, slice_sizes=longs(1, 3)))  # fmt: skip
    yield Seed("STABLEHLO_RNG_BIT_GENERATOR", [Spec("uint64", [2])], [Spec("uint64", [2]), Spec("uint32", [4])],
               h.StablehloRngBitGeneratorOptions())  # fmt: skip
    yield Seed("STABLEHLO_CONVOLUTION", [f32(1, 4, 4, 2), f32(3, 3, 2, 3)], [f32(1, 2, 2, 3)], h.StablehloConvolutionOptions(
        window_strides=longs(1, 1), padding=longs(0, 0, 0, 0), lhs_dilation=longs(1, 1), rhs_dilation=longs(1, 1),
        window_reversal=np.zeros(2, bool), input_feature_dimension=3, input_spatial_dimensions=longs(1, 2),
        kernel_input_feature_dimension=2, kernel_output_feature_dimension=3, kernel_spatial_dimensions=longs(0, 1),
        output_feature_dimension=3, output_spatial_dimensions=longs(1, 2), feature_group_count=1, batch_group_count=1,
    ))  # fmt: skip
