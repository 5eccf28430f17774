"""Operators that fold axes, sort of: sums, means, extremes, running sums and norms."""

from __future__ import annotations

import numpy as np

from oplet.schema.options import CumsumOptions, L2NormOptions, LocalResponseNormalizationOptions, ReducerOptions

from ..harness import Case
from ..strategies import BOOL, F32, I8, I16, I32, I64, U8, Arg, Draw, TensorType, like, spec


def _reduce(draw: Draw, *types: TensorType, low: float | None = None, high: float | None = None, own: bool = False) -> Case:
    x = draw.tensor(draw.type(*types), draw.shape(0, 5, 4), low, high)
    rank = len(x.shape)
    axes = [draw.axis(rank) for _ in range(draw.integer(0, max(rank, 1)))] if rank else []
    axis = draw.given(np.array(axes, np.int32) if len(axes) != 1 or draw.flag() else np.int32(axes[0]))
    y = draw.requantized(x) if own and draw.flag() else like(x)
    return draw.one_op([x, axis], [y], ReducerOptions(keep_dims=draw.flag()), rtol=1e-4)


@spec("SUM", "MEAN", weight=2)
def sums(draw: Draw) -> Case:
    return _reduce(draw, F32, I8, U8, I16, I32, I64, own=True)


@spec("REDUCE_PROD")
def product(draw: Draw) -> Case:
    if draw.flag():
        return _reduce(draw, F32, I32, I64, low=1, high=3)
    return _reduce(draw, I8, I16, F32, own=True)


@spec("REDUCE_MAX", "REDUCE_MIN")
def extremes(draw: Draw) -> Case:
    return _reduce(draw, F32, I8, U8, I16, I32, I64)


@spec("REDUCE_ANY", "REDUCE_ALL")
def logical(draw: Draw) -> Case:
    return _reduce(draw, BOOL)


@spec("CUMSUM")
def cumsum(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I32, I64), draw.shape(1, 4))
    options = CumsumOptions(exclusive=draw.flag(), reverse=draw.flag())
    return draw.one_op([x, draw.given(draw.axis(len(x.shape)))], [like(x)], options)


@spec("L2_NORMALIZATION")
def l2_normalization(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32, I8, U8), draw.shape(1, 4))
    y = like(x)
    if x.scale is not None and not draw.seldom():
        y = Arg(x.type, (), scale=1 / 128, zero_point=0 if x.type is I8 else 128)
    return draw.one_op([x], [y], L2NormOptions())


@spec("LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(draw: Draw) -> Case:
    x = draw.tensor(draw.type(F32), draw.dims(4))
    options = LocalResponseNormalizationOptions(
        radius=draw.integer(0, 6), bias=draw.pick(1.0, 0.5, 9.0), alpha=draw.pick(1.0, 0.1, 4.0), beta=draw.pick(1.0, 0.5, 0.75)
    )
    return draw.one_op([x], [like(x)], options)
