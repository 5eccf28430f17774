"""The answers of translated operators are those of oplet's kernels, and all nodes of a graph are one function."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from oplet import Interpreter, load_delegate
from oplet.schema import options as o
from oplet.schema import stablehlo_options as s
from oplet.schema.enums import ActivationFunctionType, MirrorPadMode, Padding, StablehloComparisonDirection
from oplet_testing import Graph, Op, Spec, graph_model, invoke, one_op_model, run_op
from oplet_xla_delegate import translators

F32 = np.float32
RANDOM = np.random.default_rng(5)
SHAPE = (2, 5, 6, 4)


def delegated(model: bytes, nodes: int, **options: object) -> Interpreter:
    """An interpreter whose delegate has taken so many nodes, in one partition."""
    interpreter = Interpreter(model_content=model, experimental_delegates=[load_delegate("xla", {"device": "cpu", **options})])
    report = interpreter.delegation_reports()[0]
    assert [len(partition) for partition in report.partitions] == [nodes], (report.unsupported, report.error)
    return interpreter


def agree(model: bytes, *values: Any, nodes: int, **options: object) -> None:
    """Check the answers, and that the delegate takes so many nodes."""
    for one, other in zip(invoke(delegated(model, nodes, **options), *values), run_op(model, *values), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def image_graph(ops: list[tuple[str, list[Any], Any, tuple[int, ...], Any]]) -> bytes:
    """A model that computes each operator of the same image: compiling many is as fast as one."""
    tensors: dict[str, Any] = {"x": Spec(F32, SHAPE)}
    nodes, outputs = [], []
    for number, (op, more, options, shape, type) in enumerate(ops):
        names = ["x"]
        for place, each in enumerate(more):
            names.append(f"m{number}_{place}")
            tensors[names[-1]] = each
        tensors[f"y{number}"] = Spec(type, shape)
        outputs.append(f"y{number}")
        nodes.append(Op(op, " ".join(names), f"y{number}", options))
    return graph_model(Graph(tensors, "x", " ".join(outputs), nodes))


def ints(*values: Any) -> NDArray[np.int32]:
    return np.array(values, np.int32)


AXES = [[1, 2], [3], [-1, 0]]
POOL = o.Pool2DOptions(padding=Padding.SAME, stride_h=2, stride_w=1, filter_height=3, filter_width=2)
UNARY = [(op, [], None, SHAPE, F32) for op in ("ABS", "RELU", "RELU6", "LOGISTIC", "TANH", "HARD_SWISH", "ELU", "SQUARE", "FLOOR", "SIN", "COS", "CEIL", "EXP", "NEG", "SIGN", "RELU_N1_TO_1", "RELU_0_TO_1", "ROUND", "LOG_SOFTMAX")]  # fmt: skip
REAL: list[Any] = [
    ("LEAKY_RELU", [], o.LeakyReluOptions(alpha=0.3), SHAPE, F32),
    ("GELU", [], o.GeluOptions(approximate=True), SHAPE, F32),
    ("GELU", [], o.GeluOptions(), SHAPE, F32),
    ("PRELU", [RANDOM.random((5, 1, 4)).astype(F32)], None, SHAPE, F32),
    ("ADD", [RANDOM.random(4).astype(F32)], o.AddOptions(fused_activation_function=ActivationFunctionType.RELU), SHAPE, F32),
    ("MUL", [RANDOM.random((1, 5, 6, 1)).astype(F32)], o.MulOptions(), SHAPE, F32),
    ("SUB", [RANDOM.random((6, 4)).astype(F32)], o.SubOptions(), SHAPE, F32),
    ("DIV", [RANDOM.random((6, 4)).astype(F32) + 1], o.DivOptions(), SHAPE, F32),
    ("MAXIMUM", [RANDOM.random(4).astype(F32)], None, SHAPE, F32),
    ("FLOOR_DIV", [np.full(4, 0.3, F32)], None, SHAPE, F32),
    ("FLOOR_MOD", [np.full(4, -0.3, F32)], None, SHAPE, F32),
    ("SQUARED_DIFFERENCE", [RANDOM.random(4).astype(F32)], None, SHAPE, F32),
    ("ATAN2", [RANDOM.random(SHAPE).astype(F32)], None, SHAPE, F32),
    ("LESS", [np.zeros(1, F32)], None, SHAPE, np.bool_),
    ("SOFTMAX", [], o.SoftmaxOptions(beta=0.5), SHAPE, F32),
    ("L2_NORMALIZATION", [], o.L2NormOptions(), SHAPE, F32),
    ("MAX_POOL_2D", [], POOL, (2, 3, 6, 4), F32),
    ("AVERAGE_POOL_2D", [], POOL, (2, 3, 6, 4), F32),
    ("L2_POOL_2D", [], POOL, (2, 3, 6, 4), F32),
    ("CUMSUM", [np.array(1, np.int32)], o.CumsumOptions(exclusive=True, reverse=True), SHAPE, F32),
    ("CUMSUM", [np.array(-1, np.int32)], o.CumsumOptions(exclusive=True), SHAPE, F32),
    ("ARG_MAX", [np.array(3, np.int32)], o.ArgMaxOptions(output_type=o.TensorType.INT32), (2, 5, 6), np.int32),
    *(
        (op, [ints(*axes)], o.ReducerOptions(keep_dims=op == "MEAN"), tuple(
            n for i, n in enumerate(1 if op == "MEAN" and i in ints(*axes) % 4 else n for i, n in enumerate(SHAPE))
            if op == "MEAN" or i not in ints(*axes) % 4
        ), F32)
        for op in ("MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "SUM") for axes in AXES
    ),
]  # fmt: skip
WIDTHS = ints([0, 0], [1, 2], [0, 3], [2, 0])
MOVING: list[Any] = [
    ("PAD", [WIDTHS], None, (2, 8, 9, 6), F32),
    ("PADV2", [WIDTHS, np.array(7, F32)], None, (2, 8, 9, 6), F32),
    ("MIRROR_PAD", [WIDTHS], o.MirrorPadOptions(mode=MirrorPadMode.REFLECT), (2, 8, 9, 6), F32),
    ("MIRROR_PAD", [WIDTHS], o.MirrorPadOptions(mode=MirrorPadMode.SYMMETRIC), (2, 8, 9, 6), F32),
    ("RESIZE_BILINEAR", [ints(7, 12)], o.ResizeBilinearOptions(half_pixel_centers=True), (2, 7, 12, 4), F32),
    ("RESIZE_BILINEAR", [ints(9, 11)], o.ResizeBilinearOptions(align_corners=True), (2, 9, 11, 4), F32),
    ("RESIZE_BILINEAR", [ints(3, 4)], o.ResizeBilinearOptions(), (2, 3, 4, 4), F32),
    ("RESIZE_NEAREST_NEIGHBOR", [ints(7, 5)], o.ResizeNearestNeighborOptions(half_pixel_centers=True), (2, 7, 5, 4), F32),
    ("RESIZE_NEAREST_NEIGHBOR", [ints(7, 12)], o.ResizeNearestNeighborOptions(align_corners=True), (2, 7, 12, 4), F32),
    ("DEPTH_TO_SPACE", [], o.DepthToSpaceOptions(block_size=2), (2, 10, 12, 1), F32),
    ("SPACE_TO_BATCH_ND", [ints(5, 2), ints([0, 0], [2, 0])], None, (20, 1, 4, 4), F32),
    ("BATCH_TO_SPACE_ND", [ints(1, 2), ints([0, 0], [1, 2])], None, (1, 5, 9, 4), F32),
    ("TRANSPOSE", [ints(3, 2, 1, 0)], None, (4, 6, 5, 2), F32),
    ("RESHAPE", [ints(2, -1)], None, (2, 120), F32),
    ("SLICE", [ints(0, 1, 2, 1), ints(2, 2, -1, 2)], None, (2, 2, 4, 2), F32),
    ("STRIDED_SLICE", [ints(0, -1, 1, 0), ints(2, -6, 5, 1), ints(1, -2, 2, 1)], o.StridedSliceOptions(shrink_axis_mask=8), (2, 3, 2), F32),
    ("REVERSE_V2", [ints(1, 2)], None, SHAPE, F32),
    ("TILE", [ints(1, 2, 1, 3)], None, (2, 10, 6, 12), F32),
    ("GATHER", [ints(3, 0, 0)], o.GatherOptions(axis=2), (2, 5, 3, 4), F32),
    ("GATHER", [ints([3, 0, 0], [1, 2, 5])], o.GatherOptions(axis=2, batch_dims=1), (2, 5, 3, 4), F32),
    ("GATHER_ND", [ints([[0, 1], [1, 4]])], None, (1, 2, 6, 4), F32),
    ("BROADCAST_TO", [ints(3, 2, 5, 6, 4)], None, (3, 2, 5, 6, 4), F32),
    ("EXPAND_DIMS", [np.array(1, np.int32)], None, (2, 1, 5, 6, 4), F32),
    ("CAST", [], o.CastOptions(in_data_type=o.TensorType.FLOAT32, out_data_type=o.TensorType.INT32), SHAPE, np.int32),
]  # fmt: skip


@pytest.mark.parametrize("ops", [UNARY, REAL, MOVING], ids=["unary", "real", "moving"])
def test_operators_of_an_image_agree(ops: list[Any]) -> None:
    agree(image_graph(ops), RANDOM.standard_normal(SHAPE).astype(F32), nodes=len(ops))


def windows(activation: Any = ActivationFunctionType.NONE, **numbers: int) -> dict[str, Any]:
    return {"padding": Padding.SAME, "stride_h": 2, "stride_w": 1, "fused_activation_function": activation, **numbers}


def weights(*shape: int) -> NDArray[np.float32]:
    return RANDOM.standard_normal(shape).astype(F32)


def test_layers_agree() -> None:
    dilated = {"dilation_h_factor": 1, "dilation_w_factor": 2}
    relu6 = ActivationFunctionType.RELU6
    ops = [
        ("CONV_2D", [weights(8, 3, 2, 4), weights(8)], o.Conv2DOptions(**windows(relu6, **dilated)), (2, 3, 6, 8), F32),
        ("CONV_2D", [weights(6, 3, 3, 2), weights(6)], o.Conv2DOptions(**{**windows(), "padding": Padding.VALID}), (2, 2, 4, 6), F32),
        ("DEPTHWISE_CONV_2D", [weights(1, 3, 3, 4), weights(4)], o.DepthwiseConv2DOptions(**windows()), (2, 3, 6, 4), F32),
        ("DEPTHWISE_CONV_2D", [weights(1, 3, 3, 8), weights(8)], o.DepthwiseConv2DOptions(depth_multiplier=2, **windows()), (2, 3, 6, 8), F32),
        ("FULLY_CONNECTED", [weights(7, 4), weights(7)], o.FullyConnectedOptions(keep_num_dims=True), (2, 5, 6, 7), F32),
        ("BATCH_MATMUL", [weights(7, 4)], o.BatchMatMulOptions(adj_y=True), (2, 5, 6, 7), F32),
    ]  # fmt: skip
    agree(image_graph(ops), RANDOM.standard_normal(SHAPE).astype(F32), nodes=len(ops))


@pytest.mark.parametrize("padding", list(Padding))
def test_transposed_convolutions_agree(padding: Padding) -> None:
    size = (10, 12) if padding is Padding.SAME else (11, 13)
    options = o.TransposeConvOptions(padding=padding, stride_h=2, stride_w=2)
    inputs = [ints(2, *size, 3), weights(3, 3, 3, 4), Spec(F32, SHAPE)]
    model = one_op_model("TRANSPOSE_CONV", inputs, [Spec(F32, (2, *size, 3))], options)
    agree(model, RANDOM.standard_normal(SHAPE).astype(F32), nodes=1)


def test_pieces_and_wholes_agree() -> None:
    half = Spec(F32, (*SHAPE[:3], 2))
    tensors: dict[str, Any] = {"x": Spec(F32, SHAPE), "axis": np.array(3, np.int32), "l": half, "r": half, "m": half}
    tensors |= {"j": Spec(F32, (*SHAPE[:3], 6)), "p": Spec(F32, (*SHAPE[:3], 2, 2)), "u": half, "v": half, "n": half}
    ops = [
        Op("SPLIT", "axis x", "l r", o.SplitOptions(num_splits=2)),
        Op("MINIMUM", "l r", "m"),
        Op("CONCATENATION", "m r l", "j", o.ConcatenationOptions(axis=-1)),
        Op("PACK", "l m", "p", o.PackOptions(values_count=2, axis=-1)),
        Op("UNPACK", "p", "u v", o.UnpackOptions(num=2, axis=-1)),
        Op("ADD_N", "u v m", "n"),
    ]
    agree(graph_model(Graph(tensors, "x", "j n", ops)), RANDOM.standard_normal(SHAPE).astype(F32), nodes=len(ops))


def test_float16_constants_are_widened_once() -> None:
    half = RANDOM.standard_normal((3, 8)).astype(np.float16)
    tensors = {"x": Spec(F32, (2, 8)), "h": half, "w": Spec(F32, (3, 8)), "y": Spec(F32, (2, 3))}
    ops = [Op("DEQUANTIZE", "h", "w"), Op("FULLY_CONNECTED", "x w", "y", o.FullyConnectedOptions())]
    agree(graph_model(Graph(tensors, "x", "y", ops)), RANDOM.standard_normal((2, 8)).astype(F32), nodes=1)


def test_values_of_64_bits_agree_where_they_do_not_fit_32() -> None:
    tensors: dict[str, Any] = {"x": Spec(np.int64, (4,)), "y": Spec(np.int64, (4,)), "p": ints([1, 2])}
    tensors |= {"z": Spec(np.int64, (7,))}
    ops = [Op("ADD", "x x", "y", o.AddOptions()), Op("PAD", "y p", "z")]
    agree(graph_model(Graph(tensors, "x", "z", ops)), np.array([2**40, -(2**35), 3, 0]), nodes=2)


@pytest.mark.parametrize("type", ["float16", "bfloat16"])
def test_stablehlo_in_halves_agrees(type: str) -> None:
    vector = Spec(type, (2, 6))
    dtype = np.dtype(np.float16) if type == "float16" else np.dtype(__import__("ml_dtypes").bfloat16)
    tensors = dict.fromkeys("xyz", vector)
    ops = [Op("STABLEHLO_NEGATE", "x", "y"), Op("STABLEHLO_TANH", "y", "z")]
    x = RANDOM.standard_normal((2, 6)).astype(dtype)
    model = graph_model(Graph(tensors, "x", "z", ops))
    [got], [wanted] = invoke(delegated(model, 2), x), run_op(model, x)
    assert got.dtype == wanted.dtype == dtype
    np.testing.assert_allclose(got.astype(F32), wanted.astype(F32), rtol=2e-2, atol=2e-2)


def test_stablehlo_operators_agree() -> None:
    longs = np.array
    dot = s.StablehloDotGeneralOptions(
        lhs_batching_dimensions=longs([0]), rhs_batching_dimensions=longs([0]), lhs_contracting_dimensions=longs([2]),
        rhs_contracting_dimensions=longs([1]),
    )  # fmt: skip
    less = s.StablehloCompareOptions(comparison_direction=StablehloComparisonDirection.STABLEHLO_COMPARISON_DIRECTION_LT)
    cube, wide = Spec(F32, (2, 3, 4)), Spec(F32, (2, 3, 5))
    tensors: dict[str, Any] = {"x": cube, "w": weights(2, 4, 5), "d": wide, "e": wide, "f": wide, "g": Spec(np.bool_, (2, 3, 5))}
    tensors |= {"h": wide, "t": Spec(F32, (5, 2, 3)), "q": Spec(F32, (5, 1, 2)), "n": np.array(2, F32), "r": Spec(F32, (7, 1, 3))}
    tensors |= {"b": Spec(F32, (7, 2, 1, 3))}
    ops = [
        Op("STABLEHLO_DOT_GENERAL", "x w", "d", dot),
        Op("STABLEHLO_LOGISTIC", "d", "e"),
        Op("STABLEHLO_SUBTRACT", "e d", "f"),
        Op("STABLEHLO_COMPARE", "e f", "g", less),
        Op("STABLEHLO_SELECT", "g e f", "h"),
        Op("STABLEHLO_TRANSPOSE", "h", "t", s.StablehloTransposeOptions(permutation=longs([2, 0, 1]))),
        Op("STABLEHLO_SLICE", "t", "q", s.StablehloSliceOptions(
            start_indices=longs([0, 1, 0]), limit_indices=longs([5, 2, 3]), strides=longs([1, 1, 2]),
        )),
        Op("STABLEHLO_PAD", "q n", "r", s.StablehloPadOptions(
            edge_padding_low=longs([1, 0, 0]), edge_padding_high=longs([1, 0, 0]), interior_padding=longs([0, 0, 1]),
        )),
        Op("STABLEHLO_BROADCAST_IN_DIM", "r", "b", s.StablehloBroadcastInDimOptions(broadcast_dimensions=longs([0, 2, 3]))),
    ]  # fmt: skip
    agree(graph_model(Graph(tensors, "x", "b", ops)), RANDOM.standard_normal((2, 3, 4)).astype(F32), nodes=len(ops))


def test_quantized_borders_agree() -> None:
    x = np.arange(-128, 128).astype(np.int8)
    for scale, zero in ((0.31, -7), (1.7, 100)):
        narrow = Spec("int8", [256], scale=[scale], zero_point=[zero])
        down = one_op_model("DEQUANTIZE", [narrow], [Spec(F32, [256])])
        [real] = run_op(down, x)
        np.testing.assert_array_equal(invoke(delegated(down, 1), x)[0], real)
        up = one_op_model("QUANTIZE", [Spec(F32, [256])], [narrow])
        np.testing.assert_array_equal(invoke(delegated(up, 1), real * F32(1.01))[0], run_op(up, real * F32(1.01))[0])


def quantized_model() -> bytes:
    """CONV_2D, a sum and a softmax in 8 bits."""
    out = (1, 6, 6, 8)
    tensors = {
        "x": Spec("int8", (1, 6, 6, 4), scale=[0.05], zero_point=[3]),
        "w": Spec("int8", (8, 1, 1, 4), scale=(RANDOM.random(8) / 50 + 0.001).tolist(), zero_point=[0] * 8,
                  data=RANDOM.integers(-127, 128, (8, 1, 1, 4)).astype(np.int8)),
        "b": Spec("int32", (8,), scale=[0.0005], zero_point=[0], data=RANDOM.integers(-500, 500, 8).astype(np.int32)),
        "c": Spec("int8", out, scale=[0.04], zero_point=[-9]),
        "s": Spec("int8", out, scale=[0.08], zero_point=[-9]),
        "y": Spec("int8", out, scale=[1 / 256], zero_point=[-128]),
    }  # fmt: skip
    conv = o.Conv2DOptions(padding=Padding.SAME, stride_h=1, stride_w=1)
    ops = [
        Op("CONV_2D", "x w b", "c", conv),
        Op("ADD", "c c", "s", o.AddOptions()),
        Op("SOFTMAX", "s", "y", o.SoftmaxOptions(beta=1)),
    ]
    return graph_model(Graph(tensors, "x", "y", ops))


def test_quantized_operators_are_taken_where_one_asks_for_them_and_stay_within_a_step() -> None:
    model, x = quantized_model(), RANDOM.integers(-128, 128, (1, 6, 6, 4)).astype(np.int8)
    plain = Interpreter(model_content=model, experimental_delegates=[load_delegate("xla", {"device": "cpu"})])
    assert plain.delegation_reports()[0].unsupported[0].startswith("it is quantized: XLA may be a step off")
    [got] = invoke(delegated(model, 3, quantized=1), x)
    assert np.abs(got.astype(int) - run_op(model, x)[0].astype(int)).max() <= 1


def test_the_readme_has_every_operator() -> None:
    text = (Path(__file__).parents[1] / "README.md").read_text()
    translators.translator("ADD")
    assert len(translators._KNOWN) > 140
    assert not [name for name in translators._KNOWN if f"`{name}`" not in text]
