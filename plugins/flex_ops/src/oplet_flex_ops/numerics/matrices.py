"""Checks of batched matrices, and algorithms that numpy lacks: LU, triangular systems, matrix functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from oplet import Node, Tensor, charge, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.limits import paced
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.dense import eigh, inv, product, slogdet, solve

__all__ = [
    "broadcast_batches", "each", "ensure_matrices", "ensure_square", "exponential", "logarithm", "lu", "numbers_per_square", "refusing",
    "solve_bands", "solve_lower", "solve_triangular", "square_root", "square_shape",
]  # fmt: skip

_BLOCK = 48


def ensure_matrices(*tensors: Tensor) -> None:
    """Raise an error unless each tensor has at least two dimensions."""
    for tensor in tensors:
        ensure(tensor.ndim >= 2, lambda: f"{tensor} must have two dimensions or more.")  # noqa: B023


def ensure_square(*tensors: Tensor) -> None:
    """Raise an error unless each tensor is a batch of square matrices."""
    ensure_matrices(*tensors)
    for tensor in tensors:
        rows, columns = tensor.shape[-2:]
        ensure(rows == columns, f"the matrices {tensor} must be square; they have {rows} rows and {columns} columns.")


def square_shape(node: Node, attributes: Attributes) -> Sequence[Shape]:
    """Return the shape of the first input, which must be square matrices: the shape function of functions of them."""
    ensure_square(node.inputs[0])
    return [node.inputs[0].shape]


def numbers_per_square(node: Node, attributes: Attributes) -> Sequence[Shape]:
    """Return the shape of one number per square matrix of the first input, for each output."""
    ensure_square(node.inputs[0])
    return [node.inputs[0].shape[:-2]] * len(node.outputs)


def broadcast_batches(node: Node) -> Shape:
    """Return the broadcast shape of the first two inputs' batch dimensions."""
    left, right = node.inputs[0].shape[:-2], node.inputs[1].shape[:-2]
    fits = all(m == n or 1 in (m, n) for m, n in zip(left[::-1], right[::-1]))
    ensure(fits, f"the batches of {node.inputs[0]} and {node.inputs[1]} do not broadcast.")
    return np.broadcast_shapes(left, right)


def refusing(compute: Callable[[], None], message: str) -> Thunk:
    """Wrap `compute`: numpy's LinAlgError (no solution) becomes an EnsureError with `message`."""

    def run() -> None:
        try:
            compute()
        except np.linalg.LinAlgError:
            ensure(False, message)

    return run


def solve_lower(matrices: Array, right: Array) -> Array:
    """Solve L X = right, where L is the lower triangle of square matrices; batches broadcast."""
    size = matrices.shape[-1]
    result = np.array(np.broadcast_to(right, np.broadcast_shapes(matrices.shape[:-2], right.shape[:-2]) + right.shape[-2:]))
    # LAPACK refuses zeros on the diagonal; divided by row after row they become infinite.
    singular = (np.diagonal(matrices, 0, -2, -1) == 0).any()
    length = 1 if singular else _BLOCK
    for start in range(0, size, length):
        checkpoint()
        block = slice(start, start + length)
        part = result[..., block, :]
        if start:
            part = part - product(matrices[..., block, :start], result[..., :start, :])
        corner = matrices[..., block, block]
        result[..., block, :] = part / corner if singular else np.linalg.solve(np.tril(corner), part)
    return result


def solve_triangular(matrices: Array, right: Array, lower: bool, adjoint: bool) -> Array:
    """Solve T X = right (or with T's adjoint) for the lower or upper triangle T; infinite if the diagonal has a zero."""
    if adjoint:
        matrices, lower = np.conj(matrices).swapaxes(-1, -2), not lower
    if lower:
        return solve_lower(matrices, right)
    return solve_lower(matrices[..., ::-1, ::-1], right[..., ::-1, :])[..., ::-1, :]


def solve_bands(bands: Array, right: Array, lower: bool, adjoint: bool, output: Array) -> None:
    """Solve T X = right (or with T's adjoint) for triangles T stored as diagonals, (..., bands, size): lower from the main
    diagonal down, upper from the highest diagonal down to the main one. Stored values outside of the matrix are ignored.
    """
    count, size = bands.shape[-2:]
    charge(2 * bands.nbytes + 3 * output.nbytes)
    rows = np.zeros_like(
        bands
    )  # by number and row, what stands so many columns before the diagonal; upper triangles are turned around
    for number in paced(range(count), 16):
        band = bands[..., number if lower else count - 1 - number, :]
        if adjoint:  # what is stored by rows is asked for by columns
            band = np.conj(band[..., number:] if lower else band[..., : size - number])
        else:
            band = band[..., number:] if lower else band[..., : size - number]
        rows[..., number, number:] = band if lower != adjoint else band[..., ::-1]
    turned = slice(None) if lower != adjoint else slice(None, None, -1)
    given, found = right[..., turned, :], output[..., turned, :]
    for row in paced(range(size)):
        before = min(count - 1, row)
        value = given[..., row, :]
        if before:
            known = found[..., row - before : row, :][..., ::-1, :]
            value = value - (rows[..., None, 1 : before + 1, row] @ known)[..., 0, :]
        found[..., row, :] = value / rows[..., 0, row, None]


def lu(matrices: Array) -> tuple[Array, Array]:
    """Factor square matrices by LU with partial pivoting; return L and U in one array, and the row permutation.

    Raises:
        LinAlgError: a pivot is zero.
    """
    size = matrices.shape[-1]
    work = np.array(matrices).reshape(-1, size, size)
    order = np.tile(np.arange(size), (len(work), 1))
    batch = np.arange(len(work))
    for step in range(size):
        checkpoint()
        pivot = step + np.abs(work[:, step:, step]).argmax(-1)
        for array in (work, order):
            array[batch, pivot], array[batch, step] = array[batch, step], array[batch, pivot]
        diagonal = work[:, step, step]
        if (diagonal == 0).any():
            raise np.linalg.LinAlgError
        below = work[:, step + 1 :, step] / diagonal[:, None]
        work[:, step + 1 :, step] = below
        work[:, step + 1 :, step + 1 :] -= below[:, :, None] * work[:, step, None, step + 1 :]
    return work.reshape(matrices.shape), order.reshape(matrices.shape[:-1])


def _norm(matrix: Array) -> float:
    return float(np.abs(matrix).sum(0).max(initial=0.0))


def exponential(matrix: Array) -> Array:
    """Compute the exponential of one matrix by scaling, a Padé approximant of degree 13, and squaring (Higham 2005)."""
    norm = _norm(matrix)
    if not np.isfinite(norm):
        return np.full_like(matrix, np.nan)
    halvings = max(0, int(np.ceil(np.log2(norm / 5.371920351148152)))) if norm > 0 else 0
    scaled = matrix / 2.0**halvings
    # Coefficients of the approximant: (26 - k)! 13! / (26! k! (13 - k)!), by their ratios.
    coefficients = [1.0]
    for k in range(1, 14):
        coefficients.append(coefficients[-1] * (14 - k) / (k * (27 - k)))
    identity = np.eye(len(matrix), dtype=matrix.dtype)
    square = product(scaled, scaled)
    even, odd, power = coefficients[0] * identity, coefficients[1] * identity, identity
    for k in range(2, 14, 2):
        power = product(power, square)
        even = even + coefficients[k] * power
        odd = odd + coefficients[k + 1] * power
    odd = product(scaled, odd)
    result: Array = solve(even - odd, even + odd)
    for _ in range(halvings):
        result = product(result, result)
    return result


def square_root(matrix: Array) -> Array:
    """Compute the principal square root of one matrix.

    Raises:
        LinAlgError: the matrix has no square root that can be computed.
    """
    adjoint = np.conj(matrix.T)
    if np.array_equal(matrix, adjoint):
        values, vectors = eigh(matrix)
        small = np.abs(values) <= np.abs(values).max(initial=0.0) * len(matrix) * np.finfo(values.dtype).eps
        values = np.where(small, 0.0, values)
        if matrix.dtype.kind != "c" and (values < 0).any():
            return np.full_like(matrix, np.nan)
        roots = np.emath.sqrt(values)
        result: Array = product(vectors * roots, np.conj(vectors.T))
        return result
    # The product form of Denman and Beavers' iteration (Cheng, Higham, Kenney and Laub 2001).
    size = len(matrix)
    identity = np.eye(size, dtype=matrix.dtype)
    root, near = np.array(matrix), np.array(matrix)
    for _ in range(60):
        checkpoint()
        inverse = inv(near)
        logarithm = slogdet(near)[1]
        scale = float(np.exp(-logarithm / (2 * size))) if np.isfinite(logarithm) and _norm(near - identity) > 1e-2 else 1.0
        root = product(scale * root, identity + inverse / scale**2) / 2
        near = (identity + (scale**2 * near + inverse / scale**2) / 2) / 2
        if _norm(near - identity) < size * np.finfo(matrix.dtype).eps * 4:
            break
    return root


def logarithm(matrix: Array) -> Array:
    """Compute the principal logarithm of one matrix: repeated square roots until near the identity, then Gauss-Legendre
    quadrature.

    Raises:
        LinAlgError: the matrix has no logarithm that can be computed.
    """
    identity = np.eye(len(matrix), dtype=matrix.dtype)
    near, roots = np.array(matrix), 0
    while _norm(near - identity) > 0.25:
        checkpoint()
        if roots > 60:
            raise np.linalg.LinAlgError
        near, roots = square_root(near), roots + 1
    difference = near - identity
    # log(1 + x) is the integral of x / (1 + t x) for t from 0 to 1.
    points, weights = np.polynomial.legendre.leggauss(16)
    result = np.zeros_like(matrix)
    for point, weight in zip((points + 1) / 2, weights / 2):
        result = result + weight * solve(identity + point * difference, difference)
    return result * 2.0**roots


def each(function: Callable[[Array], Array], source: Array, target: Array) -> None:
    """Apply `function` to each matrix of a batch, and write the results to `target`."""
    size: Sequence[int] = source.shape[-2:]
    for matrix, result in zip(source.reshape(-1, *size), target.reshape(-1, *size)):
        checkpoint()
        if matrix.size:
            result[...] = function(matrix)
