"""Inverses and systems of linear equations. Numerics: LAPACK, through numpy; tensorflow/core/kernels/linalg for what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from oplet import Node, Registration, TensorType, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.limits import paced
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics import dense
from oplet_flex_ops.numerics.matrices import (
    broadcast_batches,
    ensure_matrices,
    ensure_square,
    refusing,
    solve_bands,
    solve_triangular,
    square_shape,
)
from oplet_flex_ops.numerics.operator import Step, operator, writing
from oplet_flex_ops.numerics.types import WIDE

#: Elements of a whole matrix above which one that is stored by its bands is solved row by row.
_LARGE = 1 << 16
_SINGULAR = "Input matrix is not invertible."


def _adjoint(attributes: Attributes) -> bool:
    return attributes.flag("adjoint", default=False)


def _conjugate(matrices: Array) -> Array:
    result: Array = np.conj(matrices).swapaxes(-1, -2)
    return result


@operator("T -> T", square_shape, T=(*WIDE, TensorType.FLOAT16))
def MATRIXINVERSE(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    adjoint = _adjoint(attributes)

    def compute() -> None:
        inverse = dense.inv(inputs[0])
        np.copyto(outputs[0], _conjugate(inverse) if adjoint else inverse)

    return refusing(compute, _SINGULAR)


def _same_batch(node: Node) -> None:
    ensure_matrices(*node.inputs[:2])
    matrix, right = node.inputs[:2]
    ensure(matrix.shape[:-2] == right.shape[:-2], f"the batches of {matrix} and {right} must have the same shape.")
    ensure(
        matrix.shape[-2] == right.shape[-2],
        f"the right-hand side {right} must have as many rows as {matrix}, {matrix.shape[-2]}.",
    )


def _solve_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    _same_batch(node)
    ensure_square(node.inputs[0])
    return [node.inputs[1].shape]


@operator("T, T -> T", _solve_shapes, T=WIDE)
def MATRIXSOLVE(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    [matrix, right], adjoint = inputs, _adjoint(attributes)
    return refusing(
        lambda: np.copyto(outputs[0], dense.solve(_conjugate(matrix) if adjoint else matrix, right)), _SINGULAR
    )  # fmt: skip


def _least_squares() -> Registration:
    """Build MatrixSolveLs: Cholesky of the normal equations if `fast` is set, else singular values."""
    message = (
        "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide a larger l2_regularizer > 0."
    )  # fmt: skip

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        _same_batch(node)
        ensure(node.inputs[2].size == 1, f"the regularizer {node.inputs[2]} must be one number.")
        *batch, _, columns = node.inputs[0].shape
        return [(*batch, columns, node.inputs[1].shape[-1])]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        [matrix, right, regularizer], [output] = inputs, outputs
        rows, columns = matrix.shape[-2:]
        fast = attributes.flag("fast", default=True)

        def compute() -> None:
            if not matrix.size or not output.size:
                output.fill(0)
                return
            if not fast:
                rcond = max(rows, columns) * np.finfo(matrix.dtype).eps
                np.copyto(output, dense.product(dense.pinv(matrix, rcond), right))
                return
            weight = regularizer.item()
            ensure(weight >= 0, f"the regularizer of MatrixSolveLs is {weight:g}; it must not be negative.")
            adjoint = _conjugate(matrix)
            products = dense.product(adjoint, matrix) if rows >= columns else dense.product(matrix, adjoint)
            products += np.array(weight, products.dtype) * np.eye(products.shape[-1], dtype=products.dtype)
            factor = dense.cholesky(products)
            half = solve_triangular(factor, dense.product(adjoint, right) if rows >= columns else right, True, False)
            solution = solve_triangular(factor, half, True, True)
            np.copyto(output, solution if rows >= columns else dense.product(adjoint, solution))

        return refusing(compute, message)

    return operator("T, T, FLOAT64 -> T", shapes, T=WIDE)(formula)


def _triangular_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure_square(node.inputs[0])
    ensure_matrices(node.inputs[1])
    matrix, right = node.inputs
    fits = matrix.shape[-1] == right.shape[-2]
    ensure(fits, f"the right-hand side {right} must have as many rows as {matrix}, {matrix.shape[-1]}.")
    return [(*broadcast_batches(node), *right.shape[-2:])]


@operator("T, T -> T", _triangular_shapes, T=WIDE)
def MATRIXTRIANGULARSOLVE(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    lower, adjoint = attributes.flag("lower", default=True), _adjoint(attributes)
    return lambda: np.copyto(outputs[0], solve_triangular(inputs[0], inputs[1], lower, adjoint))


def _banded_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure_matrices(*node.inputs)
    bands, right = node.inputs
    size = bands.shape[-1]
    ensure(size == right.shape[-2], f"the right-hand side {right} must have as many rows as the bands {bands} are long, {size}.")
    ensure(1 <= bands.shape[-2] <= max(size, 1), f"{bands} has {bands.shape[-2]} bands; a matrix of {size} rows has 1 to {size}.")
    return [(*broadcast_batches(node), *right.shape[-2:])]


@operator("T, T -> T", _banded_shapes, T=WIDE)
def BANDEDTRIANGULARSOLVE(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    """Solve triangular systems whose matrices are stored by their bands."""
    [bands, right], [output] = inputs, outputs
    lower, adjoint = attributes.flag("lower", default=True), _adjoint(attributes)
    count, size = bands.shape[-2:]

    def compute() -> None:
        _ensure_pivot(bands[..., 0 if lower else -1, :])
        if prod(bands.shape[:-2]) * size * size > _LARGE:
            solve_bands(bands, right, lower, adjoint, output)
            return
        whole = np.zeros((*bands.shape[:-2], size, size), bands.dtype)
        for number in range(count):
            # Lower: the diagonal, then those below. Upper: the highest diagonal first, the main one last.
            below = number if lower else count - 1 - number
            places = np.arange(size - below)
            rows, columns = (places + below, places) if lower else (places, places + below)
            whole[..., rows, columns] = bands[..., number, rows]
        np.copyto(output, solve_triangular(whole, right, lower, adjoint))

    return refusing(compute, _SINGULAR)


def _tridiagonal_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure_matrices(*node.inputs)
    diagonals, right = node.inputs
    ensure(diagonals.shape[-2] == 3, f"{diagonals} must hold three diagonals, not {diagonals.shape[-2]}.")
    fits = (*diagonals.shape[:-2], diagonals.shape[-1]) == right.shape[:-1]
    ensure(fits, f"the right-hand side {right} must have the batch of {diagonals} and {diagonals.shape[-1]} rows.")
    return [right.shape]


@operator("T, T -> T", _tridiagonal_shapes, T=WIDE)
def TRIDIAGONALSOLVE(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    """Solve tridiagonal systems by Gaussian elimination, with row exchanges if `partial_pivoting` is set.

    NaN for a matrix that is not invertible.
    """
    [diagonals, right], [output] = inputs, outputs
    pivoting = attributes.flag("partial_pivoting", default=True)
    size = diagonals.shape[-1]

    def compute() -> None:
        count = prod(diagonals.shape[:-2])
        above, main, below = (np.array(diagonals[..., row, :]).reshape(count, size) for row in range(3))
        values = np.array(right).reshape(len(main), size, right.shape[-1])
        further = np.zeros_like(above)
        for row in range(size - 1):
            if not row % 256:
                checkpoint()
            if pivoting:
                swap = np.abs(below[:, row + 1]) > np.abs(main[:, row])
                upper = (main[:, row].copy(), above[:, row].copy(), further[:, row].copy())
                lower = (below[:, row + 1].copy(), main[:, row + 1].copy(), above[:, row + 1] * (row + 2 < size))
                main[:, row], above[:, row], further[:, row] = (np.where(swap, b, a) for a, b in zip(upper, lower))
                below[:, row + 1], main[:, row + 1], last = (np.where(swap, a, b) for a, b in zip(upper, lower))
                above[:, row + 1] = last
                first, second = values[:, row].copy(), values[:, row + 1].copy()
                values[:, row] = np.where(swap[:, None], second, first)
                values[:, row + 1] = np.where(swap[:, None], first, second)
            factor = below[:, row + 1] / main[:, row]
            main[:, row + 1] -= factor * above[:, row]
            above[:, row + 1] -= factor * further[:, row]
            values[:, row + 1] -= factor[:, None] * values[:, row]
        singular = (main == 0).any(-1)
        for row in paced(range(size - 1, -1, -1)):
            if row + 1 < size:
                values[:, row] -= above[:, row, None] * values[:, row + 1]
            if row + 2 < size:
                values[:, row] -= further[:, row, None] * values[:, row + 2]
            values[:, row] /= main[:, row, None]
        values[singular] = np.nan
        np.copyto(output, values.reshape(output.shape))

    return compute


def _ensure_pivot(pivots: Array) -> None:
    if (pivots == 0).any():
        raise np.linalg.LinAlgError


def _tridiagonal_product_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure_matrices(*node.inputs)
    *diagonals, right = node.inputs
    for diagonal in diagonals:
        fits = diagonal.shape == (*right.shape[:-2], 1, right.shape[-2])
        ensure(fits, f"the diagonal {diagonal} must be a row of {right.shape[-2]} values for each matrix of {right}.")
    return [right.shape]


@operator("T, T, T, T -> T", _tridiagonal_product_shapes, T=WIDE)
@writing
def TRIDIAGONALMATMUL(superdiagonal: Array, diagonal: Array, subdiagonal: Array, right: Array, output: Array) -> None:
    above, main, below = (each.swapaxes(-1, -2) for each in (superdiagonal, diagonal, subdiagonal))
    np.multiply(main, right, output)
    output[..., :-1, :] += above[..., :-1, :] * right[..., 1:, :]
    output[..., 1:, :] += below[..., 1:, :] * right[..., :-1, :]


BATCHMATRIXINVERSE = MATRIXINVERSE
BATCHMATRIXSOLVE = MATRIXSOLVE
MATRIXSOLVELS = BATCHMATRIXSOLVELS = _least_squares()
BATCHMATRIXTRIANGULARSOLVE = MATRIXTRIANGULARSOLVE
