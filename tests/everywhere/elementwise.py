"""Operators that work value by value."""

from __future__ import annotations

from oplet import TensorType as T
from oplet.schema import options as o
from oplet.schema import stablehlo_options as s

from .kit import CAST, F32, Kind, Kit, recipe

_SAME = [
    "ABS",
    "CEIL",
    "COS",
    "ELU",
    "EXP",
    "FLOOR",
    "GELU",
    "HARD_SWISH",
    "L2_NORMALIZATION",
    "LEAKY_RELU",
    "LOG",
    "LOGICAL_NOT",
    "LOGISTIC",
    "LOG_SOFTMAX",
    "NEG",
    "RELU",
    "RELU6",
    "RELU_0_TO_1",
    "RELU_N1_TO_1",
    "ROUND",
    "RSQRT",
    "SIGN",
    "SIN",
    "SOFTMAX",
    "SQRT",
    "SQUARE",
    "TANH",
    "ZEROS_LIKE",
    "FAKE_QUANT",
    "STABLEHLO_ABS",
    "STABLEHLO_CBRT",
    "STABLEHLO_COSINE",
    "STABLEHLO_EXPONENTIAL",
    "STABLEHLO_FLOOR",
    "STABLEHLO_LOG",
    "STABLEHLO_LOGISTIC",
    "STABLEHLO_NEGATE",
    "STABLEHLO_RSQRT",
    "STABLEHLO_TANH",
    "RESHAPE",
    "SQUEEZE",
]
_OPTIONS = {
    "LEAKY_RELU": lambda: o.LeakyReluOptions(alpha=0.3),
    "SOFTMAX": lambda: o.SoftmaxOptions(beta=1.0),
    "L2_NORMALIZATION": lambda: o.L2NormOptions(),
    "FAKE_QUANT": lambda: o.FakeQuantOptions(min=-1.0, max=2.0, num_bits=8),
}  # fmt: skip


@recipe(*(op for op in _SAME if op not in ("RESHAPE", "SQUEEZE")))
def same(kit: Kit) -> None:
    low = 0.1 if kit.op in ("LOG", "SQRT", "RSQRT", "STABLEHLO_LOG", "STABLEHLO_RSQRT") else -3.0
    make = _OPTIONS.get(kit.op)
    for shape in kit.shapes():
        y = kit.out(shape=shape)
        if kit.kind.quantized and kit.op in ("SOFTMAX", "LOGISTIC", "TANH", "LOG_SOFTMAX", "L2_NORMALIZATION"):
            fixed = {
                "SOFTMAX": (1 / 256, -128), "LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0), "LOG_SOFTMAX": (16 / 256, 127),
                "L2_NORMALIZATION": (1 / 128, 0),
            }[kit.op]  # fmt: skip
            if kit.kind.type is T.INT16:
                fixed = (1 / 32768, 0)
            y.scale, y.zero_point = fixed[0], fixed[1] + (128 if kit.kind.type is T.UINT8 else 0)
        kit.add([kit.arg(shape, low=low)], [y], make() if make else None)
    if kit.kind.quantized and kit.kind.type is not T.INT4:
        for axis, made in ((0, True), (2, False)):
            x, y = kit.arg((2, 3, 4)), kit.out(shape=(2, 3, 4))
            sliced = y if made else x
            sliced.scale, sliced.zero_point, sliced.axis = (
                [0.05] * sliced.shape[axis],
                [kit.kind.zero_point or 0] * sliced.shape[axis],
                axis,
            )
            kit.add([x], [y], make() if make else None, f"{'to' if made else 'of'} slices")
        for scale, zero in ((1 / 64, 5), (1.0, 0)):
            y = kit.out(shape=(2, 3, 4))
            y.scale, y.zero_point = scale, zero
            kit.add([kit.arg((2, 3, 4))], [y], make() if make else None, f"in steps of {scale}")
    if kit.op == "GELU":
        kit.add([kit.arg((2, 3, 4))], [kit.out(shape=(2, 3, 4))], o.GeluOptions(approximate=True), "approximate")


@recipe("LOCAL_RESPONSE_NORMALIZATION")
def local_response(kit: Kit) -> None:
    options = o.LocalResponseNormalizationOptions(radius=2, bias=1.0, alpha=0.5, beta=0.5)
    for shape in kit.shapes(usual=(1, 2, 2, 4)):
        kit.add([kit.arg(shape)], [kit.out(shape=shape)], options)


@recipe("COMPLEX_ABS", "REAL", "IMAG")
def complex_parts(kit: Kit) -> None:
    result = T.FLOAT64 if kit.kind.type is T.COMPLEX128 else F32
    for shape in kit.shapes():
        kit.add([kit.arg(shape)], [kit.out(result, shape)])


_PAIRS = {
    "ADD": o.AddOptions, "SUB": o.SubOptions, "MUL": o.MulOptions, "DIV": o.DivOptions, "FLOOR_DIV": None, "FLOOR_MOD": None,
    "MAXIMUM": None, "MINIMUM": None, "POW": None, "SQUARED_DIFFERENCE": None, "ATAN2": None, "BITWISE_XOR": None,
    "RIGHT_SHIFT": None, "LOGICAL_AND": None, "LOGICAL_OR": None, "PRELU": None,
}  # fmt: skip


@recipe(*_PAIRS)
def pairs(kit: Kit) -> None:
    low = 1.0 if kit.op in ("DIV", "FLOOR_DIV", "FLOOR_MOD", "POW", "RIGHT_SHIFT") else -3.0
    make = _PAIRS[kit.op]
    for shape in kit.shapes():
        x, y = kit.arg(shape), kit.arg(shape, low=low)
        kit.add([x, y], [kit.out(shape=shape)], make() if make else None)
        kit.add([kit.arg(shape), kit.arg((), low=low)], [kit.out(shape=shape)], make() if make else None, f"{kit.label} scalar")
        if shape:
            row = kit.constant((*[1] * (len(shape) - 1), shape[-1]), low=low)
            kit.add([kit.arg(shape), row], [kit.out(shape=shape)], make() if make else None, f"{kit.label} constant row")
            for label, left, right in (("column", shape, (*shape[:-1], 1)), ("from a column", (*shape[:-1], 1), shape)):
                y, alpha = kit.arg(right, low=low), kit.constant(right, low=low)
                second = alpha if kit.op == "PRELU" and left != shape else y
                kit.add([kit.arg(left), second], [kit.out(shape=shape)], make() if make else None, f"{kit.label} {label}")
    if make:
        x, y = kit.arg((2, 3)), kit.arg((2, 3), low=low)
        for code in (1, 2, 3, 4, 5):
            kit.add([x, y], [kit.out(shape=(2, 3))], make(fused_activation_function=code), f"activation {code}")


@recipe("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
def comparisons(kit: Kit) -> None:
    for shape in kit.shapes():
        kit.add([kit.arg(shape), kit.arg(shape)], [kit.out(T.BOOL, shape)])
        kit.add([kit.arg(shape), kit.arg(())], [kit.out(T.BOOL, shape)], label=f"{kit.label} scalar")
        if shape:
            kit.add([kit.arg(shape), kit.arg((*shape[:-1], 1))], [kit.out(T.BOOL, shape)], label=f"{kit.label} column")


@recipe(
    *(
        f"STABLEHLO_{op}"
        for op in ["ADD", "SUBTRACT", "MULTIPLY", "DIVIDE", "MAXIMUM", "MINIMUM", "POWER", "REMAINDER", "AND", "OR", "SHIFT_LEFT"]
    )
)
def stablehlo_pairs(kit: Kit) -> None:
    low = 1.0 if kit.op.rpartition("_")[2] in ("DIVIDE", "POWER", "REMAINDER", "LEFT") else -3.0
    for shape in kit.shapes():
        kit.add([kit.arg(shape), kit.arg(shape, low=low)], [kit.out(shape=shape)])


@recipe("STABLEHLO_COMPARE")
def stablehlo_compare(kit: Kit) -> None:
    for shape in kit.shapes():
        kit.add([kit.arg(shape), kit.arg(shape)], [kit.out(T.BOOL, shape)], s.StablehloCompareOptions(comparison_direction=2))


@recipe("STABLEHLO_CLAMP")
def stablehlo_clamp(kit: Kit) -> None:
    for shape in kit.shapes():
        kit.add([kit.arg((), low=-1, high=0), kit.arg(shape), kit.arg((), low=1, high=2)], [kit.out(shape=shape)])


@recipe("STABLEHLO_SELECT", "SELECT", "SELECT_V2")
def select(kit: Kit) -> None:
    for shape in kit.shapes():
        condition = kit.arg(shape, Kind(T.BOOL))
        kit.add([condition, kit.arg(shape), kit.arg(shape)], [kit.out(shape=shape)])
        kit.add(
            [kit.arg((), Kind(T.BOOL)), kit.arg(shape), kit.arg(shape)],
            [kit.out(shape=shape)],
            label=f"{kit.label} one condition",
        )
        if shape and kit.op == "SELECT_V2":
            kit.add([condition, kit.arg(shape[-1:]), kit.arg(())], [kit.out(shape=shape)], label=f"{kit.label} broadcast")
        if shape and kit.op == "SELECT":
            kit.add(
                [kit.arg(shape[:1], Kind(T.BOOL)), kit.arg(shape), kit.arg(shape)],
                [kit.out(shape=shape)],
                label=f"{kit.label} rows",
            )


@recipe("ADD_N")
def add_n(kit: Kit) -> None:
    for shape in kit.shapes():
        kit.add([kit.arg(shape) for _ in range(3)], [kit.out(shape=shape)], o.AddNOptions())


@recipe("CAST", "STABLEHLO_CONVERT", "BITCAST", "QUANTIZE", "DEQUANTIZE")
def conversions(kit: Kit) -> None:
    from .kit import KINDS

    for kind in KINDS:
        if kit.op in ("CAST", "STABLEHLO_CONVERT", "BITCAST") and (kind.quantized or kit.kind.quantized):
            continue
        if (kit.op == "QUANTIZE" and not kind.quantized) or (kit.op == "DEQUANTIZE" and kind.quantized):
            continue
        low = 0.0 if kind.type in (T.UINT8, T.UINT16, T.UINT32, T.UINT64) and not kind.quantized else -3.0
        shape = (2, 3, 8)
        if kit.op == "CAST" and (kit.kind.type in CAST or kind.type in CAST):
            continue  # what CAST makes of these is how they are fed and read
        kit.add([kit.arg(shape, low=low)], [kit.out(kind, shape)], label=f"to {kind}")
    if kit.op != "BITCAST":
        target = Kind(T.INT8, True) if kit.op == "QUANTIZE" else Kind(F32)
        for shape in kit.shapes():
            kit.add([kit.arg(shape)], [kit.out(target, shape)], label=f"shaped {kit.label}")


@recipe("BUCKETIZE")
def bucketize(kit: Kit) -> None:
    for shape in kit.shapes():
        kit.add([kit.arg(shape)], [kit.out(T.INT32, shape)], o.BucketizeOptions(boundaries=[-1.0, 0.5, 2.0]))
