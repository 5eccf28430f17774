"""Operators that move, cut, join and repeat values without changing them."""

from __future__ import annotations

import numpy as np

from oplet.schema.enums import ActivationFunctionType, MirrorPadMode
from oplet.schema.options import (
    ConcatenationOptions,
    DepthToSpaceOptions,
    MirrorPadOptions,
    PackOptions,
    ReshapeOptions,
    ReverseSequenceOptions,
    SpaceToDepthOptions,
    SplitOptions,
    SplitVOptions,
    SqueezeOptions,
    StridedSliceOptions,
    UnpackOptions,
)  # fmt: skip
from oplet.schema.stablehlo_options import StablehloPadOptions

from ..harness import Case
from ..strategies import (
    BOOL,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    STRING,
    U8,
    U16,
    U32,
    U64,
    Draw,
    Shape,
    like,
    out,
    spec,
)  # fmt: skip

COMMON = (F32, I8, U8, I16, I32, I64, BOOL)


def _split_count(draw: Draw, size: int) -> list[int]:
    """Factors whose product is the size."""
    factors, left = [], size
    while left > 1 and len(factors) < 4:
        factor = draw.pick(*[f for f in range(1, left + 1) if left % f == 0])
        factors.append(factor)
        left //= factor
    return [*factors, left]


@spec("RESHAPE", weight=2)
def reshape(draw: Draw) -> Case:
    x = draw.tensor(draw.type(*COMMON, STRING, F16, U32), draw.shape())
    size = int(np.prod(x.shape))
    shape = _split_count(draw, size) if size else [0, *draw.dims(draw.integer(0, 2))]
    if size and draw.flag():
        shape[draw.integer(0, len(shape) - 1)] = -1
    if draw.seldom():
        shape.append(draw.pick(-1, 2))
    how = draw.pick("input", "options", "both")
    options = ReshapeOptions(new_shape=shape) if how != "input" else None
    args = [x, draw.given(shape)] if how != "options" else [x]
    return draw.one_op(args, [like(x, [abs(dim) for dim in shape])], options)


@spec("SQUEEZE")
def squeeze(draw: Draw) -> Case:
    shape = [1 if draw.flag() else dim for dim in draw.shape()]
    x = draw.tensor(draw.type(*COMMON, STRING), shape)
    ones = [axis for axis, dim in enumerate(shape) if dim == 1] or [0]
    dims = [draw.pick(*ones) - (len(shape) if draw.seldom(3) else 0) for _ in range(draw.integer(0, 2))]
    if draw.seldom():
        dims.append(draw.axis(len(shape)))
    x.flexible = False
    return draw.one_op([x], [like(x)], SqueezeOptions(squeeze_dims=dims))


@spec("EXPAND_DIMS")
def expand_dims(draw: Draw) -> Case:
    x = draw.tensor(draw.type(*COMMON, STRING), draw.shape())
    axis = draw.given(np.reshape(draw.axis(len(x.shape) + 1), draw.pick((), (1,))), draw.pick(I32, I64))
    return draw.one_op([x, axis], [like(x)])


@spec("CONCATENATION", weight=2)
def concatenation(draw: Draw) -> Case:
    type, shape = draw.type(*COMMON, U32, F16), list(draw.shape(1, 5))
    axis = draw.axis(len(shape))
    parts = []
    for _ in range(draw.integer(1, 4)):
        if -len(shape) <= axis < len(shape):
            shape[axis] = draw.integer(0, 3)
        if draw.seldom(25):
            shape[0] += 1
        parts.append(draw.tensor(type, shape))
    if parts[0].scale is not None and draw.flag():
        for part in parts:
            part.scale, part.zero_point = parts[0].scale, parts[0].zero_point
    activation = ActivationFunctionType.RELU if draw.seldom() else ActivationFunctionType.NONE
    y = like(parts[0]) if not draw.seldom(4) else draw.requantized(parts[0])
    return draw.one_op(parts, [y], ConcatenationOptions(axis=axis, fused_activation_function=activation))


@spec("PACK")
def pack(draw: Draw) -> Case:
    type, shape, count = draw.type(F32, I8, U8, I16, I32, I64, U32), draw.shape(0, 4), draw.integer(1, 4)
    parts = [draw.tensor(type, shape) for _ in range(count)]
    for part in parts:
        part.scale, part.zero_point = parts[0].scale, parts[0].zero_point
    return draw.one_op(parts, [like(parts[0])], PackOptions(values_count=count, axis=draw.axis(len(shape) + 1)))


@spec("UNPACK")
def unpack(draw: Draw) -> Case:
    shape = list(draw.shape(1, 5, empty=False))
    axis = draw.axis(len(shape))
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, BOOL, F16), shape)
    x.flexible = False
    num = shape[axis] if -len(shape) <= axis < len(shape) and not draw.seldom() else draw.integer(1, 4)
    return draw.one_op([x], [like(x) for _ in range(num)], UnpackOptions(num=num, axis=axis))


@spec("SPLIT")
def split(draw: Draw) -> Case:
    count, shape = draw.integer(1, 4), list(draw.shape(1, 4))
    axis = draw.axis(len(shape))
    if -len(shape) <= axis < len(shape) and not draw.seldom(15):
        shape[axis] = count * draw.integer(1, 3)
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, I64), shape)
    return draw.one_op(
        [draw.given(np.reshape(axis, draw.pick((), (1,)))), x], [like(x) for _ in range(count)], SplitOptions(num_splits=count)
    )


@spec("SPLIT_V")
def split_v(draw: Draw) -> Case:
    shape = list(draw.shape(1, 4))
    axis = draw.axis(len(shape))
    sizes = list(draw.dims(draw.integer(1, 4), 0, 3))
    if -len(shape) <= axis < len(shape) and not draw.seldom(15):
        shape[axis] = sum(sizes)
        if draw.flag():
            sizes[draw.integer(0, len(sizes) - 1)] = -1
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, I64), shape)
    x.flexible = False
    args = [x, draw.given(sizes, draw.pick(I32, I64)), draw.given(np.reshape(axis, draw.pick((), (1,))))]
    return draw.one_op(args, [like(x) for _ in sizes], SplitVOptions(num_splits=len(sizes)))


@spec("TRANSPOSE", weight=2)
def transpose(draw: Draw) -> Case:
    rank = draw.integer(1, 6)  # LiteRT loops forever or reads nothing on a scalar
    x = draw.tensor(draw.type(*COMMON), draw.shape(rank, rank, 4))
    order = draw.rng.permutation(rank) - (rank if draw.seldom(4) else 0)
    if rank and draw.seldom(15):
        order[0] = draw.pick(rank, -rank - 1)
    return draw.one_op([x, draw.given(order)], [like(x)])


@spec("SLICE", weight=2)
def slice_(draw: Draw) -> Case:
    x = draw.tensor(draw.type(*COMMON, STRING, U32, F16), draw.shape(1, 5))
    begin = [draw.integer(0, dim) for dim in x.shape]
    size = [draw.integer(0, dim - first) if draw.flag() else -1 for dim, first in zip(x.shape, begin)]
    if draw.seldom():
        size[0] += draw.pick(5, -2)
    if draw.seldom(15):
        begin[-1] = draw.pick(-1, 9)
    x.flexible = False
    type = draw.pick(I32, I64)
    return draw.one_op([x, draw.given(begin, type), draw.given(size, type)], [like(x)])


@spec("STRIDED_SLICE", weight=4)
def strided_slice(draw: Draw) -> Case:
    x = draw.tensor(draw.type(*COMMON, STRING, U32), draw.shape(1, 5))
    count = draw.integer(1, len(x.shape)) if not draw.seldom(5) else draw.integer(0, len(x.shape) + 1)

    def mask() -> int:
        return draw.integer(0, 2**count - 1) if draw.flag() else 0

    options = StridedSliceOptions(begin_mask=mask(), end_mask=mask(), shrink_axis_mask=mask() if draw.flag() else 0)
    if draw.seldom(4):
        options.ellipsis_mask = 1 << draw.integer(0, max(count - 1, 0))
    if draw.seldom(4):
        options.new_axis_mask = mask()
    begin, end = ([draw.integer(-6, 6) for _ in range(count)] for _ in range(2))
    if draw.flag():
        begin, end = [draw.integer(0, 1) for _ in begin], [draw.integer(2, 5) for _ in end]
    strides = [draw.pick(1, 1, -1, 2, -2, 3) if not draw.seldom(40) else 0 for _ in range(count)]
    if 0 not in x.shape and draw.seldom(6):  # `end` counts from `begin`; LiteRT reads it for all axes, whatever the masks say
        count = len(x.shape)
        begin = [draw.integer(0, max(dim - 1, 0)) for dim in x.shape]
        end = [draw.integer(1, max(dim - first, 1)) for dim, first in zip(x.shape, begin)]
        strides = [draw.pick(1, 1, 2) for _ in x.shape]
        options = StridedSliceOptions(offset=True, shrink_axis_mask=options.shrink_axis_mask if draw.flag() else 0)
    elif count > len(x.shape):
        draw.broken = "axes"
    if any(stride < 0 and options.shrink_axis_mask >> axis & 1 for axis, stride in enumerate(strides)):
        draw.broken = "stride"  # LiteRT writes nothing
    x.flexible = False
    type = draw.pick(I32, I32, I64, I16) if draw.seldom(4) else I32
    constant = not draw.seldom(4)
    given = [draw.given(values, type, constant) for values in (begin, end, strides)]
    return draw.one_op([x, *given], [like(x)], options)


def _paddings(draw: Draw, shape: Shape, largest: int = 3) -> list[list[int]]:
    paddings = [[draw.integer(0, largest), draw.integer(0, largest)] for _ in shape]
    if paddings and draw.seldom(15):
        paddings[0][0] = -1
    return paddings


@spec("PAD")
def pad(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, I64), draw.shape(1, 5, 4))
    args = [x, draw.given(_paddings(draw, x.shape), draw.pick(I32, I32, I64))]
    return draw.one_op(args, [like(x)])


@spec("PADV2")
def padv2(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, I64), draw.shape(1, 5, 4))
    value = draw.tensor(x.type, draw.pick((1,), (1,), (), (2,)) if draw.seldom(5) else (1,), constant=draw.flag())
    value.scale, value.zero_point, value.flexible = x.scale, x.zero_point, False
    return draw.one_op([x, draw.given(_paddings(draw, x.shape), draw.pick(I32, I32, I64)), value], [like(x)])


@spec("MIRROR_PAD")
def mirror_pad(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, I64, BOOL), draw.shape(1, 5, 4, empty=False))
    mode = draw.pick(MirrorPadMode.REFLECT, MirrorPadMode.SYMMETRIC)
    room = [dim - (mode is MirrorPadMode.REFLECT) for dim in x.shape]
    paddings = [[draw.integer(0, most), draw.integer(0, most)] for most in room]
    if draw.seldom(15):
        paddings[0][0] += 3
    x.flexible = False
    return draw.one_op([x, draw.given(paddings, draw.pick(I32, I64))], [like(x)], MirrorPadOptions(mode=mode))


@spec("TILE")
def tile(draw: Draw) -> Case:
    x = draw.tensor(draw.type(*COMMON, STRING), draw.shape(0, 4, 4))
    times = [draw.integer(0, 3) for _ in x.shape]
    if times and draw.seldom(15):
        times = times[1:]
    return draw.one_op([x, draw.given(times, draw.pick(I32, I64))], [like(x)])


@spec("REVERSE_V2")
def reverse_v2(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, I64, BOOL), draw.shape(0, 5))
    count = draw.integer(0, len(x.shape))
    axes = list(draw.rng.permutation(len(x.shape))[:count])
    if draw.flag():
        axes = sorted(axes)[: draw.integer(0, len(axes))]
    if draw.seldom():
        axes = [draw.axis(len(x.shape)) for _ in range(draw.integer(1, 3))]
    return draw.one_op([x, draw.given(np.array(axes, np.int32))], [like(x)])


@spec("REVERSE_SEQUENCE")
def reverse_sequence(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, I64), draw.shape(2, 5, empty=False))
    rank = len(x.shape)
    seq, batch = (int(axis) for axis in draw.rng.permutation(rank)[:2])
    lengths = [draw.integer(0, x.shape[seq]) for _ in range(x.shape[batch])]
    if draw.seldom(15):
        lengths[0] = draw.pick(x.shape[seq] + 1, -1)
    if draw.seldom():
        seq, batch = draw.axis(rank), draw.axis(rank)
    x.flexible = False
    return draw.one_op(
        [x, draw.given(lengths, draw.pick(I32, I64))], [like(x)], ReverseSequenceOptions(seq_dim=seq, batch_dim=batch)
    )


@spec("SPACE_TO_DEPTH")
def space_to_depth(draw: Draw) -> Case:
    block = draw.integer(1, 3) if not draw.seldom(20) else draw.pick(0, -1)
    n, h, w, c = draw.dims(4, 1, 3)
    shape = (n, h * abs(block) or 1, (w * abs(block) or 1) + draw.seldom(20), c)
    x = draw.tensor(draw.type(F32, I8, U8, I32, I64), shape)
    return draw.one_op([x], [like(x)], SpaceToDepthOptions(block_size=block))


@spec("DEPTH_TO_SPACE")
def depth_to_space(draw: Draw) -> Case:
    block = draw.integer(1, 3) if not draw.seldom(20) else draw.pick(0, -1)
    n, h, w, c = draw.dims(4, 1, 3)
    x = draw.tensor(draw.type(F32, I8, U8, I32, I64), (n, h, w, (c * block * block or 1) + draw.seldom(20)))
    return draw.one_op([x], [like(x)], DepthToSpaceOptions(block_size=block))


@spec("SPACE_TO_BATCH_ND")
def space_to_batch_nd(draw: Draw) -> Case:
    rank = draw.pick(4, 4, 3)
    blocks = draw.dims(rank - 2, 1, 3)
    crops = [[draw.integer(0, 2), 0] for _ in blocks]
    shape = [draw.integer(1, 2)]
    for block, crop in zip(blocks, crops):
        dim = draw.integer(1, 4)
        crop[1] = -(dim + crop[0]) % block
        if draw.seldom(20):
            crop[1] += 1
        shape.append(dim)
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, I64), [*shape, draw.integer(1, 3)])
    x.flexible = False
    return draw.one_op([x, draw.given(blocks), draw.given(crops)], [like(x)])


@spec("BATCH_TO_SPACE_ND")
def batch_to_space_nd(draw: Draw) -> Case:
    rank = draw.pick(4, 4, 3)
    blocks = draw.dims(rank - 2, 1, 3)
    spatial = draw.dims(rank - 2, 1, 3)
    crops = [[draw.integer(0, 1), draw.integer(0, 1)] for _ in blocks]
    crops = [crop if sum(crop) < b * s or draw.seldom() else [0, 0] for crop, b, s in zip(crops, blocks, spatial)]
    batch = int(np.prod(blocks)) * draw.integer(1, 2) + draw.seldom(20)
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, I64), (batch, *spatial, draw.integer(1, 3)))
    x.flexible = False
    return draw.one_op([x, draw.given(blocks), draw.given(crops)], [like(x)])


@spec("SHAPE")
def shape(draw: Draw) -> Case:
    from oplet.schema.options import ShapeOptions

    x = draw.tensor(draw.type(*COMMON, STRING), draw.shape())
    type = draw.pick(I32, I64)
    return draw.one_op([x], [out(type)], ShapeOptions(out_type=type))


@spec("RANK")
def rank(draw: Draw) -> Case:
    return draw.one_op([draw.tensor(draw.type(*COMMON, STRING), draw.shape())], [out(I32)])


@spec("MATRIX_DIAG")
def matrix_diag(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, I64), draw.shape(1, 4))
    return draw.one_op([x], [like(x, (1,) * (len(x.shape) + 1))])


@spec("MATRIX_SET_DIAG")
def matrix_set_diag(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, I64), draw.shape(2, 4, empty=False))
    diagonal = draw.tensor(x.type, (*x.shape[:-2], min(x.shape[-2:])))
    diagonal.scale, diagonal.zero_point = x.scale, x.zero_point
    x.flexible = diagonal.flexible = False
    return draw.one_op([x, diagonal], [like(x)])


@spec("DYNAMIC_UPDATE_SLICE")
def dynamic_update_slice(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, I32, I64, BOOL, U8, I16, F16), draw.shape(0, 5))
    update = draw.tensor(x.type, [draw.integer(0, dim) for dim in x.shape])
    update.scale, update.zero_point = x.scale, x.zero_point
    starts = [draw.integer(-2, dim + 1) for dim in x.shape]
    x.flexible = update.flexible = False
    return draw.one_op([x, update, draw.given(starts, draw.pick(I32, I64), constant=draw.flag())], [like(x)])


@spec("DILATE")
def dilate(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, I64, F64, U16, U32, U64), draw.shape(1, 5, 4, empty=False), quantized=False)
    factors = [draw.integer(1, 3) for _ in x.shape]
    if draw.seldom(15):
        factors[0] = draw.pick(0, -1)
    value = draw.tensor(x.type, (), quantized=False)
    return draw.one_op([x, draw.given(factors), value], [like(x)])


@spec("STABLEHLO_PAD")
def stablehlo_pad(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8, I16, I32, I64, BOOL), draw.shape(1, 4), quantized=False)
    low, high = ([draw.integer(-2, 3) for _ in x.shape] for _ in range(2))
    if draw.flag():
        low, high = [abs(v) for v in low], [abs(v) for v in high]
    inner = [draw.integer(0, 2) for _ in x.shape]
    if draw.seldom(20):
        inner[0] = -1
    options = StablehloPadOptions(edge_padding_low=low, edge_padding_high=high, interior_padding=inner)
    return draw.one_op([x, draw.tensor(x.type, (), quantized=False)], [like(x, x.shape)], options)
