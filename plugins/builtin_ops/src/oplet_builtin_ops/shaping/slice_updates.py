"""DYNAMIC_UPDATE_SLICE and its StableHLO twin: a tensor with a block of it replaced, at a place known when invoked.

Numerics: tflite/kernels/dynamic_update_slice.cc
"""

from __future__ import annotations

from collections.abc import Sequence

from oplet import Tensor, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk, copier
from oplet.kernels.operands import ensure_same_type
from oplet_builtin_ops.stablehlo import INTEGERS

__all__ = ["clamped_starts", "ensure_scalar_starts", "ensure_update_fits", "update_thunk"]


def ensure_update_fits(operand: Tensor, update: Tensor) -> None:
    """Refuse an update that differs in type or rank, or is larger along some axis."""
    ensure_same_type(operand, update)
    ensure(
        update.ndim == operand.ndim and all(m <= n for m, n in zip(update.shape, operand.shape)),
        f"the update {update} must have the rank of {operand} and be no larger along any axis.",
    )


def ensure_scalar_starts(operand: Tensor, starts: Sequence[Tensor]) -> None:
    """Refuse start indices that are not one integer for each axis, all of one type, as StableHLO has them."""
    ensure(len(starts) == operand.ndim, f"{operand} needs {operand.ndim} start indices, one for each axis, not {len(starts)}.")
    for start in starts:
        ensure_type(start, *INTEGERS)
        ensure_same_type(starts[0], start)
        ensure(start.size == 1, f"the start index {start} must be one value, not {start.size}.")


def clamped_starts(starts: list[int], shape: tuple[int, ...], sizes: tuple[int, ...]) -> list[int]:
    """Where a block of the given sizes begins once it is moved to lie within the shape."""
    return [max(0, min(start, dim - size)) for start, dim, size in zip(starts, shape, sizes)]


def update_thunk(operand: Array, update: Array, starts: list[Array], output: Array) -> Thunk:
    """The thunk that copies `operand` with `update` in it.

    Args:
        starts: integer arrays that hold, one after the other, where the block begins along each axis.
    """
    shape, sizes = operand.shape, update.shape
    copy = copier(output, operand)

    def run() -> None:
        copy()
        begins = clamped_starts([value for array in starts for value in array.ravel().tolist()], shape, sizes)
        output[tuple(slice(begin, begin + size) for begin, size in zip(begins, sizes))] = update

    return run
