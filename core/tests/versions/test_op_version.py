"""The lowest version of an operator that covers what a node uses: every rule, their order, and odd nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oplet.schema import options as o
from oplet.schema.enums import (
    ActivationFunctionType,
    BuiltinOperator,
    FullyConnectedOptionsWeightsFormat,
    LSTMKernelType,
    TensorType,
)
from oplet.schema.table import Table
from oplet.schema.tables import QuantizationParameters, SparsityParameters, Tensor
from oplet.versions.op_version import LOWEST, RULES, explain_version, op_version
from oplet.versions.runtime_version import first_runtime
from oplet.versions.signature import Signature

Case = tuple[BuiltinOperator, int, list[Tensor | None], list[Tensor | None], Table | None]

#: Versions that LiteRT's rules give though no release registers them: its LSTM kernels take no INT16 input, tflite-micro's do.
UNREGISTERED = {("LSTM", 5), ("UNIDIRECTIONAL_SEQUENCE_LSTM", 5)}

# A node is written as its tensors' types, "INT8 INT8 - > INT8"; "-" is an omitted one. "[2,3]" is a shape, "*4" gives four
# scales, "*0" a quantization table without any, "@1" the axis that they belong to, "=0.5" one scale of that value, "!" a sparse form.
_TENSOR = re.compile(
    r"(?P<type>\w+)(\[(?P<shape>[\d,]*)\])?(\*(?P<scales>\d+))?(@(?P<axis>\d))?(=(?P<scale>[\d.]+))?(?P<sparse>!)?"
)

FIVE_D = "[1,2,3,4,5]"

#: Operators and, for each version, a node that needs it and no option.
BY_TENSORS = {
    "CONV_2D": "6: FLOAT32[1,5,5,8] FLOAT32[4,3,3,2] > FLOAT32; 4: INT16 INT16 > INT16;"
    "4: INT16[1,5,5,2] INT8[4,3,3,2]*4 > INT16;"
    "3: INT8 INT8 > INT8; 7: INT8 INT4 > INT8; 5: FLOAT32[1,5,5,2] INT8[4,3,3,2]*4 > FLOAT32;"
    "2: FLOAT32 INT8[4,3,3,2]*1 > FLOAT32;"
    "2: FLOAT32[1,5,5,2] INT8 > FLOAT32; 1: FLOAT32[1,5,5,2] FLOAT32[4,3,3,2] > FLOAT32; 1: UINT8 UINT8 > UINT8",
    "DEPTHWISE_CONV_2D": "5: INT16 INT16 > INT16; 5: INT16 INT8 > INT16; 6: FLOAT32 INT8[1,3,3,4]*4 > FLOAT32;"
    "4: FLOAT32 INT8[4,3,3,2]*4 > FLOAT32; 3: INT8 INT8 > INT8; 7: INT8 INT4 > INT8; 1: FLOAT32 FLOAT32 > FLOAT32",
    "TRANSPOSE_CONV": "3: INT32 INT8 INT8 INT32; 2: INT32 INT8 INT8 -; 2: INT32 INT8 INT8; 1: FLOAT32 UINT8",
    "FULLY_CONNECTED": "14: INT8 INT2 > INT8; 13: INT16 INT4 > INT16; 12: FLOAT32 INT8[4,2]*4 > FLOAT32; 8: INT8 INT8! > INT8;"
    "7: INT16 INT16 > INT16; 7: INT16 INT8 INT32 > INT16; 6: UINT8 UINT8 > UINT8; 4: INT8 INT8 - > INT8; 10: INT8 INT4 - > INT8;"
    "3: FLOAT32 INT8[4,2]*1 FLOAT32 > FLOAT32; 1: FLOAT32 FLOAT32 FLOAT32 > FLOAT32",
    "BATCH_MATMUL": "3: INT16 INT8 > INT16; 2: INT8 INT8 > INT8; 1: FLOAT32 INT8 > FLOAT32; 1: FLOAT32 FLOAT32 > FLOAT32",
    "EMBEDDING_LOOKUP": "4: INT32 INT4; 4: INT32 INT8[3,2]*3; 1: INT32 INT8[1,2]*1; 5: INT32 INT2; 1: INT32 FLOAT32",
    "SVDF": "3: INT8 INT8 > INT8; 2: FLOAT32 INT8 > FLOAT32; 1: FLOAT32 FLOAT32 > FLOAT32",
    "RNN UNIDIRECTIONAL_SEQUENCE_RNN BIDIRECTIONAL_SEQUENCE_RNN BIDIRECTIONAL_SEQUENCE_LSTM": "2: FLOAT32 INT8 > FLOAT32;"
    "1: FLOAT32 FLOAT32 > FLOAT32; 1: INT8 INT8 > INT8",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "5: INT16 - INT8 > INT16; 2: FLOAT32 - INT8 > FLOAT32; 1: FLOAT32 - FLOAT32 > FLOAT32",
    "LSTM": "5: INT16 - INT8 > INT16; 3: FLOAT32 - INT8 > FLOAT32; 1: FLOAT32 - FLOAT32 > FLOAT32",
    "GATHER": "8: FLOAT8_E5M2; 7: INT4; 6: INT8 INT16; 4: INT16 INT32; 3: BOOL; 2: INT8; 1: FLOAT32",
    "GATHER_ND": "6: FLOAT8_E4M3FN; 5: BOOL INT16; 4: INT32 INT16; 3: INT16 INT32; 2: STRING INT32; 1: INT32 INT32",
    "TRANSPOSE": f"9: FLOAT16; 8: BFLOAT16; 8: FLOAT32[1,1,1,1,1,1,1]; 7: INT4; 6: FLOAT32[1,1,1,1,1,1]; 5: INT16{FIVE_D};"
    f"4: BOOL{FIVE_D}; 3: BOOL[1,1,1,1]; 2: INT8; 1: UINT8",
    "SPLIT": "5: INT32 FLOAT8_E5M2; 4: INT32 INT16; 3: INT32 INT32; 2: INT32 INT8; 1: INT32 FLOAT32",
    "SPLIT_V": "3: FLOAT8_E5M2; 2: INT8; 1: INT16",
    "SPARSE_TO_DENSE": "3: INT8 INT8 INT8; 3: UINT8 UINT8 UINT8; 2: INT64 INT64 INT64; 1: INT32 INT32 INT32",
    "SLICE": f"8: FLOAT16; 7: INT4; 6: UINT32[4,4,4,4]; 5: INT16{FIVE_D}; 4: INT16[4,4,4,4]; 3: STRING; 2: INT8; 1: UINT8",
    "STRIDED_SLICE": f"7: UINT32; 5: STRING{FIVE_D}; 4: INT8{FIVE_D}; 3: BOOL; 2: INT8; 1: UINT8",
    "DYNAMIC_UPDATE_SLICE": "6: BFLOAT16; 5: INT4; 4: INT16 INT16 INT32; 3: FLOAT16 FLOAT16 INT32; 2: FLOAT32 FLOAT32 INT64;"
    "1: FLOAT32 FLOAT32 INT32",
    "PACK": "5: FLOAT8_E5M2; 2: INT8; 3: INT16 > INT16; 4: UINT32; 1: INT32",
    "UNPACK": "6: FLOAT8_E4M3FN; 2: INT8; 2: UINT8; 3: BOOL; 4: INT16 > INT16; 5: FLOAT16; 5: BFLOAT16; 1: INT32",
    "CONCATENATION": "7: FLOAT8_E5M2; 6: FLOAT16; 5: INT4; 4: UINT32; 3: INT16; 2: INT8; 1: FLOAT32",
    "PAD PADV2": f"6: FLOAT8_E5M2; 5: BOOL{FIVE_D}; 4: INT16{FIVE_D}; 3: INT16; 2: INT8; 1: UINT8",
    "SPACE_TO_BATCH_ND BATCH_TO_SPACE_ND": "4: INT16[4,4,4]; 4: INT16[4,4,4,4]; 3: INT8[4,4,4]; 2: INT8[4,4,4,4];"
    "3: UINT8[4,4,4];"
    "1: UINT8[4,4,4,4]",
    "REVERSE_V2": "4: FLOAT8_E5M2; 3: INT8; 2: BOOL; 1: FLOAT32",
    "TILE": "3: INT8; 2: STRING; 1: INT32",
    "SQUEEZE": "2: STRING; 1: INT8",
    "BROADCAST_TO": "4: FLOAT8_E5M2; 3: INT8; 3: INT16; 2: FLOAT32",
    "FILL": "5: INT32 FLOAT8_E5M2; 4: INT64 FLOAT16; 3: INT32 INT8; 3: INT64 INT16; 2: INT32 BOOL; 2: INT32 STRING;"
    "1: INT32 INT32",
    "RANGE": "2: INT64; 1: INT32",
    "WHERE": "2: FLOAT32; 2: INT8; 1: BOOL",
    "SELECT": f"4: UINT32{FIVE_D}; 3: BOOL FLOAT32 FLOAT32{FIVE_D}; 3: UINT8{FIVE_D}; 2: INT8[4,4,4,4];"
    "1: FLOAT32 FLOAT32 FLOAT32",
    "SELECT_V2": "2: UINT32; 1: INT32",
    "TOPK_V2": "3: INT16; 3: INT8 INT16; 3: INT8 INT32 > INT8 INT16; 2: INT8 INT32 > INT8 INT32;1: FLOAT32 INT32 > FLOAT32 INT32",
    "RESIZE_BILINEAR RESIZE_NEAREST_NEIGHBOR": "4: INT16 INT32; 2: INT8 INT32; 1: FLOAT32 INT32",
    "ADD": "6: FLOAT16; 5: INT16; 5: INT16*0 INT16*0 > INT16*0; 4: INT64; 2: INT8; 1: INT16*1 INT16*1 > INT16*1; 1: FLOAT32",
    "SUB": f"4: INT64; 3: INT8{FIVE_D} INT8[4,5]; 2: INT8{FIVE_D} INT8{FIVE_D}; 1: INT16 > INT16",
    "MUL": "8: FLOAT16; 7: UINT32; 7: INT16 INT16; 6: COMPLEX64; 5: INT64; 4: INT16 INT16*1; 3: INT8=1 INT8=1 > INT8=0.5;"
    "2: INT8=1 INT8=1 > INT8=2; 2: INT8=0 INT8=0 > INT8=0; 2: INT8=1 INT8=1 > INT8*0; 1: UINT8=1 UINT8=1 > UINT8=2",
    "DIV": f"2: UINT8{FIVE_D} UINT8[4,5]; 1: UINT8{FIVE_D} UINT8{FIVE_D}; 1: UINT8[1,4] UINT8[4,4]",
    "FLOOR_DIV": "3: INT16; 3: INT8; 2: FLOAT32; 1: INT32",
    "FLOOR_MOD": "2: INT16; 2: INT8; 1: FLOAT32",
    "MAXIMUM MINIMUM": f"4: INT16 INT16 > INT16; 3: INT8[2,3,4,5] INT8{FIVE_D}; 3: UINT8{FIVE_D} UINT8[5];"
    f"2: INT8{FIVE_D} INT8{FIVE_D};"
    "2: INT8[1,4] INT8[4,4]; 1: UINT8[1,4] UINT8[4,4]",
    "EQUAL": "5: INT16; 3: STRING; 2: INT8; 1: FLOAT32",
    "NOT_EQUAL": "4: INT16; 3: STRING; 2: INT8; 1: FLOAT32",
    "LESS GREATER_EQUAL": "3: INT16; 2: INT8; 1: UINT8",
    "GREATER LESS_EQUAL SQUARED_DIFFERENCE LOG_SOFTMAX SUM SPACE_TO_DEPTH DEPTH_TO_SPACE": "2: INT8; 1: UINT8; 1: INT16",
    "MAX_POOL_2D AVERAGE_POOL_2D TANH LOGISTIC": "3: INT16 > INT16; 2: INT8; 1: UINT8",
    "MEAN MIRROR_PAD REDUCE_MAX REDUCE_MIN RELU6 RSQRT": "3: INT16; 2: INT8; 1: UINT8",
    "EXP LOG SQRT REDUCE_PROD": "2: INT8; 2: INT16; 1: FLOAT32",
    "ARG_MAX ARG_MIN": "3: BOOL; 2: INT8; 1: FLOAT32",
    "ABS": "5: INT32; 3: INT16*1; 4: INT16; 4: INT16*0; 2: INT8; 2: UINT8; 1: FLOAT32",
    "SIGN": "2: INT32; 1: FLOAT32",
    "SIN COS": "2: FLOAT16; 1: FLOAT32",
    "RELU": "3: INT16; 2: INT8; 2: UINT8; 1: INT32",
    "LEAKY_RELU": "2: INT16; 1: INT8",
    "GELU": "3: FLOAT16; 2: INT8; 2: UINT8; 1: FLOAT32",
    "SOFTMAX": "4: FLOAT16; 3: INT16; 2: INT8; 1: FLOAT32",
    "L2_NORMALIZATION": "2: > INT8; 1: > UINT8",
    "FAKE_QUANT": "1: FLOAT32",
    "DEQUANTIZE": "9: FLOAT8_E5M2; 8: UINT4; 7: INT2; 6: INT4; 3: INT16; 3: FLOAT16; 5: INT8[2,3]*3@1; 2: INT8[2,3]*3;"
    "2: INT8[1,3]*1;"
    "1: UINT8",
    "QUANTIZE": "5: FLOAT32 > UINT4; 5: UINT4 > INT8; 4: FLOAT32 > INT4; 4: INT4 > INT8; 3: FLOAT32 > INT16[2,3]*3@1;"
    "2: FLOAT32 > INT16[2,3]*1@1; 1: FLOAT32 > INT8; 1: FLOAT32 > UINT8",
    "CAST": "9: FLOAT8_E5M2 > INT2; 9: INT32 > FLOAT8_E4M3FN; 8: INT2 > INT32; 8: INT32 > UINT4; 7: BFLOAT16 > INT32;"
    "7: INT8 > BFLOAT16;"
    "6: INT4 > FLOAT32; 1: INT4 > INT32; 5: FLOAT64 > INT32; 5: INT32 > FLOAT16; 4: UINT16 > INT32; 4: INT8 > UINT16;"
    "3: INT8 > INT32;"
    "3: UINT32 > INT8; 2: UINT32 > INT32; 2: INT32 > UINT32; 1: INT32 > INT32",
    "RESHAPE CALL_ONCE STABLEHLO_ADD RELU_N1_TO_1": "1: INT16; 1: FLOAT16",
}

_16X8 = "INT16[1,5,5,2] INT8[4,3,3,2]*4 INT32 > INT16"
_HYBRID = "FLOAT32 INT8 FLOAT32 > FLOAT32"

#: Operator, version, tensors and the options that call for the version.
BY_OPTIONS: list[tuple[str, int, str, Table]] = [
    ("CONV_2D", 8, _16X8, o.Conv2DOptions(quantized_bias_type=TensorType.INT32)),
    ("CONV_2D", 8, "INT16[1,5,5,8] INT8[4,3,3,2] > INT16", o.Conv2DOptions(quantized_bias_type=TensorType.INT64)),
    ("CONV_2D", 4, _16X8, o.Conv2DOptions()),
    ("CONV_2D", 3, "INT8 INT8 > INT8", o.Conv2DOptions(quantized_bias_type=TensorType.INT32)),
    ("DEPTHWISE_CONV_2D", 2, "FLOAT32 FLOAT32 > FLOAT32", o.DepthwiseConv2DOptions(dilation_w_factor=2)),
    ("DEPTHWISE_CONV_2D", 2, "FLOAT32 FLOAT32 > FLOAT32", o.DepthwiseConv2DOptions(dilation_h_factor=2)),
    ("DEPTHWISE_CONV_2D", 1, "FLOAT32 FLOAT32 > FLOAT32", o.DepthwiseConv2DOptions(dilation_h_factor=1, dilation_w_factor=1)),
    ("DEPTHWISE_CONV_2D", 3, "INT8 INT8 > INT8", o.DepthwiseConv2DOptions(dilation_w_factor=2)),
    ("TRANSPOSE_CONV", 5, "INT16 INT8 > INT16", o.TransposeConvOptions(quantized_bias_type=TensorType.INT32)),
    (
        "TRANSPOSE_CONV",
        4,
        "INT32 INT8 INT8 INT32",
        o.TransposeConvOptions(fused_activation_function=ActivationFunctionType.RELU),
    ),
    ("FULLY_CONNECTED", 11, "INT16 INT8 > INT16", o.FullyConnectedOptions(quantized_bias_type=TensorType.INT32)),
    ("FULLY_CONNECTED", 5, "INT8 INT8 INT32 > INT8", o.FullyConnectedOptions(keep_num_dims=True)),
    ("FULLY_CONNECTED", 9, _HYBRID, o.FullyConnectedOptions(asymmetric_quantize_inputs=True)),
    (
        "FULLY_CONNECTED",
        2,
        "UINT8 UINT8 - > UINT8",
        o.FullyConnectedOptions(weights_format=FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8),
    ),
    (
        "FULLY_CONNECTED",
        6,
        "UINT8 UINT8 > UINT8",
        o.FullyConnectedOptions(weights_format=FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8),
    ),
    ("BATCH_MATMUL", 4, "FLOAT32 INT8 > FLOAT32", o.BatchMatMulOptions(asymmetric_quantize_inputs=True)),
    ("BATCH_MATMUL", 1, "FLOAT32 FLOAT32 > FLOAT32", o.BatchMatMulOptions(asymmetric_quantize_inputs=True)),
    ("SVDF", 4, _HYBRID, o.SVDFOptions(asymmetric_quantize_inputs=True)),
    ("RNN", 3, _HYBRID, o.RNNOptions(asymmetric_quantize_inputs=True)),
    ("UNIDIRECTIONAL_SEQUENCE_RNN", 3, _HYBRID, o.SequenceRNNOptions(asymmetric_quantize_inputs=True)),
    ("BIDIRECTIONAL_SEQUENCE_RNN", 3, _HYBRID, o.BidirectionalSequenceRNNOptions(asymmetric_quantize_inputs=True)),
    ("BIDIRECTIONAL_SEQUENCE_LSTM", 3, _HYBRID, o.BidirectionalSequenceLSTMOptions(asymmetric_quantize_inputs=True)),
    (
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        3,
        "FLOAT32 - INT8 > FLOAT32",
        o.UnidirectionalSequenceLSTMOptions(asymmetric_quantize_inputs=True),
    ),
    (
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        4,
        "FLOAT32 - INT8 > FLOAT32",
        o.UnidirectionalSequenceLSTMOptions(asymmetric_quantize_inputs=True, diagonal_recurrent_tensors=True),
    ),
    ("LSTM", 4, "FLOAT32 - INT8 > FLOAT32", o.LSTMOptions(asymmetric_quantize_inputs=True)),
    ("LSTM", 2, "INT16 - INT8 > INT16", o.LSTMOptions(kernel_type=LSTMKernelType.BASIC)),
    ("LSTM", 2, "FLOAT32 - INT8 > FLOAT32", o.LSTMOptions(kernel_type=LSTMKernelType.BASIC, asymmetric_quantize_inputs=True)),
    ("GATHER", 5, "INT16 INT32", o.GatherOptions(batch_dims=1)),
    ("STRIDED_SLICE", 8, "UINT32", o.StridedSliceOptions(offset=True)),
    ("STRIDED_SLICE", 7, "UINT32", o.StridedSliceOptions(new_axis_mask=2)),
    ("STRIDED_SLICE", 6, f"INT8{FIVE_D}", o.StridedSliceOptions(new_axis_mask=2)),
    ("STRIDED_SLICE", 6, "STRING", o.StridedSliceOptions(ellipsis_mask=1)),
    ("STRIDED_SLICE", 1, "FLOAT32", o.StridedSliceOptions(begin_mask=1, shrink_axis_mask=1)),
    ("RESIZE_BILINEAR", 3, "INT8 INT32", o.ResizeBilinearOptions(half_pixel_centers=True)),
    ("RESIZE_BILINEAR", 1, "FLOAT32 INT32", o.ResizeBilinearOptions(align_corners=True)),
    ("RESIZE_BILINEAR", 4, "INT16 INT32", o.ResizeBilinearOptions(half_pixel_centers=True)),
    ("RESIZE_NEAREST_NEIGHBOR", 3, "FLOAT32 INT32", o.ResizeNearestNeighborOptions(half_pixel_centers=True)),
    ("RESIZE_NEAREST_NEIGHBOR", 3, "INT8 INT32", o.ResizeNearestNeighborOptions(align_corners=True)),
    ("ADD", 3, "INT16*1 > INT16", o.AddOptions(pot_scale_int16=False)),
    ("ADD", 5, "INT16 > INT16", o.AddOptions(pot_scale_int16=False)),
    ("SUB", 5, "INT16 > INT16", o.SubOptions(pot_scale_int16=False)),
    ("FAKE_QUANT", 2, "FLOAT32", o.FakeQuantOptions(narrow_range=True)),
]


def _tensor(text: str) -> Tensor | None:
    if text == "-":
        return None
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} does not describe a tensor")
    tensor = Tensor(type=TensorType[match["type"]])
    if match["shape"]:
        tensor.shape = np.array([int(n) for n in match["shape"].split(",")], np.int32)
    if match["scales"] or match["scale"]:
        scales = [0.5] * int(match["scales"]) if match["scales"] else [float(match["scale"])]
        tensor.quantization = QuantizationParameters(quantized_dimension=int(match["axis"] or 0))
        if scales:
            tensor.quantization.scale = np.array(scales, np.float32)
    if match["sparse"]:
        tensor.sparsity = SparsityParameters()
    return tensor


def _node(text: str) -> tuple[list[Tensor | None], list[Tensor | None]]:
    inputs, _, outputs = text.partition(">")
    return [_tensor(t) for t in inputs.split()], [_tensor(t) for t in outputs.split()]


def _cases() -> Iterator[tuple[str, Case]]:
    for ops, nodes in BY_TENSORS.items():
        for op in ops.split():
            for node in nodes.split(";"):
                version, _, tensors = node.partition(":")
                yield f"{op}-{tensors.strip()}", (BuiltinOperator[op], int(version), *_node(tensors), None)
    for op, wanted, tensors, options in BY_OPTIONS:
        yield f"{op}-{tensors}-{options}", (BuiltinOperator[op], wanted, *_node(tensors), options)


CASES = dict(_cases())


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_a_node_needs_the_lowest_version_that_covers_it(case: Case) -> None:
    op, wanted, inputs, outputs, options = case
    assert op_version(op, inputs, outputs, options) == wanted


def test_every_rule_decides_some_case() -> None:
    decided: set[tuple[BuiltinOperator, int | None]] = set()
    for op, _, inputs, outputs, options in CASES.values():
        node = Signature(inputs, outputs, options)
        decided.add((op, next((i for i, rule in enumerate(RULES.get(op, ())) if rule.condition.holds(node)), None)))
    rules: set[tuple[BuiltinOperator, int | None]] = {(op, i) for op, rows in RULES.items() for i in (*range(len(rows)), None)}
    assert not rules - decided


def test_every_version_is_one_that_some_runtime_has() -> None:
    given = {(op.name, rule.version) for op, rows in RULES.items() for rule in rows} | {(op.name, v) for op, v in LOWEST.items()}
    assert {pair for pair in given if first_runtime(*pair) is None} == UNREGISTERED


def test_a_version_comes_with_its_reason() -> None:
    inputs, outputs = _node("FLOAT32[1,5,5,2] INT8[4,3,3,2]*4 FLOAT32 > FLOAT32")
    assert explain_version(BuiltinOperator.CONV_2D, inputs, outputs, None) == (5, "per-channel int8 weights with float input")
    assert explain_version(BuiltinOperator.CONV_2D, inputs[:1], outputs, None) == (1, "")
    assert explain_version(BuiltinOperator.PAD, *_node("INT8"), None) == (2, "INT8 input")


def test_options_of_another_operator_read_as_the_defaults() -> None:
    node = _node("FLOAT32 FLOAT32 > FLOAT32")
    assert op_version(BuiltinOperator.DEPTHWISE_CONV_2D, *node, o.Pool2DOptions(stride_w=2)) == 1
    assert op_version(BuiltinOperator.LSTM, *_node("INT16 - INT8 > INT16"), None) == 5


_shapes = st.none() | st.lists(st.integers(-(2**31), 2**31 - 1), max_size=8).map(lambda shape: np.array(shape, np.int32))
_scales = st.none() | st.lists(st.floats(width=32), max_size=4).map(lambda scales: np.array(scales, np.float32))
_quantization = st.none() | st.builds(QuantizationParameters, scale=_scales, quantized_dimension=st.integers(-(2**31), 2**31 - 1))
_tensors = st.none() | st.builds(
    Tensor,
    type=st.sampled_from(TensorType) | st.integers(23, 127),
    shape=_shapes,
    quantization=_quantization,
    sparsity=st.none() | st.just(SparsityParameters()),
)
_options = st.none() | st.sampled_from([cls() for cls in o.BuiltinOptions.values()])


@given(st.sampled_from(BuiltinOperator), st.lists(_tensors, max_size=5), st.lists(_tensors, max_size=3), _options)
def test_every_node_gets_an_answer(
    op: BuiltinOperator, inputs: list[Tensor | None], outputs: list[Tensor | None], options: Table | None
) -> None:
    version, reason = explain_version(op, inputs, outputs, options)
    assert (version, reason) in {(LOWEST.get(op, 1), "")} | {(rule.version, rule.reason) for rule in RULES.get(op, ())}
