"""Inserts checkpoints for time limits into lists of numpy calls: calls are grouped into parts of bounded work."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from oplet import checkpoint
from oplet.kernels.arrays import Array

__all__ = ["WORK", "Call", "call_work", "cut_product", "run_watched", "watched_parts"]


#: A function and its arguments.
Call = tuple[Callable[..., Any], tuple[Any, ...]]

#: The values that calls may process between two checkpoints; numpy takes about 0.1 to 10 ms for them.
WORK = 1 << 20
#: The most calls between two checkpoints, however little work they have.
_CALLS = 64
#: The multiply-adds of BLAS in the time of one value of an elementwise call; without BLAS numpy does one.
_BLAS = 16
#: The most work of one matrix product, which BLAS computes in a few tenths of a second; larger ones are divided.
_CUT = 1 << 28


def call_work(call: Call) -> int:
    """Estimate the number of values that a numpy call processes; if unknown, the size of a whole part of `watched_parts`."""
    function, arguments = call
    if function is np.matmul:
        return _product_work(*arguments[:2])
    work = 0
    for argument in arguments:
        if type(argument) is np.ndarray and argument.size > work:
            work = argument.size
    if not work:
        owner = getattr(function, "__self__", None)  # a method of an array, such as fill
        work = owner.size if type(owner) is np.ndarray else 0 if arguments else WORK
    return work


def _product_work(left: Array, right: Array) -> int:
    if right.ndim < 2:
        return int(left.size)
    count: int = left.size * right.shape[-1]
    if right.ndim > left.ndim or (right.ndim > 2 and left.shape[:-2] != right.shape[:-2]):
        batches = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
        count = math.prod((*batches, *left.shape[-2:], right.shape[-1]))
    in_blas = left.dtype.char in "fdFD" and right.dtype == left.dtype
    return count // _BLAS if in_blas else count


def cut_product(left: Array, right: Array, target: Array) -> list[Call]:
    """Return the numpy calls of a matrix product: several if one would run too long before the run can be cancelled."""
    work = _product_work(left, right)
    pieces = -(-work // _CUT)
    if pieces < 2 or right.ndim < 2 or left.ndim < 2:
        return [(np.matmul, (left, right, target))]
    rank = target.ndim
    axis = next((i for i in range(rank - 2) if target.shape[i] > 1), rank - 2)
    if axis == rank - 2 and target.shape[-2] < target.shape[-1]:
        axis = rank - 1
    length = target.shape[axis]
    step = -(-length // pieces)
    calls: list[Call] = []
    for start in range(0, length, step):
        part = slice(start, start + step)
        at = (slice(None),) * axis + (part,)
        if axis == rank - 1:
            calls += _product(left, right[..., part], target[at], length > step)
        elif axis == rank - 2:
            calls += _product(left[..., part, :], right, target[at], length > step)
        else:
            calls += _product(_batch(left, axis, rank, part), _batch(right, axis, rank, part), target[at], length > step)
    return calls


def _product(left: Array, right: Array, target: Array, is_smaller: bool) -> list[Call]:
    return cut_product(left, right, target) if is_smaller else [(np.matmul, (left, right, target))]


def _batch(matrices: Array, axis: int, rank: int, part: slice) -> Array:
    """Return a slice of `matrices` along a batch axis of the product; operands that broadcast along it are returned whole."""
    own = axis - (rank - matrices.ndim)
    return matrices if own < 0 or matrices.shape[own] == 1 else matrices[(slice(None),) * own + (part,)]


def watched_parts(calls: Iterable[Call]) -> Iterator[tuple[Call, ...]]:
    """Group numpy calls into parts of bounded work, between which the run can be cancelled."""
    part: list[Call] = []
    left = WORK
    for call in calls:
        work = call_work(call)
        if work > _CUT and call[0] is np.matmul:
            if part:
                yield tuple(part)
            yield from ((piece,) for piece in cut_product(*call[1]))
            part, left = [], WORK
            continue
        part.append(call)
        left -= work
        if left <= 0 or len(part) == _CALLS:
            yield tuple(part)
            part, left = [], WORK
    if part:
        yield tuple(part)


def run_watched(parts: Iterable[tuple[Call, ...]]) -> None:
    """Execute numpy calls part by part; before each part, check whether the run was cancelled."""
    for part in parts:
        checkpoint()
        for function, arguments in part:
            function(*arguments)
