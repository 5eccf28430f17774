"""Nodes that no kernel can run: refused while preparing, or while running where values arrive only then."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from oplet.schema import options as o
from oplet.schema.enums import Padding
from oplet.schema.table import Table
from oplet_testing.one_op import Spec, one_op_model

from .harness import Bad, i32, noted, refusal, run

F4, IMAGE = Spec("float32", [4]), Spec("float32", [1, 4, 4, 1])
FILTER, BIAS = Spec("float32", [1, 2, 2, 1], data=np.ones((1, 2, 2, 1), np.float32)), np.zeros(1, np.float32)
INT = Spec("int32", [])
HERE = "test_kernels"


def f32(*shape: int) -> Spec:
    return Spec("float32", shape)


def const(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def fed(*values: int) -> tuple[Spec, Any]:
    """An input of indices that arrives at run time, and its value."""
    return Spec("int32", [len(values)]), i32(*values)


def op(
    name: str, inputs: Sequence[Any], outputs: Sequence[Spec] = (f32(4),), options: Table | None = None, version: int = 1
) -> Callable[[], bytes]:  # fmt: skip
    return lambda: one_op_model(name, inputs, outputs, options, version=version)


def conv(**values: Any) -> Callable[[], bytes]:
    options = o.Conv2DOptions(**{"stride_w": 1, "stride_h": 1, "padding": Padding.VALID, **values})
    return op("CONV_2D", [IMAGE, FILTER, BIAS], [f32(1, 3, 3, 1)], options)


def pool(**values: Any) -> Callable[[], bytes]:
    options = o.Pool2DOptions(
        **{"stride_w": 1, "stride_h": 1, "filter_width": 2, "filter_height": 2, "padding": Padding.VALID, **values}
    )
    return op("MAX_POOL_2D", [IMAGE], [f32(1, 3, 3, 1)], options)


def scalar(value: int) -> Any:
    return np.array(value, np.int32)


def int8(scale: float | None, zero_point: int | None = 0) -> Spec:
    return Spec("int8", [2], scale, zero_point)


HUGE = i32(65535, 65535, 65535)
ADD, SLICED = o.AddOptions(), o.StridedSliceOptions()

CASES = [
    Bad("required input left out", (19, "class 3"), r"ADD.*(input|operand)", op("ADD", [F4, None], options=ADD)),
    Bad("CONV_2D without a filter", (19, "class 3"), r"CONV_2D.*(input|operand|filter)",
        op("CONV_2D", [IMAGE, None, BIAS], [IMAGE], o.Conv2DOptions(stride_w=1, stride_h=1))),
    Bad("RESHAPE of nothing", (19, "class 3"), "RESHAPE", op("RESHAPE", [None, i32(2, 2)], [f32(2, 2)])),
    Bad("SVDF without weights", (19, "class 3"), "SVDF", op("SVDF", [f32(1, 2), None, None, None, Spec("float32", [1, 2], variable=True)], [f32(1, 2)], o.SVDFOptions(rank=1))),
    Bad("no inputs", (20,), r"0 inputs and takes 2.*\(ADD\)", op("ADD", [], options=ADD)),
    Bad("one input", (20,), r"1 inputs? and takes 2.*\(ADD\)", op("ADD", [F4], options=ADD)),
    Bad("no outputs", (20,), r"0 outputs and gives 1.*\(ADD\)", op("ADD", [F4, F4], [], ADD)),
    Bad("no options", (21,), r"stride_h is 0 .*CONV_2D.*gives it no Conv2DOptions", op("CONV_2D", [IMAGE, FILTER, BIAS], [IMAGE])),
    Bad("options of another op", (21,), "options are AddOptions where CONV_2D takes Conv2DOptions", lambda: _other_options()),
    Bad("tensor of 256 GiB", (29, "class 16"), r"\d{9,} bytes.*(allow|limit|memory)", op("ADD", [f32(1 << 18, 1 << 18)] * 2, [f32(1 << 18, 1 << 18)], ADD)),
    Bad("huge FILL", (29, "class 16"), r"\d{9,} bytes.*(allow|limit|memory)", op("FILL", [HUGE, np.float32(1)])),
    Bad("huge BROADCAST_TO", (29, "class 16"), r"\d{9,} bytes", op("BROADCAST_TO", [f32(1, 1, 1), HUGE], version=2)),
    Bad("huge PAD", (29, "class 16"), r"\d{9,} bytes", op("PAD", [f32(2, 2), np.full((2, 2), 10**7, np.int32)])),
    Bad("huge RANGE", (29, "class 16"), r"\d{9,} bytes|RANGE", op("RANGE", [np.array(0, np.int64), np.array(2**62, np.int64), np.array(1, np.int64)], [Spec("int64", [1])])),
    Bad("huge RANGE at run time", (29, "class 16"), r"\d{9,} bytes|at most 2147483647", op("RANGE", [INT] * 3, [Spec("int32", [1])]), (scalar(-(2**31)), scalar(2**31 - 1), scalar(1))),
    Bad("huge RESIZE", (29, "class 16"), r"\d{9,} bytes", op("RESIZE_BILINEAR", [IMAGE, i32(10**6, 10**6)], [IMAGE], o.ResizeBilinearOptions())),
    Bad("huge TILE", (29, "class 16", "class 10"), r"\d{9,} bytes|overflow|TILE", op("TILE", [f32(2, 2), i32(2**31 - 1, 2**31 - 1)])),
    Bad("huge SPACE_TO_BATCH", (29, "class 16"), r"\d{9,} bytes|SPACE_TO_BATCH", op("SPACE_TO_BATCH_ND", [IMAGE, i32(1, 1), np.full((2, 2), 10**9, np.int32)], [IMAGE])),
    Bad("huge ONE_HOT", (29, "class 16"), r"\d{9,} bytes", op("ONE_HOT", [Spec("int32", [10**4]), scalar(2**31 - 1), np.float32(1), np.float32(0)], [f32(1, 1)], o.OneHotOptions(axis=-1))),
    Bad("scale 0", (32, "class 14"), r"tensor 0 .*scale 0", op("ADD", [int8(0.0), int8(1)], [int8(1)], ADD)),
    Bad("no scale", (32, "class 14"), r"tensor 0 .*needs a scale", op("ADD", [int8(None, None), int8(1)], [int8(1)], ADD)),
    Bad("output scale 0", (32, "class 14"), "tensor 2 .*scale 0", op("ADD", [int8(1), int8(1)], [int8(0.0)], ADD)),
    Bad("difference of scale 0", (32, "class 14"), "tensor 1 .*scale 0", op("SUB", [int8(1), int8(0.0)], [int8(1)], o.SubOptions())),
    Bad("comparison of scale 0", (32, "class 14"), "tensor 0 .*scale 0", op("LESS", [int8(0.0), int8(1)], [Spec("bool", [2])])),
    Bad("stride 0", (35, "class 6"), r"stride_h is 0.*CONV_2D", conv(stride_h=0)),
    Bad("stride -1", (35,), r"stride_w is -1.*CONV_2D", conv(stride_w=-1)),
    Bad("dilation 0", (35,), r"dilation_h_factor is 0", conv(dilation_h_factor=0)),
    Bad("no channels", (35, "class 6"), "CONV_2D.*", op("CONV_2D", [f32(1, 4, 4, 0), Spec("float32", [1, 2, 2, 0], data=np.zeros((1, 2, 2, 0), np.float32)), BIAS], [IMAGE], o.Conv2DOptions(stride_w=1, stride_h=1))),
    Bad("filter larger than the input", (35,), r"(-\d+|0|filter).*CONV_2D", op("CONV_2D", [f32(1, 2, 2, 1), const(1, 5, 5, 1), BIAS], [IMAGE], o.Conv2DOptions(stride_w=1, stride_h=1, padding=Padding.VALID))),
    Bad("DEPTHWISE_CONV_2D stride 0", (35, "class 6"), "stride.* is 0", op("DEPTHWISE_CONV_2D", [IMAGE, FILTER, BIAS], [IMAGE], o.DepthwiseConv2DOptions(stride_w=0, stride_h=1, depth_multiplier=1))),
    Bad("TRANSPOSE_CONV stride 0", (35, "class 6"), "stride.* is 0", op("TRANSPOSE_CONV", [i32(1, 4, 4, 1), FILTER, IMAGE], [IMAGE], o.TransposeConvOptions(stride_w=0, stride_h=0))),
    Bad("CONV_3D_TRANSPOSE of a huge shape", ("class 10",), "CONV_3D_TRANSPOSE|bytes", op("CONV_3D_TRANSPOSE", [i32(1, 2**30, 2**30, 2**30, 1), const(2, 2, 2, 1, 1), f32(1, 2, 2, 2, 1)], [f32(1, 1, 1, 1, 1)], o.Conv3DOptions(stride_d=1, stride_w=1, stride_h=1))),
    Bad("bias length", (36, "class 2"), r"bias|3", op("CONV_2D", [IMAGE, FILTER, np.zeros(3, np.float32)], [IMAGE], o.Conv2DOptions(stride_w=1, stride_h=1))),
    Bad("FULLY_CONNECTED depth", (36, "class 2"), r"\[3, 7\]|7", op("FULLY_CONNECTED", [f32(1, 4), const(3, 7), None], [f32(1, 3)], o.FullyConnectedOptions())),
    Bad("FULLY_CONNECTED without weights", (36, "class 6"), "rows of 0", op("FULLY_CONNECTED", [f32(1, 4), np.zeros((0, 0), np.float32), None], [f32(1, 0)], o.FullyConnectedOptions())),
    Bad("BATCH_MATMUL", (36, "class 2"), r"\[2, 3\].*\[4, 5\]", op("BATCH_MATMUL", [f32(2, 3), f32(4, 5)], [f32(2, 5)], o.BatchMatMulOptions())),
    Bad("pool stride 0", (37, "class 6"), "stride_height is 0", pool(stride_h=0)),
    Bad("pool filter 0", (37,), "height is 0", pool(filter_height=0)),
    Bad("pool filter -3", (37,), "width is -3", pool(filter_width=-3)),
    Bad("AVERAGE_POOL_2D of nothing", (37, "class 6"), "stride", op("AVERAGE_POOL_2D", [IMAGE], [IMAGE])),
    Bad("SPACE_TO_DEPTH 0", (38, "class 6"), "block_size is 0", op("SPACE_TO_DEPTH", [IMAGE], [IMAGE], o.SpaceToDepthOptions(block_size=0))),
    Bad("SPACE_TO_DEPTH 3", (38,), "3.*4|4.*3", op("SPACE_TO_DEPTH", [IMAGE], [IMAGE], o.SpaceToDepthOptions(block_size=3))),
    Bad("DEPTH_TO_SPACE 0", (38, "class 6"), "block_size is 0", op("DEPTH_TO_SPACE", [IMAGE], [IMAGE], o.DepthToSpaceOptions(block_size=0))),
    Bad("BATCH_TO_SPACE_ND 0", (38, "class 6"), r"\[0, 0\]", op("BATCH_TO_SPACE_ND", [f32(4, 2, 2, 1), i32(0, 0), np.zeros((2, 2), np.int32)], [IMAGE])),
    Bad("SPACE_TO_BATCH_ND 0", (38, "class 6"), r"\[0, 2\]", op("SPACE_TO_BATCH_ND", [IMAGE, i32(0, 2), np.zeros((2, 2), np.int32)], [IMAGE])),
    Bad("GATHER 1e8", (39, "class 8"), "100000000.*", op("GATHER", [F4, Spec("int32", [2])], [f32(2)], o.GatherOptions()), (const(4), i32(1, 10**8))),
    Bad("GATHER -1e8", (39, "class 8"), "-100000000", op("GATHER", [F4, i32(0, -(10**8))], [f32(2)], o.GatherOptions())),
    Bad("GATHER axis", (39, "class 1"), "axis is 9.*rank 1", op("GATHER", [F4, i32(0)], [f32(1)], o.GatherOptions(axis=9))),
    Bad("GATHER_ND", (39, "class 8"), "7", op("GATHER_ND", [F4, np.array([[7]], np.int32)], [f32(1)])),
    Bad("GATHER_ND -1", (39, "class 8"), "-1", op("GATHER_ND", [F4, Spec("int32", [1, 1])], [f32(1)]), (const(4), np.array([[-1]], np.int32))),
    Bad("SCATTER_ND", (39, "class 8"), "99999999", op("SCATTER_ND", [np.array([[99999999]], np.int32), f32(1), i32(4)])),
    Bad("EMBEDDING_LOOKUP", (39, "class 8"), "row 99.*has 3", op("EMBEDDING_LOOKUP", [Spec("int32", [2]), const(3, 4)], [f32(2, 4)]), (i32(0, 99),)),
    Bad("SPARSE_TO_DENSE", (39, "class 8"), "SPARSE_TO_DENSE|9", op("SPARSE_TO_DENSE", [i32(9), i32(4), const(1), np.float32(0)])),
    Bad("SEGMENT_SUM negative", (40, "class 5"), "number 0 is -5", op("SEGMENT_SUM", [f32(3), i32(-5, 0, 1)])),
    Bad("SEGMENT_SUM huge", (40, "class 5"), "number 2 is 2147483646", op("SEGMENT_SUM", [f32(3), i32(0, 0, 2147483646)])),
    Bad("SEGMENT_SUM unsorted", (40, "class 5"), "number 2 is 0", op("SEGMENT_SUM", [f32(3), i32(0, 1, 0)])),
    Bad("SEGMENT_SUM at run time", (40, "class 5"), "number 1 is 2147483646", op("SEGMENT_SUM", [f32(3), Spec("int32", [3])]), (const(3), i32(0, 2147483646, 0))),
    Bad("UNSORTED_SEGMENT_SUM", (40, "class 5"), "9|UNSORTED", op("UNSORTED_SEGMENT_SUM", [f32(3), i32(0, 9, 0), scalar(2)])),
    Bad("RESHAPE of two -1", (41,), r"\[-1, -1\]", op("RESHAPE", [F4, i32(-1, -1)], [f32(2, 2)])),
    Bad("RESHAPE to another size", (41,), r"\[3, 3\].*", op("RESHAPE", [F4, i32(3, 3)], [f32(3, 3)])),
    Bad("RESHAPE to 100 dimensions", (41,), "100 dimensions", op("RESHAPE", [f32(1), i32(*[1] * 100)], [f32(1)])),
    Bad("SPLIT axis", (42, "class 1"), "axis is 9", op("SPLIT", [scalar(9), F4], [f32(2)] * 2, o.SplitOptions(num_splits=2))),
    Bad("SPLIT 0", (42, "class 6"), "num_splits is 0", op("SPLIT", [scalar(0), F4], [f32(2)], o.SplitOptions(num_splits=0))),
    Bad("SPLIT_V", (42, "class 13"), "SPLIT_V", op("SPLIT_V", [F4, i32(1, 1, 1, 1), scalar(0)], [f32(1)] * 2, o.SplitVOptions(num_splits=2))),
    Bad("SPLIT_V sizes", (42, "class 13"), "SPLIT_V", op("SPLIT_V", [F4, i32(3, 9), scalar(0)], [f32(1)] * 2, o.SplitVOptions(num_splits=2))),
    Bad("ONE_HOT -5", (43,), "-5", op("ONE_HOT", [Spec("int32", [2]), scalar(-5), np.float32(1), np.float32(0)], [f32(2, 1)], o.OneHotOptions(axis=-1))),
    Bad("ONE_HOT axis", (43, "class 6"), "axis", op("ONE_HOT", [Spec("int32", [2]), scalar(2), np.float32(1), np.float32(0)], [f32(2, 1)], o.OneHotOptions(axis=8))),
    Bad("TOPK_V2 -2", (43,), "k is -2.*4", op("TOPK_V2", [F4, scalar(-2)], [f32(2), Spec("int32", [2])])),
    Bad("TOPK_V2 at run time", (43,), "k is 99.*4", op("TOPK_V2", [F4, INT], [f32(2), Spec("int32", [2])]), (const(4), scalar(99))),
    Bad("STRIDED_SLICE stride 0", (44, "class 11"), "stride.*0", op("STRIDED_SLICE", [F4, i32(0), i32(4), i32(0)], options=SLICED)),
    Bad("SLICE 1e6", (44,), r"begin \[2\] and size \[1000000\]", op("SLICE", [F4, i32(2), i32(10**6)])),
    Bad("SLICE at run time", (44,), r"size \[-7\]", op("SLICE", [F4, Spec("int32", [1]), Spec("int32", [1])]), (const(4), i32(2), i32(-7))),
    Bad("TRANSPOSE out of range", (45, "class 1"), r"\[7, 0\]", op("TRANSPOSE", [f32(2, 3), i32(7, 0)], [f32(3, 2)])),
    Bad("TRANSPOSE twice", (45,), r"\[0, 0\] names an axis twice", op("TRANSPOSE", [f32(2, 3), i32(0, 0)], [f32(3, 2)])),
    Bad("PAD negative", (46,), "-1", op("PAD", [F4, np.array([[-1, 0]], np.int32)])),
    Bad("CONCATENATION axis", (46, "class 1"), "axis is 9", op("CONCATENATION", [F4, F4], [f32(8)], o.ConcatenationOptions(axis=9))),
    Bad("CONCATENATION ranks", (46, "class 10"), r"\[2, 2\].*\[4\]", op("CONCATENATION", [F4, f32(2, 2)], [f32(8)], o.ConcatenationOptions(axis=0))),
    Bad("SUM axis", (46, "class 1"), "axis is 17", op("SUM", [f32(2, 3), i32(17)], [f32(2)], o.ReducerOptions())),
    Bad("ARG_MAX axis", (46, "class 1"), "axis is 17", op("ARG_MAX", [f32(2, 3), scalar(17)], [Spec("int32", [2])], o.ArgMaxOptions(output_type=2))),
    Bad("ARG_MIN axis", (46, "class 1"), "axis is -9", op("ARG_MIN", [f32(2, 3), scalar(-9)], [Spec("int32", [2])], o.ArgMinOptions(output_type=2))),
    Bad("EXPAND_DIMS 44", (46, "class 1"), "44", op("EXPAND_DIMS", [F4, scalar(44)], [f32(1, 4)])),
    Bad("DIV by 0", (47, "class 6"), r"[Dd]ivision by 0.*holds 0", op("DIV", [Spec("int32", [2])] * 2, [Spec("int32", [2])], o.DivOptions()), (i32(1, 1), i32(1, 0))),
    Bad("FLOOR_MOD by 0", (47, "class 6"), "[Dd]ivision by 0", op("FLOOR_MOD", [Spec("int32", [2])] * 2, [Spec("int32", [2])]), (i32(1, 1), i32(0, 1))),
    Bad("RANGE of steps of 0", (47, "class 11"), "delta is 0", op("RANGE", [INT] * 3, [Spec("int32", [1])]), (scalar(0), scalar(10), scalar(0))),
    Bad("RESIZE to 0 x -4", (48,), "0 x -4", op("RESIZE_BILINEAR", [IMAGE, i32(0, -4)], [IMAGE], o.ResizeBilinearOptions())),
    Bad("FILL of -3", (48,), r"\[-3\]", op("FILL", [i32(-3), np.float32(1)])),
    Bad("broadcast", (49, "class 9"), r"\[3\].*\[4\]", op("ADD", [f32(3), f32(4)], options=ADD)),
    Bad("broadcast of DIV", (49, "class 9"), r"\[2, 3\].*\[4\]", op("DIV", [f32(2, 3), f32(4)], options=o.DivOptions())),
    Bad("REVERSE_SEQUENCE", (50,), "999999 .*3 steps", op("REVERSE_SEQUENCE", [f32(2, 3), Spec("int32", [2])], [f32(2, 3)], o.ReverseSequenceOptions(seq_dim=1)), (const(2, 3), i32(1, 999999))),
    Bad("HASHTABLE_LOOKUP of nothing", ("class 15",), "HASHTABLE_LOOKUP", op("HASHTABLE_LOOKUP", [Spec("int32", [1]), np.zeros(0, np.int32), np.zeros((0, 2), np.float32)], [f32(1, 2), Spec("uint8", [1])])),
    Bad("LSH_PROJECTION of nothing", ("class 15",), "LSH_PROJECTION", op("LSH_PROJECTION", [np.zeros((0, 0), np.float32), Spec("float32", [2])], [Spec("int32", [1])], o.LSHProjectionOptions())),
]  # fmt: skip


def _other_options() -> bytes:
    from .harness import edited, main

    def change(root: Any) -> None:
        main(root).operators[0].builtin_options = o.AddOptions()

    return edited(conv()(), change)


@pytest.mark.parametrize("case", noted(CASES, HERE), ids=lambda case: case.name)
def test_a_node_that_cannot_run_is_refused(case: Bad) -> None:
    data = case.make()
    error = refusal(lambda: run(data, case.feeds), case.words)
    assert not re.match(r"\w+(Error|Exception|Warning)\b", str(error)), f"not the kernel's own reason, but an accident: {error}"
