"""Matrix decompositions. Numerics: LAPACK, through numpy; tensorflow/core/kernels/linalg for what is returned.

The signs (complex: phases) of Svd's, SelfAdjointEigV2's and Eig's vectors are not unique and may differ from TensorFlow's, which uses
Eigen; so may the order of Eig's values. The factors of Qr have TensorFlow's signs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics import dense
from oplet_flex_ops.numerics.matrices import each, ensure_matrices, ensure_square, lu, refusing, solve_triangular, square_shape
from oplet_flex_ops.numerics.operator import Step, operator, writing
from oplet_flex_ops.numerics.types import COMPLEX, INDEX, WIDE, WIDE_FLOATS

_NOT_UNIQUE = "signs (complex: phases) of vectors are those of LAPACK, which need not be TensorFlow's"


def _cholesky_factor(matrix: Array) -> Array:
    try:
        return dense.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.tril(np.full_like(matrix, np.nan))


@operator("T -> T", square_shape, T=WIDE)
@writing
def CHOLESKY(source: Array, output: Array) -> None:
    """Compute the lower factor, from the lower triangle; NaN for a matrix that is not positive definite."""
    try:
        np.copyto(output, dense.cholesky(source))
    except np.linalg.LinAlgError:
        each(_cholesky_factor, source, output)


def _cholesky_grad_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure_square(*node.inputs)
    factor, gradient = node.inputs
    ensure(factor.shape == gradient.shape, f"{factor} and its gradient {gradient} must have the same shape.")
    return [factor.shape]


@operator("T, T -> T", _cholesky_grad_shapes, T=WIDE_FLOATS)
@writing
def CHOLESKYGRAD(factor: Array, gradient: Array, output: Array) -> None:
    """Compute the symmetric gradient by the decomposed matrix (Murray, arXiv:1602.07527, equation 10)."""
    lower = np.tril(factor)
    middle = np.tril(dense.product(lower.swapaxes(-1, -2), np.tril(gradient)))
    middle = middle - 0.5 * middle * np.eye(middle.shape[-1], dtype=middle.dtype)
    left = solve_triangular(lower, middle, True, True)
    whole = solve_triangular(lower, left.swapaxes(-1, -2), True, True).swapaxes(-1, -2)
    np.copyto(output, (whole + whole.swapaxes(-1, -2)) / 2)


def _qr_full(attributes: Attributes) -> bool:
    return attributes.flag("full_matrices", default=False)


def _qr_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure_matrices(node.inputs[0])
    *batch, rows, columns = node.inputs[0].shape
    inner = rows if _qr_full(attributes) else min(rows, columns)
    return [(*batch, rows, inner), (*batch, inner, columns)]


@operator("T -> T, T", _qr_shapes, T=(*WIDE, TensorType.FLOAT16))
def QR(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    whole = _qr_full(attributes)

    def run() -> None:
        factors = dense.qr(inputs[0], "complete" if whole else "reduced")
        for output, factor in zip(outputs, factors):
            np.copyto(output, factor)

    return run


def _svd_options(attributes: Attributes) -> tuple[bool, bool]:
    return attributes.flag("compute_uv", default=True), attributes.flag("full_matrices", default=False)


def _svd_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure_matrices(node.inputs[0])
    *batch, rows, columns = node.inputs[0].shape
    vectors, full = _svd_options(attributes)
    inner = min(rows, columns)
    if not vectors:
        return [(*batch, inner), (), ()]
    return [(*batch, inner), (*batch, rows, rows if full else inner), (*batch, columns, columns if full else inner)]


@operator("T -> T, T, T", _svd_shapes, differences=_NOT_UNIQUE, T=WIDE)
def SVD(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    """Compute singular values, and left and right singular vectors as columns."""
    [source], (values, left, right) = inputs, outputs
    vectors, full = _svd_options(attributes)

    def compute() -> None:
        finite = np.isfinite(source).all((-2, -1), keepdims=True)
        given = source if finite.all() else np.where(finite, source, 0)
        if not vectors:
            np.copyto(values, dense.singular_values(given), "unsafe")
            left[...] = right[...] = 0
        else:
            u, s, vh = dense.svd(given, full)
            for output, found in ((values, s), (left, u), (right, np.conj(vh).swapaxes(-1, -2))):
                np.copyto(output, found, "unsafe")
        for output in (values[..., None], left, right):
            if output.ndim > 1 and not finite.all():
                np.copyto(output, np.nan, where=~finite)

    return refusing(compute, "the singular value decomposition did not converge.")


def _self_adjoint_eig(*, one_output: bool) -> Registration:
    """Build SelfAdjointEigV2: ascending eigenvalues, from the lower triangle, and eigenvectors as columns."""
    message = "Self-adjoint eigen decomposition was not successful. The input might not be valid."

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        ensure_square(node.inputs[0])
        *batch, size, _ = node.inputs[0].shape
        if one_output:
            return [(*batch, size + 1, size)]
        vectors = attributes.flag("compute_v", default=True)
        return [(*batch, size), (*batch, size, size) if vectors else ()]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        [source] = inputs
        vectors = one_output or attributes.flag("compute_v", default=True)

        def compute() -> None:
            if not np.isfinite(source).all():
                raise np.linalg.LinAlgError
            if not vectors:
                np.copyto(outputs[0], dense.eigvalsh(source), "unsafe")
                outputs[1][...] = 0
                return
            values, columns = dense.eigh(source)
            if one_output:
                outputs[0][..., 0, :], outputs[0][..., 1:, :] = values, columns
            else:
                np.copyto(outputs[0], values, "unsafe")
                np.copyto(outputs[1], columns)

        return refusing(compute, message)

    text, types = ("T -> T", WIDE_FLOATS) if one_output else ("T -> T, T", WIDE)
    return operator(text, shapes, differences=_NOT_UNIQUE, T=types)(formula)


def _eig_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure_square(node.inputs[0])
    double = node.inputs[0].type in (TensorType.FLOAT64, TensorType.COMPLEX128)
    wanted = TensorType.COMPLEX128 if double else TensorType.COMPLEX64
    ensure(
        node.outputs[0].type is wanted, f"the eigenvalues of {node.inputs[0]} are {wanted.name}, not {node.outputs[0].type.name}."
    )
    *batch, size, _ = node.inputs[0].shape
    return [(*batch, size), (*batch, size, size) if attributes.flag("compute_v", default=True) else ()]


@operator("T -> Tout, Tout", _eig_shapes, differences=_NOT_UNIQUE, T=WIDE, Tout=COMPLEX)
def EIG(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    """Compute complex eigenvalues in no particular order, and unit eigenvectors as columns."""
    vectors = attributes.flag("compute_v", default=True)

    def compute() -> None:
        if vectors:
            for output, found in zip(outputs, dense.eig(inputs[0])):
                np.copyto(output, found, "unsafe")
        else:
            np.copyto(outputs[0], dense.eigvals(inputs[0]), "unsafe")
            outputs[1][...] = 0

    return refusing(compute, "Eigen decomposition was not successful. The input might not be valid.")


def _lu_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure_square(node.inputs[0])
    return [node.inputs[0].shape, node.inputs[0].shape[:-1]]


@operator("T -> T, output_idx_type=INT32", _lu_shapes, T=WIDE, output_idx_type=INDEX)
def LU(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    """Compute L and U in one matrix, and the row permutation."""

    def compute() -> None:
        for output, found in zip(outputs, lu(inputs[0])):
            np.copyto(output, found, "unsafe")

    return refusing(compute, "Input is not invertible: a pivot of Lu is zero.")


BATCHCHOLESKY = CHOLESKY
BATCHCHOLESKYGRAD = CHOLESKYGRAD
SELFADJOINTEIG = BATCHSELFADJOINTEIG = _self_adjoint_eig(one_output=True)
SELFADJOINTEIGV2 = BATCHSELFADJOINTEIGV2 = _self_adjoint_eig(one_output=False)
BATCHSVD = SVD
