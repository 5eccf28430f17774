"""Float operators of one input on values that are not finite, or at the ends of their type."""

from __future__ import annotations

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


#: Operators of halves that XNNPACK, which alone runs them, approximates: no number becomes one, and small numbers the smallest normal one.
APPROXIMATE = frozenset({"RELU", "RELU6", "RELU_N1_TO_1", "EXP", "LOG"})


def float_difference(net: Net, ours: Answer, theirs: list[Answer], finer: float) -> str:
    """Which values are equal to none of LiteRT's."""
    mine = ours.outputs[0][0]
    approximate = mine.dtype == np.float16 and net.op in APPROXIMATE
    precision = 2e-5 if mine.dtype == np.float32 else 1e-2 if approximate else 2e-3
    near = np.zeros(mine.shape, bool)
    with np.errstate(all="ignore"):
        for answer in theirs:
            other = answer.outputs[0][0].astype(np.float64)
            apart = np.abs(mine.astype(np.float64) - other)
            # One unit of the smallest numbers is as near as they come.
            least = float(np.finfo(mine.dtype).smallest_normal if approximate else np.finfo(mine.dtype).smallest_subnormal)
            near |= (
                (mine == other)
                | (np.isnan(mine) & np.isnan(other))
                | (apart <= precision * np.abs(other) + finer * (finer > 0) + least)
            )
    if approximate:
        near |= ~np.isfinite(net.steps[0][0])
    if near.all():
        return ""
    source = net.steps[0][0]
    return (
        "; ".join(
            f"{net.name} of {[values[place] for values in net.steps[0]]}: {mine[place]}, LiteRT {[a.outputs[0][0][place] for a in theirs]}"
            for place in map(tuple, np.argwhere(~near)[:12])
        )
        + f" ({int((~near).sum())} of {source.size})"
    )
