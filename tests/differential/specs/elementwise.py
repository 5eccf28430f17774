"""Operators that work element by element on one tensor."""

from __future__ import annotations

from oplet.schema.options import BucketizeOptions, CastOptions, FakeQuantOptions, GeluOptions, LeakyReluOptions, SoftmaxOptions
from oplet.schema.table import Table

from ..harness import Case
from ..strategies import (
    BOOL,
    C64,
    C128,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    Arg,
    Draw,
    TensorType,
    like,
    out,
    spec,
)  # fmt: skip


def unary(
    draw: Draw,
    *types: TensorType,
    low: float | None = None,
    high: float | None = None,
    own: bool = True,
    special: bool = True,
    options: Table | None = None,
    rtol: float = 1e-5,
    floor: float = 0.0,
) -> Case:
    """A tensor in, one of the same type out, with a quantization of its own or the input's."""
    x = draw.tensor(draw.type(*types), draw.shape(), low, high, special=special)
    y = draw.requantized(x) if own and draw.flag() else like(x)
    return draw.one_op([x], [y], options, rtol=rtol, floor=floor)


@spec("FLOOR", "CEIL", "ROUND", "SQUARE", "SIN", "COS")
def float_only(draw: Draw) -> Case:
    return unary(draw, F32)


@spec("LOGICAL_NOT")
def logical_not(draw: Draw) -> Case:
    return unary(draw, BOOL)


@spec("EXP")
def exp(draw: Draw) -> Case:
    return unary(draw, F32, I8, I16)


@spec("LOG", "SQRT", "RSQRT")
def roots(draw: Draw) -> Case:
    return unary(draw, F32, I8, I16, low=0.0, high=50.0) if draw.flag() else unary(draw, F32, I8, I16)


@spec("ABS")
def absolute(draw: Draw) -> Case:
    return unary(draw, F32, I8, I16, I32)


@spec("NEG", "ZEROS_LIKE")
def negate(draw: Draw) -> Case:
    return unary(draw, F32, I32, I64, I8, I16, own=False)


@spec("SIGN")
def sign(draw: Draw) -> Case:
    return unary(draw, F32, F64, I32)


@spec("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "HARD_SWISH", "ELU")
def activation(draw: Draw) -> Case:
    return unary(draw, F32, I8, U8, I16)


@spec("LEAKY_RELU")
def leaky_relu(draw: Draw) -> Case:
    alpha = draw.pick(0.1, 0.5, 0.0, 1.0, 2.0, -0.3)
    return unary(draw, F32, I8, U8, I16, special=alpha > 0, options=LeakyReluOptions(alpha=alpha))


@spec("GELU")
def gelu(draw: Draw) -> Case:
    # LiteRT multiplies -inf with a zero; its limit is zero.
    return unary(draw, F32, I8, U8, special=False, options=GeluOptions(approximate=draw.flag()), rtol=1e-4, floor=1e-6)


def _fixed_output(draw: Draw, x: Arg, scales: dict[object, tuple[float, int]]) -> Arg:
    """The output quantization that the op prescribes; seldom another, which it has to refuse."""
    if x.type not in scales or draw.seldom(15):
        return draw.requantized(x)
    scale, zero_point = scales[x.type]
    return Arg(x.type, (), scale=scale, zero_point=zero_point)


@spec("TANH")
def tanh(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8, I16), draw.shape(), special=True, symmetric=True)
    if x.type is I16:
        x.scale = draw.pick(1 / 4096, 1 / 2048, 1 / 8192, 0.0003, 0.001, 1 / 32768)
    return draw.one_op([x], [_fixed_output(draw, x, {I8: (1 / 128, 0), U8: (1 / 128, 128), I16: (1 / 32768, 0)})])


@spec("LOGISTIC")
def logistic(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8, I16), draw.shape(), special=True)
    if x.type is I16:
        x.scale = draw.pick(1 / 4096, 1 / 2048, 1 / 8192, 0.0003, 0.001, 1 / 32768)
    return draw.one_op([x], [_fixed_output(draw, x, {I8: (1 / 256, -128), U8: (1 / 256, 0), I16: (1 / 32768, 0)})])


@spec("SOFTMAX", weight=2)
def softmax(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8, I16), draw.shape(1, 4, 8))
    y = _fixed_output(draw, x, {I8: (1 / 256, -128), U8: (1 / 256, 0), I16: (1 / 32768, 0)})
    if x.type is I8 and draw.seldom(4):
        y = Arg(I16, (), scale=1 / 65536, zero_point=-32768)
    return draw.one_op([x], [y], SoftmaxOptions(beta=draw.pick(1.0, 0.5, 2.0, 0.1)))


@spec("LOG_SOFTMAX")
def log_softmax(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8), draw.shape(1, 4, 8))
    return draw.one_op([x], [_fixed_output(draw, x, {I8: (16 / 256, 127), U8: (16 / 256, 255)})], atol=1e-5)


@spec("FAKE_QUANT")
def fake_quant(draw: Draw) -> Case:
    low, high = draw.pick((-1.0, 1.0), (0.0, 6.0), (-3.0, 0.0), (0.1, 2.0), (-10.0, -1.0), (-0.73, 5.21))
    options = FakeQuantOptions(min=low, max=high, num_bits=draw.pick(8, 4, 16, 2), narrow_range=draw.flag())
    return unary(draw, F32, special=False, options=options)


@spec("CAST", weight=3)
def cast(draw: Draw) -> Case:
    types = (F32, I32, I64, I8, U8, I16, BOOL, U32, U16, F16, F64, C64)
    source, target = draw.type(*types), draw.type(*types)
    # What a float beyond the target's range becomes is undefined in C++.
    low, high = (0, 100) if target in (U8, U16, U32) else (-100, 100)
    x = draw.tensor(source, draw.shape(), *((low, high) if source in (F32, F16, F64, C64) else ()), quantized=False)
    options = CastOptions(in_data_type=source, out_data_type=target) if draw.flag() else CastOptions()
    return draw.one_op([x], [out(target)], options)


@spec("QUANTIZE", weight=3)
def quantize(draw: Draw) -> Case:
    source = draw.type(F32, I8, U8, I16, I32)
    x = draw.tensor(source, draw.shape(), quantized=source is not F32, special=False)
    target = draw.pick(I8, U8, I16, I32) if not draw.seldom() else draw.pick(F32, I64, BOOL)
    scale, zero_point = draw.quantization(target)
    y = Arg(target, (), scale=scale, zero_point=zero_point)
    if source is F32 and target in (I8, U8, I16) and x.shape and draw.seldom(3):  # per channel
        axis = draw.integer(0, len(x.shape) - 1)
        count = x.shape[axis]
        if count:
            x.flexible = False
            y = Arg(target, x.shape, scale=[0.1 * (i + 1) for i in range(count)], zero_point=[zero_point] * count, axis=axis)
    return draw.one_op([x], [y])


@spec("DEQUANTIZE", weight=2)
def dequantize(draw: Draw) -> Case:
    source = draw.type(I8, U8, I16, F16)
    x = draw.tensor(source, draw.shape(), quantized=source is not F16, constant=draw.flag())
    if x.scale is not None and x.shape and draw.seldom(3) and 0 not in x.shape:
        axis = draw.integer(0, len(x.shape) - 1)
        x = Arg(source, x.shape, x.make, [0.1 * (i + 1) for i in range(x.shape[axis])], [0] * x.shape[axis], axis, x.constant)
        x.flexible = False
    return draw.one_op([x], [out(F32)])


@spec("BUCKETIZE")
def bucketize(draw: Draw) -> Case:
    boundaries = sorted(draw.rng.choice([-20.0, -1.0, 0.0, 0.5, 3.0, 10.0, 50.0], draw.integer(0, 5), replace=False))
    x = draw.tensor(draw.type(F32, F64, I32, I64), draw.shape())
    return draw.one_op([x], [out(I32)], BucketizeOptions(boundaries=boundaries))


@spec("REAL", "IMAG", "COMPLEX_ABS")
def complex_parts(draw: Draw) -> Case:
    source = draw.type(C64, C128)
    return draw.one_op([draw.tensor(source, draw.shape())], [out({C64: F32, C128: F64}.get(source, F32))])


@spec("BITCAST")
def bitcast(draw: Draw) -> Case:
    types = (F32, I32, U32, I8, U8, I16, U16, I64, F64)
    source, target = draw.pick(*types), draw.pick(*types)
    shape = list(draw.shape(0, 4))
    ratio = {F32: 4, I32: 4, U32: 4, I8: 1, U8: 1, I16: 2, U16: 2}
    if ratio.get(target, 8) > ratio.get(source, 8) and not draw.seldom(6):
        shape.append(ratio.get(target, 8) // ratio.get(source, 8))
    return draw.one_op([draw.tensor(source, shape, quantized=False)], [out(target)])
