"""Version rules of operators that move, select or generate values: slices, padding, gathering, resizing."""

from __future__ import annotations

from oplet.schema.enums import BuiltinOperator as Op
from oplet.schema.enums import TensorType as T
from oplet.schema.options import GatherOptions, ResizeBilinearOptions, ResizeNearestNeighborOptions, StridedSliceOptions
from oplet.versions.signature import FLOAT8, Rule, Rules, by_input, input_is, option, output_is, rank_is, rank_over

__all__ = ["RULES"]

_INT16_THROUGHOUT = input_is(0, T.INT16) & output_is(0, T.INT16)

RULES: Rules = {
    (Op.GATHER,): (
        by_input(8, *FLOAT8),
        by_input(7, T.INT4),
        by_input(6, T.INT16, index=1),
        Rule(5, "batch_dims", option(GatherOptions, "batch_dims")),
        by_input(4, T.INT16),
        by_input(3, T.BOOL),
        by_input(2, T.INT8),
    ),
    (Op.GATHER_ND,): (
        by_input(6, *FLOAT8),
        by_input(5, T.BOOL),
        by_input(4, T.INT16, index=1),
        by_input(3, T.INT16),
        by_input(2, T.STRING),
    ),
    (Op.TRANSPOSE,): (
        by_input(9, T.FLOAT16),
        Rule(8, "more than 6 dimensions or BFLOAT16 input", rank_over(0, 6) | input_is(0, T.BFLOAT16)),
        by_input(7, T.INT4),
        Rule(6, "more than 5 dimensions", rank_over(0, 5)),
        by_input(5, T.INT16),
        Rule(4, "more than 4 dimensions", rank_over(0, 4)),
        by_input(3, T.BOOL),
        by_input(2, T.INT8),
    ),
    (Op.SPLIT,): (  # input 0 is the axis
        by_input(5, *FLOAT8, index=1),
        by_input(4, T.INT16, index=1),
        by_input(3, T.INT32, index=1),
        by_input(2, T.INT8, index=1),
    ),
    (Op.SPLIT_V,): (by_input(3, *FLOAT8), by_input(2, T.INT8)),
    (Op.SPARSE_TO_DENSE,): (by_input(3, T.INT8, T.UINT8, index=2), by_input(2, T.INT64, index=2)),
    (Op.SLICE,): (
        by_input(8, T.FLOAT16),
        by_input(7, T.INT4),
        by_input(6, T.UINT32),
        Rule(5, "more than 4 dimensions", rank_over(0, 4)),
        by_input(4, T.INT16),
        by_input(3, T.STRING),
        by_input(2, T.INT8),
    ),
    (Op.STRIDED_SLICE,): (
        Rule(8, "offset", option(StridedSliceOptions, "offset")),
        by_input(7, T.UINT32),
        Rule(
            6,
            "ellipsis_mask or new_axis_mask",
            option(StridedSliceOptions, "ellipsis_mask") | option(StridedSliceOptions, "new_axis_mask"),
        ),
        by_input(5, T.STRING),
        Rule(4, "more than 4 dimensions", rank_over(0, 4)),
        by_input(3, T.BOOL),
        by_input(2, T.INT8),
    ),
    (Op.DYNAMIC_UPDATE_SLICE,): (
        by_input(6, T.BFLOAT16),
        by_input(5, T.INT4),
        by_input(4, T.INT16),
        by_input(3, T.FLOAT16),
        by_input(2, T.INT64, index=2),
    ),
    (Op.PACK,): (
        by_input(5, *FLOAT8),
        by_input(2, T.INT8),
        Rule(3, "INT16 input and output", _INT16_THROUGHOUT),
        by_input(4, T.UINT32),
    ),
    (Op.UNPACK,): (
        by_input(6, *FLOAT8),
        by_input(2, T.INT8, T.UINT8),
        by_input(3, T.BOOL),
        Rule(4, "INT16 input and output", _INT16_THROUGHOUT),
        by_input(5, T.FLOAT16, T.BFLOAT16),
    ),
    (Op.CONCATENATION,): (
        by_input(7, *FLOAT8),
        by_input(6, T.FLOAT16),
        by_input(5, T.INT4),
        by_input(4, T.UINT32),
        by_input(3, T.INT16),
        by_input(2, T.INT8),
    ),
    (Op.PAD, Op.PADV2): (
        by_input(6, *FLOAT8),
        by_input(5, T.BOOL),
        Rule(4, "more than 4 dimensions", rank_over(0, 4)),
        by_input(3, T.INT16),
        by_input(2, T.INT8),
    ),
    (Op.SPACE_TO_BATCH_ND, Op.BATCH_TO_SPACE_ND): (
        by_input(4, T.INT16),
        Rule(3, "other than 4 dimensions", ~rank_is(0, 4)),
        by_input(2, T.INT8),
    ),
    (Op.SPACE_TO_DEPTH, Op.DEPTH_TO_SPACE): (by_input(2, T.INT8),),
    (Op.MIRROR_PAD,): (by_input(3, T.INT16), by_input(2, T.INT8)),
    (Op.REVERSE_V2,): (by_input(4, *FLOAT8), by_input(3, T.INT8), by_input(2, T.BOOL)),
    (Op.TILE,): (by_input(3, T.INT8), by_input(2, T.STRING)),
    (Op.SQUEEZE,): (by_input(2, T.STRING),),
    # Version 1 was withdrawn together with the operator's first number, so the lowest version is 2.
    (Op.BROADCAST_TO,): (by_input(4, *FLOAT8), by_input(3, T.INT8, T.INT16)),
    (Op.FILL,): (
        by_input(5, *FLOAT8, index=1),
        by_input(4, T.FLOAT16, index=1),
        by_input(3, T.INT8, T.INT16, index=1),
        by_input(2, T.BOOL, T.STRING, index=1),
    ),
    (Op.RANGE,): (by_input(2, T.INT64),),
    (Op.WHERE,): (Rule(2, "an input that is not BOOL", ~input_is(0, T.BOOL)),),
    (Op.SELECT,): (
        by_input(4, T.UINT32),
        Rule(3, "5 dimensions", rank_is(0, 5) | rank_is(1, 5) | rank_is(2, 5)),
        by_input(2, T.INT8),
    ),
    (Op.SELECT_V2,): (by_input(2, T.UINT32),),
    (Op.TOPK_V2,): (
        Rule(3, "INT16 values, k or indices", input_is(0, T.INT16) | input_is(1, T.INT16) | output_is(1, T.INT16)),
        by_input(2, T.INT8),
    ),
    (Op.RESIZE_BILINEAR,): (
        by_input(4, T.INT16),
        Rule(3, "half_pixel_centers", option(ResizeBilinearOptions, "half_pixel_centers")),
        by_input(2, T.INT8),
    ),
    (Op.RESIZE_NEAREST_NEIGHBOR,): (
        by_input(4, T.INT16),
        Rule(
            3,
            "half_pixel_centers or align_corners",
            option(ResizeNearestNeighborOptions, "half_pixel_centers") | option(ResizeNearestNeighborOptions, "align_corners"),
        ),
        by_input(2, T.INT8),
    ),
}
