"""The ordinary operators agree with TensorFlow's kernels in every type that these take."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from plugins.flex_ops.tests.agreement import Case, check_all, ops_of, refuses, type_of

from oplet import TensorType

Array = NDArray[Any]
FLOATS = ["float32", "float64", "float16", "bfloat16"]
COMPLEX = ["complex64", "complex128"]
SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
REAL = [*FLOATS, *SIGNED, *UNSIGNED]
NUMBERS = [*REAL, *COMPLEX]


def values(type: str, shape: Any, low: float = -4.0, high: float = 4.0, seed: int = 0) -> Array:
    """Random values; halves and floats of the same numbers."""
    rng = np.random.default_rng(seed)
    if type == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if type in COMPLEX:
        return (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(type)
    if type in FLOATS:
        import ml_dtypes

        return rng.uniform(low, high, shape).astype(ml_dtypes.bfloat16 if type == "bfloat16" else type)
    low = max(low, 0) if type.startswith("u") else low
    return rng.integers(int(low), int(high) + 1, shape).astype(type)


def case(op: str, inputs: list[Array], _tolerance: float | None = None, _constants: Any = (), **attributes: Any) -> Case:
    """A node whose attribute T is the first input's type."""
    return Case(op, inputs, {"T": type_of(inputs[0]), **attributes}, _constants, _tolerance)


#: Operators of one operand: the types, and the range of values.
UNARY = {
    "Abs": ([*FLOATS, *SIGNED], -4, 4),
    **{op: ([*FLOATS, *COMPLEX], -0.99, 0.99) for op in ("Acos", "Asin", "Atanh")},
    **{op: ([*FLOATS, *COMPLEX], -4, 4) for op in
       ("Asinh", "Atan", "Cos", "Cosh", "Exp", "Expm1", "Inv", "Reciprocal", "Sigmoid", "Sin", "Sinh", "Tanh")},
    "Tan": ([*FLOATS, *COMPLEX], -1.4, 1.4),
    "Acosh": ([*FLOATS, *COMPLEX], 1.1, 4),
    **{op: ([*FLOATS, *COMPLEX], 0.1, 4) for op in ("Log", "Log1p", "Rsqrt", "Sqrt")},
    **dict.fromkeys(("Ceil", "Floor", "IsFinite", "IsInf", "IsNan", "Elu", "Selu", "Softplus", "Softsign"), (FLOATS, -4, 4)),
    "Round": (FLOATS, -4, 4),
    "Rint": (["float32", "float64"], -4, 4),
    **{op: ([*FLOATS, *COMPLEX, *SIGNED], -4, 4) for op in ("Neg", "Sign")},
    "Square": (NUMBERS, -4, 4),
    **{op: ([*SIGNED, *UNSIGNED], -120, 120) for op in ("Invert", "PopulationCount")},
    **dict.fromkeys(("Relu", "Relu6"), (REAL, -9, 9)),
}  # fmt: skip

#: Operators of two operands.
BINARY = {
    "Add": [*FLOATS, *COMPLEX, *SIGNED, "uint8"],
    **dict.fromkeys(("AddV2", "Sub", "Mul"), NUMBERS),
    "Div": NUMBERS,
    **{op: [*FLOATS, *COMPLEX] for op in ("RealDiv", "DivNoNan", "MulNoNan", "Xdivy", "Xlogy", "Xlog1py")},
    **dict.fromkeys(("FloorDiv", "FloorMod", "TruncateDiv", "Maximum", "Minimum", "Less", "LessEqual", "Greater", "GreaterEqual"), REAL),
    **{op: ["float32", "float64", "int32", "int64"] for op in ("Mod", "TruncateMod")},
    **{op: [*NUMBERS, "bool"] for op in ("Equal", "NotEqual")},
    "Pow": [*FLOATS, *COMPLEX, *SIGNED],
    "SquaredDifference": [*FLOATS, *COMPLEX, "int32", "int64"],
    "Atan2": FLOATS,
    "NextAfter": ["float32", "float64"],
    **{op: [*SIGNED, *UNSIGNED] for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift")},
}  # fmt: skip

#: Where TensorFlow's own single precision is further from the truth.
LOOSE = {
    ("Elu", "float32"): 1e-5,
    ("Selu", "float32"): 1e-5,
    ("Softplus", "bfloat16"): 3e-2,
    ("Pow", "complex64"): 2e-5,
    ("Xlogy", "complex64"): 2e-5,
    ("Tan", "complex64"): 2e-5,
    ("Atan2", "float32"): 1e-5,
}


def unary_cases() -> Iterator[Case]:
    for op, (types, low, high) in UNARY.items():
        for type in types:
            for shape in ((3, 37), (), (0, 2)):
                tolerance = LOOSE.get((op, type))
                yield case(op, [values(type, shape, low, high)], tolerance)
                yield case(op, [values(type, shape, low, high, 1)], tolerance, [0])
    for type in FLOATS:
        yield case("LeakyRelu", [values(type, (5, 9))], alpha=0.3)
    yield case("LeakyRelu", [values("float32", (5, 9))])
    for flag in (values("bool", (3, 4)), values("bool", ())):
        yield Case("LogicalNot", [flag])
    odd = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-30, -1e30, 0.5, 1.5, 2.5, -0.5, -1.5])
    for op in ("Abs", "Atan", "Ceil", "Exp", "Floor", "IsFinite", "IsInf", "IsNan", "Neg", "Relu", "Relu6", "Rint", "Round",
               "Sign", "Square", "Tanh", "Sigmoid", "Elu", "Softplus", "Selu"):  # fmt: skip
        for type in ("float32", "float64"):
            yield case(op, [odd.astype(type)])


def binary_cases() -> Iterator[Case]:
    for op, types in BINARY.items():
        for type in types:
            low, high = (0.1, 4) if op in ("Pow", "Xlogy", "Xlog1py") and type in [*FLOATS, *COMPLEX] else (-9, 9)
            low = 0 if op == "Pow" and type in SIGNED else low
            high = 2 if op == "Pow" and type in SIGNED else high
            for left, right in (((3, 5), (3, 5)), ((2, 1, 4), (3, 1)), ((), (7,)), ((4, 1), ()), ((0, 3), (1, 3))):
                a, b = values(type, left, low, high), values(type, right, low, high, 5)
                if op in ("Div", "FloorDiv", "FloorMod", "TruncateDiv", "Mod", "TruncateMod"):
                    b = np.where(b == 0, np.ones((), b.dtype), b)
                yield case(op, [a, b], LOOSE.get((op, type)), [1] if right == () else [])
    for type in ("float64", "float16"):
        zeros = [np.array(pair, type) for pair in ([0, 0, 1, 2], [0, 3, 0, 5])]
        for op in ("DivNoNan", "MulNoNan", "Xdivy", "Xlogy", "Xlog1py"):
            yield case(op, zeros)
    for op in ("LogicalAnd", "LogicalOr"):
        yield Case(op, [values("bool", (3, 4)), values("bool", (4,), seed=1)])
    shifts = np.array([-5, 0, 3, 100], "int8")
    for op in ("LeftShift", "RightShift"):
        yield case(op, [np.array([-7, -7, 7, -100], "int8"), shifts])
    for flag in (True, False):
        for op in ("Equal", "NotEqual"):
            yield case(op, [values("int64", (3, 2), -1, 1), values("int64", (3, 2), -1, 1, 3)], incompatible_shape_error=flag)
    for op in ("Equal", "NotEqual"):
        yield case(op, [values("float64", (3,)), values("float64", (2,))], incompatible_shape_error=False)
        yield case(op, [np.array([b"a", b"b"], object), np.array([b"a"], object)])
    yield case("ApproximateEqual", [values("float64", (9,)), values("float64", (9,)) + 1e-3], tolerance=1.1e-3)


def special_cases() -> Iterator[Case]:
    grid = np.concatenate([np.linspace(-9, 9, 181), np.geomspace(1e-4, 40, 60)])
    positive = np.concatenate([np.geomspace(1e-3, 40, 90), np.linspace(0.1, 9, 40)])
    domains = {
        **{f"Bessel{name}": grid for name in ("I0", "I0e", "I1", "I1e", "J0", "J1")},
        **{f"Bessel{name}": positive for name in ("K0", "K0e", "K1", "K1e", "Y0", "Y1")},
        "Dawsn": grid, "Erf": grid, "Erfc": grid[np.abs(grid) < 6], "FresnelCos": grid, "FresnelSin": grid,
        "Erfinv": np.linspace(-0.999, 0.999, 300), "Ndtri": np.linspace(0.001, 0.999, 300), "Spence": positive,
        "Expint": positive, "Lgamma": positive, "Digamma": grid[np.abs(grid - np.round(grid)) > 0.05],
    }  # fmt: skip
    for op, points in domains.items():
        for type in FLOATS:
            if type in ("float16", "bfloat16") and (type not in TYPES[op] or op in ("BesselI0", "BesselI1")):
                continue
            # Single precision of Cephes and Eigen: some digits less than ours.
            tolerance = {"float32": 1e-4, "float64": 2e-9, "float16": 4e-3}.get(type)
            yield case(op, [values(type, ()).dtype.type(0) + points.astype(values(type, ()).dtype)], tolerance)
    rng = np.random.default_rng(1)
    a, x = np.exp(rng.uniform(-2, 3, 300)), np.exp(rng.uniform(-2, 3, 300))
    for type, tolerance in (("float32", 2e-4), ("float64", 1e-9)):
        for op in ("Igamma", "Igammac"):
            yield case(op, [a.astype(type), x.astype(type)], tolerance)
        yield case("Zeta", [(1 + a).astype(type), x.astype(type)], tolerance)
        yield case("Polygamma", [rng.integers(0, 4, 300).astype(type), x.astype(type)], tolerance)
        yield case("Betainc", [a.astype(type), x.astype(type), rng.uniform(0, 1, 300).astype(type)], tolerance)
        yield case("Betainc", [np.array(2.5, type), np.array(0.5, type), rng.uniform(0, 1, 30).astype(type)], tolerance)


#: The shorter floats that special functions take.
TYPES: dict[str, list[str]] = {
    **{f"Bessel{name}": ["float16"] for name in ("I0", "I0e", "I1", "I1e", "J0", "J1", "K0", "K0e", "K1", "K1e", "Y0", "Y1")},
    **{op: [] for op in ("Dawsn", "FresnelCos", "FresnelSin", "Erfinv", "Ndtri", "Spence", "Expint")},
    **{op: ["float16", "bfloat16"] for op in ("Erf", "Erfc")}, **{op: ["float16"] for op in ("Lgamma", "Digamma")},
}  # fmt: skip


def selection_cases() -> Iterator[Case]:
    for type in NUMBERS:
        a, b, c = (values(type, (3, 4), -9, 9, seed) for seed in range(3))
        yield Case("AddN", [a, b, c], {"T": type_of(a), "N": 3})
        yield Case("AddN", [a], {"T": type_of(a), "N": 1})
        if type not in [*COMPLEX, "uint32", "uint64"]:
            yield case("ClipByValue", [a, values(type, (), -2, 0), values(type, (), 1, 3)])
            yield case("ClipByValue", [a, b, c])
    for source in [*NUMBERS, "bool"]:
        for target in [*NUMBERS, "bool"]:
            low = 0 if target in UNSIGNED else -9
            given = values(source, (4, 5), low, 9)
            made = TensorType[target.upper()]
            yield Case("Cast", [given], {"SrcT": type_of(given), "DstT": made, "Truncate": False})
    for target in (TensorType.FLOAT16, TensorType.BFLOAT16):
        given = values("float32", (40,))
        yield Case("Cast", [given], {"SrcT": TensorType.FLOAT32, "DstT": target, "Truncate": True})


PRODUCTS = [*FLOATS, *COMPLEX, "int32", "int64"]


def product_cases() -> Iterator[Case]:
    for type in PRODUCTS:
        for left, right in ((False, False), (True, False), (False, True), (True, True)):
            a = values(type, (6, 3) if left else (3, 6))
            b = values(type, (4, 6) if right else (6, 4), seed=1)
            yield case("MatMul", [a, b], 2e-2 if type in ("float16", "bfloat16") else 2e-5, transpose_a=left, transpose_b=right)
            for op, batch, other in (("BatchMatMul", (2,), (2,)), ("BatchMatMulV2", (2, 1), (3,)), ("BatchMatMulV2", (), (3,))):
                x = values(type, (*batch, *((6, 3) if left else (3, 6))))
                y = values(type, (*other, *((4, 6) if right else (6, 4))), seed=1)
                yield case(op, [x, y], 2e-2 if type in ("float16", "bfloat16") else 2e-5, adj_x=left, adj_y=right)
    yield case("MatMul", [values("float64", (3, 0)), values("float64", (0, 2))], transpose_a=False, transpose_b=False)
    for a, b, out in (("int8", "int8", "int32"), ("uint8", "int8", "int32"), ("float64", "float64", "float64")):
        x, y = values(a, (2, 3, 6), -100, 100), values(b, (6, 4), -100, 100, 1)
        types = {"Ta": type_of(x), "Tb": type_of(y), "Tout": TensorType[out.upper()]}
        yield Case("BatchMatMulV3", [x, y], {**types, "adj_x": False, "adj_y": False})
    for type in NUMBERS:
        yield case("BiasAdd", [values(type, (2, 3, 4)), values(type, (4,), seed=2)])
        yield case("BiasAdd", [values(type, (2, 4, 3)), values(type, (4,), seed=2)], data_format="NCHW")
        yield case("BiasAddV1", [values(type, (3, 4)), values(type, (4,), seed=2)])


def reduction_cases() -> Iterator[Case]:
    for op in ("Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"):
        for type in NUMBERS if op in ("Sum", "Mean", "Prod", "EuclideanNorm") else REAL:
            source = values(type, (3, 4, 5), -2, 2)
            for number, axes in enumerate(([0], [1], [-1], [0, 2], [0, 1, 2], [])):
                for index in ("int32", "int64"):
                    given = np.array(axes, index)
                    tolerance = {"float16": 6e-3, "bfloat16": 3e-2}.get(type)
                    yield Case(op, [source, given], {"T": type_of(source), "Tidx": type_of(given), "keep_dims": number % 2 == 1},
                               [1] if number % 3 else [], tolerance)  # fmt: skip
    for op in ("All", "Any"):
        for axes in ([0], [1, 0], []):
            yield Case(op, [values("bool", (3, 4)), np.array(axes, "int32")], {"Tidx": TensorType.INT32, "keep_dims": False}, [1])
    for op, start in (("Max", "float64"), ("Min", "int32"), ("Sum", "float64"), ("Prod", "float64")):
        empty = values(start, (2, 0, 3))
        yield Case(op, [empty, np.array([1], "int32")], {"T": type_of(empty), "Tidx": TensorType.INT32, "keep_dims": False}, [1])
    for op in ("ArgMax", "ArgMin"):
        for type in [*REAL, "bool"]:
            source = values(type, (3, 4, 5), -50, 50)
            for axis in (0, -1):
                types = {
                    "T": type_of(source),
                    "Tidx": TensorType.INT32,
                    "output_type": TensorType.INT32 if axis else TensorType.INT64,
                }
                yield Case(op, [source, np.array(axis, "int32")], types, [1] if axis else [])
    for type in FLOATS:
        yield case("L2Loss", [values(type, (4, 5))], {"float16": 4e-3, "bfloat16": 3e-2}.get(type))


def scan_cases() -> Iterator[Case]:
    for op in ("Cumsum", "Cumprod", "CumulativeLogsumexp"):
        for type in FLOATS if op == "CumulativeLogsumexp" else NUMBERS:
            source = values(type, (3, 4, 5), -2, 2)
            for exclusive, reverse, axis in ((False, False, 0), (True, False, 1), (False, True, -1), (True, True, 2)):
                tolerance = {"float16": 1.5e-2, "bfloat16": 1e-1, "float32": 1e-5}.get(type)
                yield case(op, [source, np.array(axis, "int32")], tolerance, [1], Tidx=TensorType.INT32, exclusive=exclusive,
                           reverse=reverse)  # fmt: skip
    for type in FLOATS:
        for shape in ((7,), (3, 5), (2, 3, 4), (0, 3)):
            yield case("Softmax", [values(type, shape)], {"float16": 4e-3, "bfloat16": 3e-2}.get(type))
            yield case("LogSoftmax", [values(type, shape)], {"float16": 4e-3, "bfloat16": 3e-2}.get(type))
    for type in ("float32", "float16"):
        for radius in (0, 2, 9):
            yield case("LRN", [values(type, (2, 3, 4, 6))], 1e-5 if type == "float32" else 6e-3,
                       depth_radius=radius, bias=1.5, alpha=0.3, beta=0.7)  # fmt: skip


GROUPS = [unary_cases, binary_cases, special_cases, selection_cases, product_cases, reduction_cases, scan_cases]


@pytest.mark.sweep
@pytest.mark.parametrize("cases", GROUPS, ids=lambda cases: cases.__name__)
def test_the_operators_agree_with_tensorflow(cases: Any) -> None:
    """Every eleventh case of those below, so that the run stays short."""
    count, _ = check_all(itertools.islice(cases(), 0, None, 11))
    assert count > 5


@pytest.mark.sweep
@pytest.mark.parametrize("cases", GROUPS, ids=lambda cases: cases.__name__)
def test_the_operators_agree_with_tensorflow_in_all_types(cases: Any) -> None:
    count, _ = check_all(cases())
    assert count > 50


@pytest.mark.parametrize(
    ("refused", "sentence"),
    [
        (case("FloorDiv", [np.array([1, 2]), np.array([1, 0])]), "division by zero"),
        (case("Pow", [np.array([1, 2]), np.array([1, -1])]), "negative integer powers"),
        (case("MatMul", [values("float64", (2, 3)), values("float64", (4, 2))]), "inner dimensions"),
        (case("BatchMatMul", [values("float64", (2, 3, 3)), values("float64", (1, 3, 3))]), "batches"),
        (case("AddV2", [values("float64", (2, 3)), values("float64", (4, 2))]), "broadcastable"),
        (case("Sum", [values("float64", (2, 3)), np.array([0, 0], "int32")], Tidx=TensorType.INT32), "twice"),
        (case("Sum", [values("float64", (2, 3)), np.array([2], "int32")], Tidx=TensorType.INT32), "axis"),
        (case("BiasAdd", [values("float64", (2, 3)), values("float64", (2,))]), "one value for each of the 3 channels"),
    ],
    ids=lambda value: value.op if isinstance(value, Case) else "",
)
def test_what_tensorflow_refuses_is_refused_with_a_sentence(refused: Case, sentence: str) -> None:
    assert sentence in refuses(refused, [type_of(refused.inputs[0])])


def test_every_operator_of_the_family_is_compared() -> None:
    compared = {each.op for cases in GROUPS for each in cases()}
    elsewhere = {"Conv2D", "DepthwiseConv2dNative", *ops_of("arithmetic", "pooling", "normalization")}
    assert ops_of("arithmetic") - elsewhere == compared
