"""The answers of translated operators are those of the numpy kernels, also in the middle of a graph of images."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.budgets import examples

from oplet import Interpreter, load_delegate
from oplet.schema import options as o
from oplet.schema.enums import ActivationFunctionType, MirrorPadMode, Padding
from oplet_testing import Graph, Op, Spec, graph_model, invoke, one_op_model, run_op

F32 = np.float32
RANDOM = np.random.default_rng(5)
SHAPE = (2, 5, 6, 4)
AXES = [np.array(axes, np.int32) for axes in ([1, 2], [3], [-1, 0], [1])]


def agree(model: bytes, *values: Any, nodes: int) -> None:
    """Check the answers, and that the delegate takes so many nodes."""
    interpreter = Interpreter(model_content=model, experimental_delegates=[load_delegate("openvino")])
    [report] = interpreter.delegation_reports()
    assert sum(map(len, report.partitions)) == nodes, report.unsupported
    for one, other in zip(invoke(interpreter, *values), run_op(model, *values), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@settings(max_examples=examples(40), deadline=None)
@given(
    size=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    taps=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    strides=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    dilation=st.integers(1, 2),
    groups=st.sampled_from([1, 2]),
    padding=st.sampled_from(Padding),
    activation=st.sampled_from([ActivationFunctionType.NONE, ActivationFunctionType.RELU6, ActivationFunctionType.RELU_N1_TO_1]),
    depthwise=st.booleans(),
)
def test_convolutions_agree(
    size: Any, taps: Any, strides: Any, dilation: int, groups: int, padding: Padding, activation: Any, depthwise: bool
) -> None:
    window = {
        "padding": padding,
        "stride_h": strides[0],
        "stride_w": strides[1],
        "dilation_h_factor": dilation,
        "dilation_w_factor": dilation,
        "fused_activation_function": activation,
    }
    sizes = [-(-n // s) if padding is Padding.SAME else -(-(n - (t - 1) * dilation) // s) for n, t, s in zip(size, taps, strides)]
    if min(sizes) < 1:
        return
    if depthwise:
        filters, shape = 4 * groups, (1, *taps, 4 * groups)
        options: Any = o.DepthwiseConv2DOptions(depth_multiplier=groups, **window)
    else:
        filters, shape = 6, (6, *taps, 4 // groups)
        options = o.Conv2DOptions(**window)
    weights, bias = (RANDOM.standard_normal(each).astype(F32) for each in (shape, (filters,)))
    op = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    model = one_op_model(op, [Spec(F32, [1, *size, 4]), weights, bias], [Spec(F32, [1, *sizes, filters])], options)
    agree(model, RANDOM.standard_normal((1, *size, 4)).astype(F32), nodes=1)


#: Operator, further inputs, options, the shape of what comes out.
ONE_IMAGE: list[tuple[str, list[Any], Any, tuple[int, ...]]] = [
    *(
        (op, [], None, SHAPE)
        for op in ("ABS", "RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "ELU", "SQUARE", "FLOOR", "SIN")
    ),
    ("LEAKY_RELU", [], o.LeakyReluOptions(alpha=0.3), SHAPE),
    ("GELU", [], o.GeluOptions(approximate=True), SHAPE),
    ("PRELU", [RANDOM.random((1, 1, 4)).astype(F32)], None, SHAPE),
    ("PRELU", [RANDOM.random((5, 1, 4)).astype(F32)], None, SHAPE),
    ("ADD", [RANDOM.random(4).astype(F32)], o.AddOptions(fused_activation_function=ActivationFunctionType.RELU), SHAPE),
    ("MUL", [RANDOM.random((1, 5, 6, 1)).astype(F32)], o.MulOptions(), SHAPE),
    ("SUB", [RANDOM.random((6, 4)).astype(F32)], o.SubOptions(), SHAPE),
    ("SOFTMAX", [], o.SoftmaxOptions(beta=0.5), SHAPE),
    ("LOG_SOFTMAX", [], None, SHAPE),
    ("L2_NORMALIZATION", [], o.L2NormOptions(), SHAPE),
    (
        "MAX_POOL_2D",
        [],
        o.Pool2DOptions(padding=Padding.SAME, stride_h=2, stride_w=1, filter_height=3, filter_width=2),
        (2, 3, 6, 4),
    ),
    (
        "AVERAGE_POOL_2D",
        [],
        o.Pool2DOptions(padding=Padding.SAME, stride_h=2, stride_w=2, filter_height=3, filter_width=3),
        (2, 3, 3, 4),
    ),
    *(
        ("MEAN", [axes], o.ReducerOptions(keep_dims=True), tuple(1 if i in axes % 4 else n for i, n in enumerate(SHAPE)))
        for axes in AXES
    ),
    *(
        ("REDUCE_MAX", [axes], o.ReducerOptions(keep_dims=False), tuple(n for i, n in enumerate(SHAPE) if i not in axes % 4))
        for axes in AXES
    ),
    ("PAD", [np.array([[0, 0], [1, 2], [0, 3], [2, 0]], np.int32)], None, (2, 8, 9, 6)),
    ("PADV2", [np.array([[0, 1], [1, 2], [0, 3], [2, 0]], np.int32), np.array(7, F32)], None, (3, 8, 9, 6)),
    (
        "MIRROR_PAD",
        [np.array([[0, 0], [1, 2], [0, 3], [2, 0]], np.int32)],
        o.MirrorPadOptions(mode=MirrorPadMode.REFLECT),
        (2, 8, 9, 6),
    ),
    ("RESIZE_BILINEAR", [np.array([7, 12], np.int32)], o.ResizeBilinearOptions(half_pixel_centers=True), (2, 7, 12, 4)),
    ("RESIZE_BILINEAR", [np.array([9, 11], np.int32)], o.ResizeBilinearOptions(align_corners=True), (2, 9, 11, 4)),
    ("RESIZE_BILINEAR", [np.array([3, 4], np.int32)], o.ResizeBilinearOptions(), (2, 3, 4, 4)),
    ("RESIZE_NEAREST_NEIGHBOR", [np.array([10, 12], np.int32)], o.ResizeNearestNeighborOptions(), (2, 10, 12, 4)),
    (
        "RESIZE_NEAREST_NEIGHBOR",
        [np.array([7, 5], np.int32)],
        o.ResizeNearestNeighborOptions(half_pixel_centers=True),
        (2, 7, 5, 4),
    ),
    ("DEPTH_TO_SPACE", [], o.DepthToSpaceOptions(block_size=2), (2, 10, 12, 1)),
    ("TRANSPOSE", [np.array([0, 3, 1, 2], np.int32)], None, (2, 4, 5, 6)),
    ("TRANSPOSE", [np.array([3, 2, 1, 0], np.int32)], None, (4, 6, 5, 2)),
    ("RESHAPE", [np.array([2, -1], np.int32)], None, (2, 120)),
    ("SLICE", [np.array([0, 1, 2, 1], np.int32), np.array([2, 2, -1, 2], np.int32)], None, (2, 2, 4, 2)),
    (
        "STRIDED_SLICE",
        [np.array(numbers, np.int32) for numbers in ([0, -1, 1, 0], [2, -6, 5, 1], [1, -2, 2, 1])],
        o.StridedSliceOptions(shrink_axis_mask=8),
        (2, 3, 2),
    ),
    ("REVERSE_V2", [np.array([1, 2], np.int32)], None, SHAPE),
    ("TILE", [np.array([1, 2, 1, 3], np.int32)], None, (2, 10, 6, 12)),
    ("GATHER", [np.array([3, 0, 0], np.int32)], o.GatherOptions(axis=2), (2, 5, 3, 4)),
    ("ARG_MAX", [np.array(3, np.int32)], o.ArgMaxOptions(output_type=o.TensorType.INT32), (2, 5, 6)),
    ("CUMSUM", [np.array(1, np.int32)], o.CumsumOptions(exclusive=True, reverse=True), SHAPE),
    ("SPACE_TO_BATCH_ND", [np.array([5, 2], np.int32), np.zeros((2, 2), np.int32)], None, (20, 1, 3, 4)),
    ("LESS", [np.zeros(1, F32)], None, SHAPE),
]


@pytest.mark.parametrize(("op", "more", "options", "shape"), ONE_IMAGE, ids=lambda value: value if isinstance(value, str) else "")
def test_an_operator_agrees_alone_and_after_a_convolution(op: str, more: list[Any], options: Any, shape: tuple[int, ...]) -> None:
    type = np.int32 if op == "ARG_MAX" else np.bool_ if op == "LESS" else F32
    x = RANDOM.standard_normal(SHAPE).astype(F32)
    agree(one_op_model(op, [Spec(F32, SHAPE), *more], [Spec(type, shape)], options), x, nodes=1)
    tensors = {
        "x": Spec(F32, SHAPE),
        "w": np.eye(4, dtype=F32).reshape(4, 1, 1, 4),
        "b": np.zeros(4, F32),
        "c": Spec(F32, SHAPE),
        "y": Spec(type, shape),
        **{f"m{i}": array for i, array in enumerate(more)},
    }
    names = " ".join(["c", *(f"m{i}" for i in range(len(more)))])
    conv = Op("CONV_2D", "x w b", "c", o.Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1))
    agree(graph_model(Graph(tensors, "x", "y", [conv, Op(op, names, "y", options)])), x, nodes=2)


def test_pieces_and_wholes_agree_in_the_middle_of_images() -> None:
    half = Spec(F32, (*SHAPE[:3], 2))
    tensors = {
        "x": Spec(F32, SHAPE),
        "w": RANDOM.standard_normal((4, 3, 3, 4)).astype(F32),
        "b": np.zeros(4, F32),
        "axis": np.array(3, np.int32),
        "c": Spec(F32, SHAPE),
        "l": half,
        "r": half,
        "m": half,
        "j": Spec(F32, (*SHAPE[:3], 6)),
    }
    ops = [
        Op("CONV_2D", "x w b", "c", o.Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)),
        Op("SPLIT", "axis c", "l r", o.SplitOptions(num_splits=2)),
        Op("MAXIMUM", "l r", "m"),
        Op("CONCATENATION", "m r l", "j", o.ConcatenationOptions(axis=-1)),
    ]
    agree(graph_model(Graph(tensors, "x", "j r", ops)), RANDOM.standard_normal(SHAPE).astype(F32), nodes=4)


def test_float16_constants_are_widened_once() -> None:
    weights = RANDOM.standard_normal((3, 8)).astype(np.float16)
    tensors = {"x": Spec(F32, (2, 8)), "h": weights, "w": Spec(F32, (3, 8)), "y": Spec(F32, (2, 3))}
    ops = [Op("DEQUANTIZE", "h", "w"), Op("FULLY_CONNECTED", "x w", "y", o.FullyConnectedOptions())]
    agree(graph_model(Graph(tensors, "x", "y", ops)), RANDOM.standard_normal((2, 8)).astype(F32), nodes=1)


def test_quantized_borders_agree_to_the_bit_and_to_a_step() -> None:
    x = np.arange(-128, 128).astype(np.int8)
    for scale, zero in ((0.31, -7), (0.02, 0), (1.7, 100)):
        narrow = Spec("int8", [256], scale=[scale], zero_point=[zero])
        real = run_op(one_op_model("DEQUANTIZE", [narrow], [Spec(F32, [256])]), x)[0]
        delegate = load_delegate("openvino")
        got = run_op(one_op_model("DEQUANTIZE", [narrow], [Spec(F32, [256])]), x, experimental_delegates=[delegate])[0]
        np.testing.assert_array_equal(got, real)
        model = one_op_model("QUANTIZE", [Spec(F32, [256])], [narrow])
        delegate = load_delegate("openvino")
        got = run_op(model, real * F32(1.01), experimental_delegates=[delegate])[0].astype(int)
        assert np.abs(got - run_op(model, real * F32(1.01))[0].astype(int)).max() <= 1


def quantized_model(stride: int = 1) -> bytes:
    """CONV_2D and ADD in 8 bits."""
    image, out = Spec("int8", (1, 6, 6, 4), scale=[0.05], zero_point=[3]), (1, -(-6 // stride), -(-6 // stride), 8)
    tensors = {
        "x": image,
        "w": Spec(
            "int8", (8, 1, 1, 4), scale=[0.01], zero_point=[0], data=RANDOM.integers(-127, 128, (8, 1, 1, 4)).astype(np.int8)
        ),
        "b": Spec("int32", (8,), scale=[0.0005], zero_point=[0], data=RANDOM.integers(-500, 500, 8).astype(np.int32)),
        "c": Spec("int8", out, scale=[0.04], zero_point=[-9]),
        "s": Spec("int8", out, scale=[0.08], zero_point=[-9]),
    }
    conv = o.Conv2DOptions(padding=Padding.SAME, stride_h=stride, stride_w=stride)
    return graph_model(Graph(tensors, "x", "s", [Op("CONV_2D", "x w b", "c", conv), Op("ADD", "c c", "s", o.AddOptions())]))


def test_quantized_layers_are_taken_where_one_asks_for_them_and_stay_within_two_steps() -> None:
    model, x = quantized_model(), RANDOM.integers(-128, 128, (1, 6, 6, 4)).astype(np.int8)
    plain = Interpreter(model_content=model, experimental_delegates=[load_delegate("openvino")])
    assert plain.delegation_reports()[0].unsupported[0].startswith("it is quantized: OpenVINO may be a step off")
    asked = Interpreter(model_content=model, experimental_delegates=[load_delegate("openvino", {"quantized": 1})])
    assert asked.delegation_reports()[0].partitions == [[0, 1]]
    [got] = run_op(model, x, experimental_delegates=[load_delegate("openvino", {"quantized": 1})])
    assert np.abs(got.astype(int) - run_op(model, x)[0].astype(int)).max() <= 2


def test_a_partition_of_whose_output_openvino_makes_another_shape_is_given_back() -> None:
    model, x = quantized_model(stride=2), RANDOM.integers(-128, 128, (1, 6, 6, 4)).astype(np.int8)
    [got] = run_op(model, x, experimental_delegates=[load_delegate("openvino", {"quantized": 1})])
    assert np.abs(got.astype(int) - run_op(model, x)[0].astype(int)).max() <= 2
