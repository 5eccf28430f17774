"""numpy's linear algebra on batches of matrices, with looks at the clock, and charged scratch.

LAPACK's calls are not interrupted: a batch is cut into parts, and a matrix that would take until the deadline is refused before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, TypeVar, cast

import numpy as np

from oplet import charge, checkpoint
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.limits import foresee

__all__ = [
    "PORTION",
    "cholesky",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "multiply",
    "pinv",
    "portions",
    "product",
    "qr",
    "singular_values",
    "slogdet",
    "solve",
    "svd",
]  # fmt: skip

#: What numpy's function returns: an array, or several.
Found = TypeVar("Found")

#: Seconds of a part, of numpy's own work for a matrix, and of a step for real numbers, of which each function takes so many for n * n * n.
_PART, _MATRIX, _STEP = 0.05, 2e-6, 1e-9
#: How much longer complex numbers take; bytes that calls hold for each byte of the matrices.
_COMPLEX, _HELD = 3.0, 3
#: Seconds of a multiplication by the type's letter, where BLAS does them, of any other, and of a matrix of a product.
_FAST, _PLAIN, _CALL = {"f": 3e-11, "d": 5e-11, "F": 1e-10, "D": 2e-10}, 1e-9, 1e-7


def cholesky(matrices: Array) -> Array:
    """Compute numpy.linalg.cholesky of a batch of matrices; the run can be cancelled between parts of the batch."""
    return _by_parts(np.linalg.cholesky, 0.05, matrices)


def det(matrices: Array) -> Array:
    """Compute numpy.linalg.det of a batch of matrices; the run can be cancelled between parts of the batch."""
    return _by_parts(np.linalg.det, 0.07, matrices)


def slogdet(matrices: Array) -> tuple[Array, Array]:
    """Compute numpy.linalg.slogdet of a batch of matrices; the run can be cancelled between parts of the batch."""
    return _by_parts(np.linalg.slogdet, 0.07, matrices)


def inv(matrices: Array) -> Array:
    """Compute numpy.linalg.inv of a batch of matrices; the run can be cancelled between parts of the batch."""
    return _by_parts(np.linalg.inv, 0.25, matrices)


def pinv(matrices: Array, rcond: float) -> Array:
    """Compute numpy.linalg.pinv of a batch of matrices; the run can be cancelled between parts of the batch."""
    return _by_parts(lambda part: np.linalg.pinv(part, rcond), 1.0, matrices, held=4 * _HELD)


def solve(matrices: Array, right: Array) -> Array:
    """Compute numpy.linalg.solve of a batch of matrices and right-hand sides (matrices); the run can be cancelled in between."""
    return _by_parts(np.linalg.solve, 0.25, matrices, right)


def qr(matrices: Array, mode: str) -> tuple[Array, Array]:
    """Compute numpy.linalg.qr of a batch of matrices, in a `mode` that returns Q and R; the run can be cancelled in between."""
    square = max(matrices.shape[-2], 1) if mode == "complete" else 0
    return _by_parts(lambda part: np.linalg.qr(part, mode), 0.2, matrices, square=square)  # type: ignore[call-overload, no-any-return]


def svd(matrices: Array, full: bool) -> tuple[Array, Array, Array]:
    """Compute numpy.linalg.svd of a batch of matrices with full_matrices=`full`; the run can be cancelled in between."""
    square = max(matrices.shape[-2:]) if full else 0
    return _by_parts(lambda part: np.linalg.svd(part, full), 0.9, matrices, held=2 * _HELD, square=square)


def singular_values(matrices: Array) -> Array:
    """Compute the singular values (numpy.linalg.svd) of a batch of matrices; the run can be cancelled in between."""
    return _by_parts(lambda part: np.linalg.svd(part, compute_uv=False), 0.4, matrices)


def eigh(matrices: Array) -> tuple[Array, Array]:
    """Compute numpy.linalg.eigh of a batch of matrices; the run can be cancelled between parts of the batch."""
    return _by_parts(np.linalg.eigh, 0.4, matrices)


def eigvalsh(matrices: Array) -> Array:
    """Compute numpy.linalg.eigvalsh of a batch of matrices; the run can be cancelled between parts of the batch."""
    return _by_parts(np.linalg.eigvalsh, 0.15, matrices)


def eig(matrices: Array) -> tuple[Array, Array]:
    """Compute numpy.linalg.eig of a batch of matrices; the run can be cancelled between parts of the batch."""
    return _by_parts(np.linalg.eig, 3.0, matrices, held=2 * _HELD)


def eigvals(matrices: Array) -> Array:
    """Compute numpy.linalg.eigvals of a batch of matrices; the run can be cancelled between parts of the batch."""
    return _by_parts(np.linalg.eigvals, 2.0, matrices)


def product(left: Array, right: Array) -> Array:
    """Return left @ right for batches of matrices; a long product is divided, so that the run can be cancelled in between."""
    batch = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    shape, type = (*batch, left.shape[-2], right.shape[-1]), np.result_type(left, right)
    charge(prod(shape) * type.itemsize)
    made: Array = np.empty(shape, type)
    multiply(left, right, made)
    return made


def multiply(left: Array, right: Array, output: Array, **how: Any) -> None:
    """Compute numpy.matmul of batches that broadcast; a long product is halved, so that the run can be cancelled in between.

    Args:
        left: the left operand.
        right: the right operand.
        output: receives the product.
        how: further arguments of numpy.matmul.
    """
    rows, columns = output.shape[-2:]
    each = _FAST.get(output.dtype.char, _PLAIN) * rows * columns * left.shape[-1] + _CALL
    foresee(0)
    if prod(output.shape[:-2]) * each <= _PART or max(output.shape, default=1) < 2:
        np.matmul(left, right, output, **how)
        return
    axis = next((axis for axis, size in enumerate(output.shape[:-2]) if size > 1), output.ndim - 2 + (rows < 2))
    middle = output.shape[axis] // 2
    for part in (slice(0, middle), slice(middle, None)):
        place = (*[slice(None)] * axis, part)
        operands = []
        for number, operand in enumerate((left, right)):
            back = axis - output.ndim  # the axis of the result, from its end
            of_other = back == -1 - number  # columns come from the right operand, rows from the left one
            if of_other or operand.ndim < -back or (operand.shape[back] == 1 and back < -2):
                operands.append(operand)
            else:
                index = (..., part, *[slice(None)] * (-back - 1))
                operands.append(operand[index])
        multiply(operands[0], operands[1], output[place], **how)


def _by_parts(function: Callable[..., Found], weight: float, *arrays: Array, held: int = _HELD, square: int = 0) -> Found:
    """Call a function on a few matrices of a batch at a time.

    Args:
        function: takes batches of matrices, and returns an array or several.
        weight: the steps that it takes for n * n * n.
        arrays: its arguments, of one batch shape.
        held: bytes that it holds for each byte of the arrays.
        square: the size of a square matrix that it makes besides; 0 for none.
    """
    rows, columns = arrays[0].shape[-2:]
    batch = arrays[0].shape[:-2]
    right = arrays[-1].shape[-1]
    work = rows * columns * max(min(rows, columns), square) + (rows * columns * right if len(arrays) > 1 else 0)
    seconds = _MATRIX + _STEP * weight * work * (_COMPLEX if arrays[0].dtype.kind == "c" else 1.0)
    count = prod(batch)
    charge(held * (sum(array.nbytes for array in arrays) + count * square * square * arrays[0].itemsize))
    step = max(1, int(_PART / seconds))
    if count <= step:
        foresee(count * seconds)
        return function(*arrays)
    parts = [array.reshape(-1, *array.shape[-2:]) for array in arrays]
    made = []
    for first in range(0, count, step):
        foresee(min(step, count - first) * seconds)
        made.append(function(*(part[first : first + step] for part in parts)))
    if isinstance(made[0], tuple):
        return cast("Found", tuple(_joined(found, batch) for found in zip(*made)))
    return cast("Found", _joined(made, batch))


def _joined(parts: Any, batch: tuple[int, ...]) -> Array:
    whole: Array = np.concatenate(parts)
    return whole.reshape(batch + whole.shape[1:])


#: The elements of a portion.
PORTION = 1 << 18


def portions(shape: Shape, most: int = PORTION) -> Iterator[tuple[slice, ...]]:
    """Yield index tuples that divide an array of this shape into contiguous parts of about `most` elements, in order."""
    inner = prod(shape[1:])
    if not shape:
        yield ()
    elif inner > most:
        for first in range(shape[0]):
            for rest in portions(shape[1:], most):
                yield slice(first, first + 1), *rest
    elif inner:
        step = max(1, most // inner)
        for first in range(0, shape[0], step):
            checkpoint()
            yield slice(first, min(first + step, shape[0])), *[slice(0, size) for size in shape[1:]]
