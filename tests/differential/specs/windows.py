"""Operators that slide a window: pooling, resizing, window reductions; transforms of whole images."""

from __future__ import annotations

from oplet import ModelBuilder
from oplet.schema.enums import ActivationFunctionType, Padding, ReduceWindowFunction
from oplet.schema.options import Pool2DOptions, ResizeBilinearOptions, ResizeNearestNeighborOptions, Rfft2dOptions
from oplet.schema.stablehlo_options import ReduceWindowOptions, StablehloReduceWindowOptions

from ..harness import Case
from ..strategies import BOOL, C64, F32, F64, I8, I16, I32, I64, U8, Draw, like, out, spec
from .graphs import case, declare


@spec("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
def pool(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32) if draw.op == "L2_POOL_2D" else draw.type(F32, I8, U8, I16), draw.dims(4, 1, 7))
    padding = draw.pick(Padding.SAME, Padding.VALID)
    height, width = draw.integer(1, 4), draw.integer(1, 4)
    if padding is Padding.VALID:
        if draw.seldom() and (height > x.shape[1] or width > x.shape[2]):
            draw.broken = "window"
        else:
            height, width = min(height, x.shape[1]), min(width, x.shape[2])
    options = Pool2DOptions(
        padding=padding, stride_w=draw.integer(1, 3), stride_h=draw.integer(1, 3), filter_width=width, filter_height=height,
        fused_activation_function=ActivationFunctionType(draw.integer(0, 3)),
    )  # fmt: skip
    if draw.seldom(20):
        options.stride_w = 0
    x.flexible = False
    return draw.one_op([x], [like(x)], options)


@spec("RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR", weight=2)
def resize(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8, I16), draw.dims(4, 1, 6))
    table = ResizeBilinearOptions if draw.op == "RESIZE_BILINEAR" else ResizeNearestNeighborOptions
    corners, centers = draw.pick((False, False), (True, False), (False, True))
    if draw.seldom(20):
        corners = centers = True
        draw.broken = "flags"
    size = [draw.integer(1, 12), draw.integer(1, 12)]
    if draw.seldom(20):
        size[0] = draw.pick(0, -1)
        draw.broken = "size"
    options = table(align_corners=corners, half_pixel_centers=centers)
    return draw.one_op([x, draw.given(size)], [like(x)], options, rtol=1e-4)


@spec("RFFT2D")
def rfft2d(draw: Draw) -> Case:
    x = draw.tensor(F32, (*draw.dims(draw.integer(0, 2), 1, 3), draw.integer(1, 9), draw.integer(1, 9)))
    lengths = [draw.pick(1, 2, 4, 8, 16), draw.pick(2, 4, 8, 16)]  # LiteRT's transform of rows of 1 is nonsense
    if draw.seldom(15):
        lengths[draw.integer(0, 1)] = draw.pick(3, 0, -2)
    return draw.one_op([x, draw.given(lengths)], [out(C64)], Rfft2dOptions(), atol=1e-5)


def _window(draw: Draw, shape: tuple[int, ...]) -> dict[str, list[int]]:
    return {
        "window": [draw.integer(1, 3) for _ in shape],
        "strides": [draw.integer(1, 3) for _ in shape],
        "dilations": [draw.integer(1, 2) for _ in shape],
    }


@spec("REDUCE_WINDOW")
def reduce_window(draw: Draw) -> Case:
    function = draw.pick(*[ReduceWindowFunction(code) for code in range(1, 7)])
    logical = function in (ReduceWindowFunction.ALL, ReduceWindowFunction.ANY)
    type = draw.type(BOOL) if logical else draw.type(F32, I8, U8, I16, I32, I64, F64)
    x = draw.tensor(type, draw.shape(1, 5, 5, empty=False), quantized=False)
    x.flexible = False
    sizes = _window(draw, x.shape)
    if not draw.seldom():  # a window that does not fit
        sizes["window"] = [min(w, (n - 1) // d + 1) for w, n, d in zip(sizes["window"], x.shape, sizes["dilations"])]
    init = draw.tensor(type, (), quantized=False)
    given = [draw.given(sizes[name], I64, constant=True) for name in ("window", "strides", "dilations")]
    return draw.one_op([x, init, *given], [like(x, x.shape)], ReduceWindowOptions(reduce_function=function), rtol=1e-4)


@spec("STABLEHLO_REDUCE_WINDOW", weight=2)
def stablehlo_reduce_window(draw: Draw) -> Case:
    body = draw.pick(
        "STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM", "ADD", "MUL", "MAXIMUM", "MINIMUM",
        "STABLEHLO_AND", "LOGICAL_AND", "LOGICAL_OR",
    )  # fmt: skip
    logical = body in ("STABLEHLO_AND", "LOGICAL_AND", "LOGICAL_OR")
    if draw.seldom(25):
        body = "SUB"
    type = BOOL if logical else draw.pick(F32, I8, U8, I16, I32, I64)
    x = draw.tensor(type, draw.shape(1, 5, 4, empty=False), quantized=False, constant=False)
    init = draw.tensor(type, (), quantized=False, constant=draw.flag())
    sizes = _window(draw, x.shape)
    base = [draw.integer(1, 2) for _ in x.shape]
    padding = [draw.integer(-1 if draw.seldom(4) else 0, 2) for _ in range(2 * len(x.shape))]
    options = StablehloReduceWindowOptions(
        window_dimensions=sizes["window"], window_strides=sizes["strides"], base_dilations=base,
        window_dilations=sizes["dilations"], padding=padding, body_subgraph_index=draw.pick(1, 1, 1, 1, 1, 1, 1, 1, 1, 2),
    )  # fmt: skip
    builder = ModelBuilder()
    main, inner = builder.add_subgraph(), builder.add_subgraph("body")
    args = [declare(main, "x", x), declare(main, "init", init)]
    result = main.add_tensor("y", type, x.shape)
    main.set_inputs(*[index for index, arg in zip(args, (x, init)) if not arg.constant])
    main.set_outputs(result)
    main.add_operator("STABLEHLO_REDUCE_WINDOW", args, [result], options)
    a, b, c = (inner.add_tensor(name, type, ()) for name in "abc")
    inner.set_inputs(a, b)
    inner.set_outputs(c)
    inner.add_operator(body, [a, b], [c])
    return case(draw, builder, [arg for arg in (x, init) if not arg.constant], f"{body} {x} {init} {options}", rtol=1e-4)
