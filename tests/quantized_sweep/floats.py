"""Float operators of one input on values that are not finite, or at the ends of their type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from tests.differential.worker import Answer

from oplet.schema import options as o
from oplet.schema.table import Table

from .draft import Array, Draft, Net

FLOATS = ("float32", "float16")

_EDGES = (
    0.0, -0.0, np.nan, np.inf, -np.inf, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.0, -3.0, 6.0, -6.0, 10.0, -10.0, 17.0, -17.0, 30.0, -30.0,
    86.0, 87.3, 88.0, 88.7, 88.8, 89.0, 103.9, 104.1, 120.0, -86.0, -87.3, -88.0, -88.7, -88.8, -89.0, -103.9, -104.1, -120.0, 1e4, -1e4,
    65504.0, -65504.0, 6e-8, -6e-8, 6.1e-5, 1e-3, -1e-3, 1e-7, -1e-7, 1e-20, -1e-20, 1e-38, -1e-38, 1.2e-38, 1.4e-45, -1.4e-45, 1e-42,
    1e10, -1e10, 1e20, -1e20, 1e38, -1e38, 3.4028235e38, -3.4028235e38,
)  # fmt: skip


class Unary(NamedTuple):
    """A float operator.

    Attributes:
        options: its options.
        rows: whether it works along rows, each edge then has one of its own.
        finer: how far results may be apart besides the type's precision.
    """

    options: Table | None = None
    rows: bool = False
    finer: float = 0.0


UNARIES = {
    "ABS": Unary(), "NEG": Unary(), "RELU": Unary(), "RELU6": Unary(), "RELU_N1_TO_1": Unary(), "RELU_0_TO_1": Unary(), "CEIL": Unary(),
    "FLOOR": Unary(), "ROUND": Unary(), "SIGN": Unary(), "SQUARE": Unary(), "SQRT": Unary(), "RSQRT": Unary(), "EXP": Unary(), "LOG": Unary(),
    "SIN": Unary(finer=1e-6), "COS": Unary(finer=1e-6), "LOGISTIC": Unary(), "TANH": Unary(finer=1e-6), "ELU": Unary(finer=1e-6),
    "GELU": Unary(o.GeluOptions(), finer=3e-6), "GELU approximate": Unary(o.GeluOptions(approximate=True), finer=3e-6),
    "HARD_SWISH": Unary(), "LEAKY_RELU": Unary(o.LeakyReluOptions(alpha=0.3)),
    "SOFTMAX": Unary(o.SoftmaxOptions(beta=1.0), rows=True), "LOG_SOFTMAX": Unary(rows=True, finer=1e-5),
    "L2_NORMALIZATION": Unary(o.L2NormOptions(), rows=True),
}  # fmt: skip


def edges(type: str) -> Array:
    """The values."""
    with np.errstate(all="ignore"):
        return np.unique(np.array(_EDGES).astype(type).view("u2" if type == "float16" else "u4")).view(type)


def float_net(label: str, type: str) -> Net:
    """A net of one operator on all edges."""
    unary, op = UNARIES[label], label.split()[0]
    draft = Draft()
    values = edges(type)
    if unary.rows:
        values = np.stack([values, np.full(values.shape, 0.5, type), np.full(values.shape, -2, type)], -1)
    source = draft.fed_tensor(type, values.shape)
    output = draft.given(draft.tensor(type, values.shape))
    draft.node(op, [source], [output], unary.options)
    return draft.net(f"{label} {type}", op, [[values]])


def power_net(type: str) -> Net:
    """POW of all pairs of some edges."""
    draft = Draft()
    some = edges(type)[::2]
    x, y = (np.ascontiguousarray(values) for values in np.meshgrid(some, some))
    inputs = [draft.fed_tensor(type, x.shape) for _ in range(2)]
    draft.node("POW", inputs, [draft.given(draft.tensor(type, x.shape))], o.PowOptions())
    return draft.net(f"POW {type}", "POW", [[x, y]])


def _erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


#: The operators whose value is a formula of their inputs, in double precision.
EXACT: dict[str, Callable[..., Array]] = {
    "ABS": np.abs, "NEG": np.negative, "RELU": lambda x: np.maximum(x, 0), "RELU6": lambda x: np.clip(x, 0, 6),
    "RELU_N1_TO_1": lambda x: np.clip(x, -1, 1), "RELU_0_TO_1": lambda x: np.clip(x, 0, 1), "CEIL": np.ceil, "FLOOR": np.floor,
    "ROUND": np.rint, "SIGN": np.sign, "SQUARE": np.square, "SQRT": np.sqrt, "RSQRT": lambda x: 1 / np.sqrt(x), "EXP": np.exp,
    "LOG": np.log, "SIN": np.sin, "COS": np.cos, "LOGISTIC": lambda x: 1 / (1 + np.exp(-x)), "TANH": np.tanh,
    "ELU": lambda x: np.where(x < 0, np.expm1(x), x), "GELU": lambda x: x * 0.5 * (1 + _erf(x / math.sqrt(2))),
    "GELU approximate": lambda x: x * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "HARD_SWISH": lambda x: x * np.clip(x + 3, 0, 6) / 6, "LEAKY_RELU": lambda x: np.where(x < 0, 0.3 * x, x), "POW": np.power,
}  # fmt: skip


#: How far values may be apart from exact ones besides: the reference kernel rounds 1 + tanh to float16, and so does oplet.
COARSER = {"GELU approximate float16": 3e-4}


def float_difference(net: Net, ours: Answer, theirs: list[Answer], finer: float) -> str:
    """Which values are wrong: not exact where inputs are finite, and neither that nor one of LiteRT's elsewhere.

    LiteRT's values are no truth for finite inputs of float16, which differ with the processor: only XNNPACK runs them, and what it makes
    of numbers below the smallest normal one depends on whether it computes in halves or in single precision. For float32 they are one.
    """
    mine = ours.outputs[0][0]
    inputs, half = net.steps[0], mine.dtype == np.float16
    precision = 2e-3 if half else 2e-5
    formula = EXACT.get(net.name.removesuffix(f" {mine.dtype.name}"))
    # One unit of the smallest numbers is as near as they come.
    least = float(np.finfo(mine.dtype).smallest_subnormal) + max(finer, COARSER.get(net.name, 0.0))

    def near(other: Array) -> Array:
        apart = np.abs(mine.astype(np.float64) - other)
        with np.errstate(all="ignore"):
            rounded = other.astype(mine.dtype)
        return (mine == rounded) | (np.isnan(mine) & np.isnan(other)) | (apart <= precision * np.abs(other) + least)

    with np.errstate(all="ignore"):
        as_litert = np.any([near(answer.outputs[0][0].astype(np.float64)) for answer in theirs], 0)
        exact = None if formula is None else formula(*(values.astype(np.float64) for values in inputs))
        right = as_litert if exact is None else near(exact)
    if exact is not None:
        finite = np.logical_and.reduce([np.isfinite(values) for values in inputs])
        right |= as_litert & ~(finite & half)
    if right.all():
        return ""
    return (
        "; ".join(
            f"{net.name} of {[values[place] for values in inputs]}: {mine[place]}, exact {None if exact is None else exact[place]}, "
            f"LiteRT {[a.outputs[0][0][place] for a in theirs]}"
            for place in map(tuple, np.argwhere(~right)[:12])
        )
        + f" ({int((~right).sum())} of {inputs[0].size})"
    )
