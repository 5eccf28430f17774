"""Reductions and cumulative reductions (scans) over the axes that the second input names.

Numerics: tensorflow/core/kernels/reduction_ops_*.cc and scan_ops.cc.

Halves are added up in single precision; integers wrap around, and means of integers are truncated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_ints, resolve_axis
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.operator import Step, operator, writing
from oplet_flex_ops.numerics.types import FLOATS, INDEX, NUMBERS, REAL
from oplet_flex_ops.signature import Types

#: Writes the reduction over some axes, which the target keeps with size 1.
_Reduce = Callable[[Array, "tuple[int, ...]", Array], Any]
_TRUTH = "BOOL, Tidx=INT32! -> BOOL"


def _axes(values: Sequence[int], rank: int) -> tuple[int, ...]:
    axes = tuple(resolve_axis(axis, rank, "a reduction axis") for axis in values)
    ensure(len(set(axes)) == len(axes), f"the reduction axes {list(values)} name one axis twice.")
    return axes


def _reduction(reduce: _Reduce, text: str = "T, Tidx=INT32! -> T", **types: Any) -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        source = node.inputs[0]
        axes = _axes(read_ints(node.inputs[1]), source.ndim)
        keep = attributes.flag("keep_dims", default=False)
        return [tuple(1 if i in axes else size for i, size in enumerate(source.shape) if keep or i not in axes)]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        source, [output] = inputs[0], outputs
        axes = _axes(inputs[1].ravel().tolist(), source.ndim)
        kept = tuple(1 if i in axes else size for i, size in enumerate(source.shape))
        return partial(reduce, source, axes, output.reshape(kept))

    return operator(text, shapes, **types, Tidx=INDEX)(formula)


def _sum(source: Array, axes: tuple[int, ...], target: Array) -> None:
    np.add.reduce(source, axes, target.dtype, out=target, keepdims=True)


def _prod(source: Array, axes: tuple[int, ...], target: Array) -> None:
    np.multiply.reduce(source, axes, target.dtype, out=target, keepdims=True)


def _mean(source: Array, axes: tuple[int, ...], target: Array) -> None:
    count = math.prod(source.shape[axis] for axis in axes)
    _sum(source, axes, target)
    if target.dtype.kind in "iu":
        # Towards zero. The sum wraps around in the type itself, and so does the count.
        divisor = np.array(count).astype(target.dtype)
        if divisor:
            np.copyto(target, (target - np.fmod(target, divisor)) // divisor)
    else:
        np.divide(target, np.array(count, target.dtype), target)


def _lowest(dtype: np.dtype[Any]) -> Any:
    return np.array(-np.inf, dtype) if dtype.kind == "f" else np.iinfo(dtype).min


def _highest(dtype: np.dtype[Any]) -> Any:
    return np.array(np.inf, dtype) if dtype.kind == "f" else np.iinfo(dtype).max


def _max(source: Array, axes: tuple[int, ...], target: Array) -> None:
    np.maximum.reduce(source, axes, out=target, keepdims=True, initial=_lowest(source.dtype))


def _min(source: Array, axes: tuple[int, ...], target: Array) -> None:
    np.minimum.reduce(source, axes, out=target, keepdims=True, initial=_highest(source.dtype))


def _norm(source: Array, axes: tuple[int, ...], target: Array) -> None:
    squares = (source * np.conj(source)).astype(source.dtype, copy=False)
    _sum(squares, axes, target)
    np.copyto(target, np.sqrt(target), "unsafe")


def _all(source: Array, axes: tuple[int, ...], target: Array) -> None:
    np.logical_and.reduce(source, axes, out=target, keepdims=True)


def _any(source: Array, axes: tuple[int, ...], target: Array) -> None:
    np.logical_or.reduce(source, axes, out=target, keepdims=True)


@operator("T -> T", lambda node, attributes: [()], T=FLOATS)
@writing
def L2LOSS(source: Array, output: Array) -> None:
    """Compute half the sum of squares, a scalar."""
    values = source.reshape(-1)
    output[...] = np.dot(values, values) / 2


def _position(function: Callable[..., Any], results: Types) -> Registration:
    """Build ArgMax or ArgMin along the axis that the second input names."""

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        source, named = node.inputs
        ensure(named.size == 1, f"{named} names {named.size} axes; it must name one.")
        ensure(source.ndim > 0, f"{source} has no axis to search along.")
        axis = resolve_axis(read_ints(named)[0], source.ndim)
        ensure(source.shape[axis] > 0, f"axis {axis} of {source} is empty.")
        return [source.shape[:axis] + source.shape[axis + 1 :]]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        source, axis = inputs[0], inputs[1].item()
        return lambda: np.copyto(outputs[0], function(source, axis), "unsafe")

    text, axes = "T, Tidx=INT32! -> output_type=INT64", (*INDEX, TensorType.INT16)
    return operator(text, shapes, T=(*REAL, TensorType.BOOL), Tidx=axes, output_type=results)(formula)


def _scan(ufunc: np.ufunc, types: Types, start: float) -> Registration:
    """Build a cumulative reduction along an axis.

    The attribute `exclusive` leaves out the element itself, so that `start` comes first; `reverse` starts at the end.
    """

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        source, axis = node.inputs
        ensure(axis.size == 1 and axis.ndim == 0, f"{axis} is the axis; it must be a scalar.")
        ensure(source.ndim >= 1, f"{source} has no axis to go along.")
        return [source.shape]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        (source, axis), [output] = inputs, outputs
        exclusive, reverse = attributes.flag("exclusive", default=False), attributes.flag("reverse", default=False)

        def run() -> None:
            along = resolve_axis(axis.item(), source.ndim)
            given, made = np.moveaxis(source, along, 0), np.moveaxis(output, along, 0)
            if reverse:
                given, made = given[::-1], made[::-1]
            if exclusive:
                made[:1] = start
                given, made = given[:-1], made[1:]
            if len(given):
                ufunc.accumulate(given, 0, output.dtype, made)

        return run

    return operator("T, Tidx=INT32 -> T", shapes, T=types, Tidx=INDEX)(formula)


ALL = _reduction(_all, _TRUTH)
ANY = _reduction(_any, _TRUTH)
ARGMAX = _position(np.argmax, (*INDEX, TensorType.INT16, TensorType.UINT16))
ARGMIN = _position(np.argmin, INDEX)
CUMPROD = _scan(np.multiply, NUMBERS, 1)
CUMSUM = _scan(np.add, NUMBERS, 0)
CUMULATIVELOGSUMEXP = _scan(np.logaddexp, FLOATS, -np.inf)
EUCLIDEANNORM = _reduction(_norm, T=NUMBERS)
MAX = _reduction(_max, T=REAL)
MEAN = _reduction(_mean, T=NUMBERS)
MIN = _reduction(_min, T=REAL)
PROD = _reduction(_prod, T=NUMBERS)
SUM = _reduction(_sum, T=NUMBERS)
