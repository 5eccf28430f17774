"""DYNAMIC_UPDATE_SLICE and STABLEHLO_DYNAMIC_UPDATE_SLICE: replace a block of a tensor at a run-time position.

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
    """Check that an update has the operand's type and rank, and is not larger along any axis.

    Raises:
        EnsureError: type, rank or size does not fit.
    """
    ensure_same_type(operand, update)
    ensure(
        update.ndim == operand.ndim and all(m <= n for m, n in zip(update.shape, operand.shape)),
        f"the update {update} must have the rank of {operand} and be no larger along any axis.",
    )


def ensure_scalar_starts(operand: Tensor, starts: Sequence[Tensor]) -> None:
    """Check that start indices are one integer for each axis, all of one type, as in StableHLO.

    Raises:
        EnsureError: there are more, fewer or other ones.
    """
    ensure(len(starts) == operand.ndim, f"{operand} needs {operand.ndim} start indices, one for each axis, not {len(starts)}.")
    for start in starts:
        ensure_type(start, *INTEGERS)
        ensure_same_type(starts[0], start)
        ensure(start.size == 1, f"the start index {start} must be one value, not {start.size}.")


def clamped_starts(starts: list[int], shape: tuple[int, ...], sizes: tuple[int, ...]) -> list[int]:
    """Return block starts clamped so that a block of these sizes lies inside the shape."""
    return [max(0, min(start, dim - size)) for start, dim, size in zip(starts, shape, sizes)]


def update_thunk(operand: Array, update: Array, starts: list[Array], output: Array) -> Thunk:
    """Return a function that copies `operand` to `output` and overwrites a block with `update`.

    Args:
        operand: the array to update.
        update: the new values of the block.
        starts: integer arrays that together have the block's start along each axis.
        output: receives the result.
    """
    shape, sizes = operand.shape, update.shape
    copy = copier(output, operand)

    def run() -> None:
        copy()
        begins = clamped_starts([value for array in starts for value in array.ravel().tolist()], shape, sizes)
        output[tuple(slice(begin, begin + size) for begin, size in zip(begins, sizes))] = update

    return run
