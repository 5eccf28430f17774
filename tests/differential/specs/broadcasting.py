"""Operators that work element by element on several tensors, which broadcast where the op says so."""

from __future__ import annotations

from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import AddOptions, DivOptions, MulOptions, SubOptions
from oplet.schema.table import Table

from ..harness import Case
from ..strategies import BOOL, C64, F32, F64, I8, I16, I32, I64, STRING, U8, U16, U32, Draw, TensorType, like, out, spec

ACTIVATIONS = [ActivationFunctionType(code) for code in (0, 1, 2, 3)]


def binary(
    draw: Draw,
    *types: TensorType,
    low: float | None = None,
    high: float | None = None,
    second: tuple[float, float] | None = None,
    special: bool = False,
    same: bool = False,
    result: TensorType | None = None,
    options: Table | None = None,
    quantized: bool | None = None,
    symmetric: bool = False,
    rtol: float = 1e-5,
) -> Case:
    """Two tensors of one type in, one out.

    Args:
        second: the range of the second operand.
        same: the op requires one quantization for all.
        result: the output's type, the inputs' by default.
    """
    type = draw.type(*types)
    a, b = draw.broadcast(high=draw.pick(4, 4, 6))
    x = draw.tensor(type, a, low, high, special=special, quantized=quantized, symmetric=symmetric)
    y = draw.tensor(type, b, *(second or (low, high)), special=special, quantized=quantized, symmetric=symmetric)
    if same and x.scale is not None:
        y.scale, y.zero_point = x.scale, x.zero_point
    z = out(result) if result is not None else like(x) if same else draw.requantized(x, symmetric)
    return draw.one_op([x, y], [z], options, rtol=rtol)


@spec("ADD", weight=2)
def add(draw: Draw) -> Case:
    options = AddOptions(fused_activation_function=draw.pick(*ACTIVATIONS), pot_scale_int16=draw.flag())
    return binary(draw, F32, I8, U8, I16, I32, I64, options=options)


@spec("SUB", weight=2)
def sub(draw: Draw) -> Case:
    options = SubOptions(fused_activation_function=draw.pick(*ACTIVATIONS), pot_scale_int16=draw.flag())
    return binary(draw, F32, I8, U8, I16, I32, I64, options=options)


@spec("MUL", weight=2)
def mul(draw: Draw) -> Case:
    options = MulOptions(fused_activation_function=draw.pick(*ACTIVATIONS))
    return binary(draw, F32, I8, U8, I16, I32, I64, C64, U32, options=options)


@spec("DIV")
def div(draw: Draw) -> Case:
    options = DivOptions(fused_activation_function=draw.pick(*ACTIVATIONS))
    second = draw.pick((1.0, 100.0), (-50.0, -1.0)) if not draw.seldom() else None
    return binary(draw, F32, I32, U8, low=-100.0 if not draw.seldom(2) else None, high=100.0, second=second, options=options)


@spec("MAXIMUM", "MINIMUM")
def extremes(draw: Draw) -> Case:
    return binary(draw, F32, I8, U8, I16, I32, I64, same=not draw.seldom())


@spec("POW")
def power(draw: Draw) -> Case:
    return binary(draw, F32, I32, low=0, high=5, second=(0, 6) if draw.flag() else (0, 2))


@spec("FLOOR_DIV")
def floor_div(draw: Draw) -> Case:
    return binary(draw, F32, I32, I8, I16, second=draw.pick((1, 20), (-20, -1), None), quantized=False)


@spec("FLOOR_MOD")
def floor_mod(draw: Draw) -> Case:
    return binary(draw, F32, I32, I64, I8, I16, second=draw.pick((1, 20), (-20, -1), None), quantized=False)


@spec("SQUARED_DIFFERENCE")
def squared_difference(draw: Draw) -> Case:
    return binary(draw, F32, I32, I8)


@spec("EQUAL", "NOT_EQUAL")
def equality(draw: Draw) -> Case:
    return binary(draw, F32, I32, I64, I8, U8, I16, BOOL, STRING, special=True, result=BOOL, same=draw.flag())


@spec("LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
def order(draw: Draw) -> Case:
    return binary(draw, F32, I32, I64, I8, U8, I16, special=True, result=BOOL, same=draw.flag())


@spec("LOGICAL_AND", "LOGICAL_OR")
def logical(draw: Draw) -> Case:
    return binary(draw, BOOL)


@spec("ATAN2")
def atan2(draw: Draw) -> Case:
    return _alike(draw, F32, F64)  # LiteRT does not check the shapes and reads beyond the shorter one


@spec("BITWISE_XOR")
def bitwise_xor(draw: Draw) -> Case:
    return binary(draw, I8, U8, I16, U16, I32, U32, quantized=False)


@spec("RIGHT_SHIFT")
def right_shift(draw: Draw) -> Case:
    return binary(draw, I8, U8, I16, U16, I32, U32, second=(0, 7), quantized=False)


@spec("STABLEHLO_ADD", "STABLEHLO_MULTIPLY", "STABLEHLO_MAXIMUM", "STABLEHLO_MINIMUM")
def stablehlo_arithmetic(draw: Draw) -> Case:
    return _alike(draw, F32, I32, I64, I8, U8, I16)


@spec("STABLEHLO_AND")
def stablehlo_and(draw: Draw) -> Case:
    return _alike(draw, BOOL, I32, I8, I16, I64, U8, U32)


@spec("STABLEHLO_SHIFT_LEFT")
def stablehlo_shift_left(draw: Draw) -> Case:
    return _alike(draw, I32, I8, I16, I64, second=(0, 7))


def _alike(draw: Draw, *types: TensorType, second: tuple[int, int] | None = None) -> Case:
    """StableHLO's operators do not broadcast."""
    type, shape = draw.type(*types), draw.shape()
    x = draw.tensor(type, shape, quantized=False)
    return draw.one_op([x, draw.tensor(type, shape, *(second or ()), quantized=False)], [like(x, shape)])


@spec("ADD_N")
def add_n(draw: Draw) -> Case:
    type, shape = draw.type(F32, I32), draw.shape()
    return draw.one_op([draw.tensor(type, shape) for _ in range(draw.integer(1, 4))], [out(type)])


@spec("PRELU")
def prelu(draw: Draw) -> Case:
    type = draw.type(F32, I8, U8)
    a, b = draw.broadcast()
    x, alpha = draw.tensor(type, a), draw.tensor(type, b, constant=draw.flag())
    return draw.one_op([x, alpha], [draw.requantized(x)])


@spec("SELECT")
def select(draw: Draw) -> Case:
    type, shape = draw.type(F32, I8, U8, I16, I32, I64, BOOL), draw.shape()
    condition = draw.pick(shape, shape[:1], ()) if not draw.seldom() else draw.shape()
    x = draw.tensor(type, shape)
    y = draw.tensor(type, shape)
    y.scale, y.zero_point = x.scale, x.zero_point
    return draw.one_op([draw.tensor(BOOL, condition), x, y], [like(x)])


@spec("SELECT_V2")
def select_v2(draw: Draw) -> Case:
    type = draw.type(F32, I8, U8, I16, I32, I64, BOOL, U32)
    c, a, b = draw.broadcast(3, high=draw.pick(4, 4, 5))
    x, y = draw.tensor(type, a), draw.tensor(type, b)
    y.scale, y.zero_point = x.scale, x.zero_point
    return draw.one_op([draw.tensor(BOOL, c), x, y], [like(x)])


@spec("BROADCAST_ARGS")
def broadcast_args(draw: Draw) -> Case:
    a, b = draw.broadcast(high=5)
    type = draw.type(I32, I64)
    return draw.one_op([draw.given(a, type), draw.given(b, type)], [out(type)])


@spec("BROADCAST_TO")
def broadcast_to(draw: Draw) -> Case:
    small, whole = draw.broadcast(high=draw.pick(5, 8), largest=3)
    type = draw.type(F32, I8, U8, I16, I32, I64, BOOL, U32)
    x = draw.tensor(type, small)
    return draw.one_op([x, draw.given(whole, draw.pick(I32, I64))], [like(x)])
