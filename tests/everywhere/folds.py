"""Operators that fold axes, windows and products, layers among them."""

from __future__ import annotations

from copy import copy

import numpy as np

from oplet import TensorType as T
from oplet.schema import options as o
from oplet.schema import stablehlo_options as s

from .kit import F32, Arg, Kind, Kit, recipe

I8 = T.INT8


@recipe("SUM", "MEAN", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_PROD", "REDUCE_ANY", "REDUCE_ALL")
def reductions(kit: Kit) -> None:
    for shape in kit.shapes(0):
        for axes in sorted({(len(shape) - 1,), (0,), tuple(range(len(shape))), ()}):
            if shape or not axes:
                y = kit.out(shape=tuple(d for i, d in enumerate(shape) if i not in axes))
                kit.add(
                    [kit.arg(shape, low=-1.0, high=2.0), kit.ints(np.asarray(axes, np.int32))],
                    [y],
                    o.ReducerOptions(keep_dims=False),
                    f"{kit.label} over {axes}",
                )
    kit.add([kit.arg((1, 2, 3, 4)), kit.ints([1, 2])], [kit.out(shape=(1, 1, 1, 4))], o.ReducerOptions(keep_dims=True), "images")


@recipe("CUMSUM")
def cumsum(kit: Kit) -> None:
    for shape in kit.shapes(1):
        kit.add([kit.arg(shape), kit.ints(len(shape) - 1)], [kit.out(shape=shape)], o.CumsumOptions())


@recipe("ARG_MAX", "ARG_MIN")
def arg(kit: Kit) -> None:
    for shape in kit.shapes(1):
        for type in (T.INT32, T.INT64) if not kit.label else (T.INT32,):
            kit.add(
                [kit.arg(shape), kit.ints(len(shape) - 1)],
                [kit.out(type, shape[:-1])],
                o.ArgMaxOptions(output_type=type) if kit.op == "ARG_MAX" else o.ArgMinOptions(output_type=type),
                f"{kit.label} {type.name}",
            )


@recipe("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
def pools(kit: Kit) -> None:
    for shape in ((1, 4, 4, 3), (0, 4, 4, 3), (1, 4, 4, 0)):
        for padding in (0, 1):
            options = o.Pool2DOptions(padding=padding, stride_w=2, stride_h=2, filter_width=2, filter_height=2)
            kit.add([kit.arg(shape)], [kit.out(shape=(shape[0], 2, 2, shape[3]))], options, f"{list(shape)} {padding}")
        for code in (1, 3):
            options = o.Pool2DOptions(
                padding=1, stride_w=2, stride_h=2, filter_width=2, filter_height=2, fused_activation_function=code
            )
            kit.add([kit.arg(shape)], [kit.out(shape=(shape[0], 2, 2, shape[3]))], options, f"{list(shape)} activation {code}")


@recipe("REDUCE_WINDOW")
def reduce_window(kit: Kit) -> None:
    pass


@recipe("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR")
def resize(kit: Kit) -> None:
    make = o.ResizeBilinearOptions if kit.op == "RESIZE_BILINEAR" else o.ResizeNearestNeighborOptions
    for shape in ((1, 4, 4, 3), (0, 4, 4, 3), (1, 4, 4, 0)):
        for align, half in ((False, False), (True, False), (False, True)):
            kit.add(
                [kit.arg(shape), kit.ints([6, 7])],
                [kit.out(shape=(shape[0], 6, 7, shape[3]))],
                make(align_corners=align, half_pixel_centers=half),
                f"{list(shape)} {align} {half}",
            )


_FILTERS = (
    Kind(F32),
    Kind(T.FLOAT16),
    Kind(T.BFLOAT16),
    Kind(T.FLOAT64),
    Kind(I8, True),
    Kind(T.UINT8, True),
    Kind(T.INT4, True),
    Kind(T.INT16, True),
    Kind(T.INT2, True),
    Kind(I8),
    Kind(T.INT32),
)


def _filters(kit: Kit, shape: tuple[int, ...], axis: int):
    for kind in _FILTERS:
        if kind.quantized and kind.type in (I8, T.INT4, T.INT2):
            w = kit.constant(shape, kind, -1, 1)
            w.scale, w.zero_point = 0.01 if kind.type is I8 else 0.2, 0
            yield w, f"by {kind}"
            w = kit.constant(shape, kind, -1, 1)
            w.scale, w.zero_point, w.axis = [0.01 * (i + 1) for i in range(shape[axis])], [0] * shape[axis], axis
            yield w, f"by {kind} per channel"
        else:
            yield kit.constant(shape, kind, -1, 1), f"by {kind}"
            if kit.kind == kind:
                yield kit.arg(shape, kind, -1, 1), f"by fed {kind}"


def _bias(kit: Kit, w: Arg, count: int) -> list[Arg | None]:
    """The biases to try: that of the arithmetic, and none."""
    x = kit.kind
    if not x.quantized:
        kinds = [x] if x.type is F32 or w.kind.quantized else [x, Kind(F32)]
        return [None, *(kit.constant((count,), kind) for kind in kinds)]
    found: list[Arg | None] = [None]
    for type in (T.INT64, T.INT32) if x.type is T.INT16 else (T.INT32,):
        b = kit.constant((count,), Kind(type), -100, 100)
        b.scale = (np.atleast_1d(np.float32(w.scale or 1.0)) * np.float32(x.scale)).tolist()
        b.zero_point = [0] * len(b.scale)
        found.append(b)
    return found


def _layer(
    kit: Kit, shape, filters, axis: int, options, out_shape, label: str = "", before: tuple = (), back: bool = False
) -> None:
    for w, how in _filters(kit, filters, axis):
        for b in _bias(kit, w, filters[axis]):
            for out in (kit.kind, *((Kind(F32),) if kit.kind.type is T.FLOAT16 else ())):
                x = kit.arg(shape)
                y = kit.out(out, out_shape)
                parts = [*before, w, x] if back else [x, w]
                chosen = copy(options)
                if b is not None and b.kind.type is T.INT32 and hasattr(options, "quantized_bias_type"):
                    chosen.quantized_bias_type = T.INT32
                name = f"{label} {how} {'no bias' if b is None else b.kind}{'' if out == kit.kind else f' to {out}'}"
                kit.add(parts + ([b] if b is not None else []), [y], chosen, name)


@recipe("FULLY_CONNECTED")
def fully_connected(kit: Kit) -> None:
    _layer(kit, (3, 8), (4, 8), 0, o.FullyConnectedOptions(), (3, 4))
    if kit.kind in (Kind(F32), Kind(T.FLOAT16), Kind(I8, True)):
        for shape in ((0, 8), (2, 0, 8), (2, 3, 8), (1, 2, 2, 3, 8)):
            w = kit.constant((4, 8), low=-1, high=1)
            w.zero_point = 0 if w.scale else None
            b = _bias(kit, w, 4)[-1]
            kit.add(
                [kit.arg(shape), w, b],
                [kit.out(shape=(*shape[:-1], 4))],
                o.FullyConnectedOptions(keep_num_dims=True),
                f"{list(shape)}",
            )
        w = kit.constant((4, 0))
        w.zero_point = 0 if w.scale else None
        kit.add([kit.arg((3, 0)), w, _bias(kit, w, 4)[-1]], [kit.out(shape=(3, 4))], o.FullyConnectedOptions(), "of nothing")


@recipe("CONV_2D")
def conv_2d(kit: Kit) -> None:
    options = o.Conv2DOptions(padding=0, stride_w=1, stride_h=1)
    _layer(kit, (1, 4, 4, 2), (4, 3, 3, 2), 0, options, (1, 4, 4, 4))
    if kit.kind in (Kind(F32), Kind(T.FLOAT16), Kind(I8, True)):
        for shape in ((0, 4, 4, 2), (1, 4, 0, 2)):
            w = kit.constant((4, 1, 1, 2), low=-1, high=1)
            w.zero_point = 0 if w.scale else None
            kit.add([kit.arg(shape), w, _bias(kit, w, 4)[-1]], [kit.out(shape=(*shape[:3], 4))], options, str(list(shape)))


@recipe("DEPTHWISE_CONV_2D")
def depthwise(kit: Kit) -> None:
    options = o.DepthwiseConv2DOptions(padding=0, stride_w=1, stride_h=1, depth_multiplier=2)
    _layer(kit, (1, 4, 4, 2), (1, 3, 3, 4), 3, options, (1, 4, 4, 4))


@recipe("TRANSPOSE_CONV")
def transpose_conv(kit: Kit) -> None:
    options = o.TransposeConvOptions(padding=0, stride_w=2, stride_h=2)
    _layer(kit, (1, 3, 3, 2), (4, 3, 3, 2), 0, options, (1, 6, 6, 4), before=(kit.ints([1, 6, 6, 4]),), back=True)


@recipe("CONV_3D", "CONV_3D_TRANSPOSE")
def conv_3d(kit: Kit) -> None:
    options = o.Conv3DOptions(padding=0, stride_w=1, stride_h=1, stride_d=1)
    if kit.op == "CONV_3D":
        _layer(kit, (1, 3, 3, 3, 2), (2, 2, 2, 2, 4), 4, options, (1, 3, 3, 3, 4))
    else:
        for kind in (Kind(F32), Kind(T.FLOAT16), Kind(I8, True)):
            w = kit.constant((2, 2, 2, 4, 2), kind, -1, 1)
            kit.add(
                [kit.ints([1, 3, 3, 3, 4]), w, kit.arg((1, 3, 3, 3, 2))], [kit.out(shape=(1, 3, 3, 3, 4))], options, f"by {kind}"
            )


@recipe("BATCH_MATMUL")
def batch_matmul(kit: Kit) -> None:
    for a, b in (((2, 3, 4), (2, 4, 5)), ((3, 4), (4, 5)), ((2, 1, 3, 4), (1, 2, 4, 5)), ((1, 2, 1, 3, 4), (4, 5)), ((2, 2, 1, 2, 3, 4), (2, 1, 1, 2, 4, 5)), ((0, 3, 4), (0, 4, 5)), ((2, 3, 0), (2, 0, 5)), ((2, 0, 4), (2, 4, 5))):  # fmt: skip
        out = (*np.broadcast_shapes(a[:-2], b[:-2]), a[-2], b[-1])
        for right in dict.fromkeys((kit.kind, Kind(I8, True), Kind(F32), Kind(T.FLOAT16))):
            y = kit.out(shape=out)
            if y.scale:
                y.scale = 8 * y.scale
            w = kit.arg(b, right)
            kit.add([kit.arg(a), w], [y], o.BatchMatMulOptions(), f"{a} {b} by fed {right}")
            w = kit.constant(b, right)
            if right.quantized:
                w.zero_point = 0
            kit.add([kit.arg(a), w], [y], o.BatchMatMulOptions(), f"{a} {b} by {right}")
            if kit.kind == right:
                kit.add(
                    [kit.arg(a), kit.arg((*b[:-2], b[-1], b[-2]), right)],
                    [y],
                    o.BatchMatMulOptions(adj_y=True),
                    f"{a} {b} by turned {right}",
                )
                kit.add(
                    [kit.arg((*a[:-2], a[-1], a[-2])), kit.arg(b, right)],
                    [y],
                    o.BatchMatMulOptions(adj_x=True),
                    f"turned {a} {b} by {right}",
                )


@recipe("STABLEHLO_DOT_GENERAL")
def dot_general(kit: Kit) -> None:
    options = s.StablehloDotGeneralOptions(lhs_contracting_dimensions=[1], rhs_contracting_dimensions=[0])
    kit.add([kit.arg((2, 3)), kit.arg((3, 4))], [kit.out(shape=(2, 4))], options)


@recipe("RFFT2D")
def rfft2d(kit: Kit) -> None:
    for shape in kit.shapes(2, usual=(2, 4, 4)):
        kit.add([kit.arg(shape), kit.ints([4, 4])], [kit.out(T.COMPLEX64, (*shape[:-2], 4, 3))])


@recipe("MULTINOMIAL", "RANDOM_UNIFORM", "RANDOM_STANDARD_NORMAL")
def random(kit: Kit) -> None:
    pass
