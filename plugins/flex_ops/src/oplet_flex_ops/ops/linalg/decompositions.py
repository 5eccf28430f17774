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
from oplet_flex_ops.numerics.operator import Step, operator
from oplet_flex_ops.numerics.types import COMPLEX, INDEX, WIDE, WIDE_FLOATS

_NOT_UNIQUE = "signs (complex: phases) of vectors are those of LAPACK, which need not be TensorFlow's"


def _cholesky() -> Registration:
    """Build Cholesky: the lower factor, from the lower triangle; NaN for a matrix that is not positive definite."""

    def factor(matrix: Array) -> Array:
        try:
            return dense.cholesky(matrix)
        except np.linalg.LinAlgError:
            return np.tril(np.full_like(matrix, np.nan))

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        [source], [output] = inputs, outputs

        def run() -> None:
            try:
                np.copyto(output, dense.cholesky(source))
            except np.linalg.LinAlgError:
                each(factor, source, output)

        return run

    return operator("T -> T", square_shape, T=WIDE)(formula)


def _cholesky_grad() -> Registration:
    """Build CholeskyGrad: the symmetric gradient by the decomposed matrix (Murray, arXiv:1602.07527, equation 10)."""

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        ensure_square(*node.inputs)
        factor, gradient = node.inputs
        ensure(factor.shape == gradient.shape, f"{factor} and its gradient {gradient} must have the same shape.")
        return [factor.shape]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        [factor, gradient], [output] = inputs, outputs

        def compute() -> None:
            lower = np.tril(factor)
            middle = np.tril(dense.product(lower.swapaxes(-1, -2), np.tril(gradient)))
            middle = middle - 0.5 * middle * np.eye(middle.shape[-1], dtype=middle.dtype)
            left = solve_triangular(lower, middle, True, True)
            whole = solve_triangular(lower, left.swapaxes(-1, -2), True, True).swapaxes(-1, -2)
            np.copyto(output, (whole + whole.swapaxes(-1, -2)) / 2)

        return compute

    return operator("T, T -> T", shapes, T=WIDE_FLOATS)(formula)


def _qr() -> Registration:
    def full(attributes: Attributes) -> bool:
        return attributes.flag("full_matrices", default=False)

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        ensure_matrices(node.inputs[0])
        *batch, rows, columns = node.inputs[0].shape
        inner = rows if full(attributes) else min(rows, columns)
        return [(*batch, rows, inner), (*batch, inner, columns)]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        whole = full(attributes)

        def run() -> None:
            factors = dense.qr(inputs[0], "complete" if whole else "reduced")
            for output, factor in zip(outputs, factors):
                np.copyto(output, factor)

        return run

    return operator("T -> T, T", shapes, T=(*WIDE, TensorType.FLOAT16))(formula)


def _svd() -> Registration:
    """Build Svd: singular values, and left and right singular vectors as columns."""

    def options(attributes: Attributes) -> tuple[bool, bool]:
        return attributes.flag("compute_uv", default=True), attributes.flag("full_matrices", default=False)

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        ensure_matrices(node.inputs[0])
        *batch, rows, columns = node.inputs[0].shape
        vectors, full = options(attributes)
        inner = min(rows, columns)
        if not vectors:
            return [(*batch, inner), (), ()]
        return [(*batch, inner), (*batch, rows, rows if full else inner), (*batch, columns, columns if full else inner)]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        [source], (values, left, right) = inputs, outputs
        vectors, full = options(attributes)

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

    return operator("T -> T, T, T", shapes, differences=_NOT_UNIQUE, T=WIDE)(formula)


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


def _eig() -> Registration:
    """Build Eig: complex eigenvalues in no particular order, and unit eigenvectors as columns."""

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        ensure_square(node.inputs[0])
        double = node.inputs[0].type in (TensorType.FLOAT64, TensorType.COMPLEX128)
        wanted = TensorType.COMPLEX128 if double else TensorType.COMPLEX64
        ensure(
            node.outputs[0].type is wanted,
            f"the eigenvalues of {node.inputs[0]} are {wanted.name}, not {node.outputs[0].type.name}.",
        )
        *batch, size, _ = node.inputs[0].shape
        return [(*batch, size), (*batch, size, size) if attributes.flag("compute_v", default=True) else ()]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        vectors = attributes.flag("compute_v", default=True)

        def compute() -> None:
            if vectors:
                for output, found in zip(outputs, dense.eig(inputs[0])):
                    np.copyto(output, found, "unsafe")
            else:
                np.copyto(outputs[0], dense.eigvals(inputs[0]), "unsafe")
                outputs[1][...] = 0

        return refusing(compute, "Eigen decomposition was not successful. The input might not be valid.")

    return operator("T -> Tout, Tout", shapes, differences=_NOT_UNIQUE, T=WIDE, Tout=COMPLEX)(formula)


def _lu() -> Registration:
    """Build Lu: L and U in one matrix, and the row permutation."""

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        ensure_square(node.inputs[0])
        return [node.inputs[0].shape, node.inputs[0].shape[:-1]]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        def compute() -> None:
            for output, found in zip(outputs, lu(inputs[0])):
                np.copyto(output, found, "unsafe")

        return refusing(compute, "Input is not invertible: a pivot of Lu is zero.")

    return operator("T -> T, output_idx_type=INT32", shapes, T=WIDE, output_idx_type=INDEX)(formula)


CHOLESKY = BATCHCHOLESKY = _cholesky()
CHOLESKYGRAD = BATCHCHOLESKYGRAD = _cholesky_grad()
EIG = _eig()
LU = _lu()
QR = _qr()
SELFADJOINTEIG = BATCHSELFADJOINTEIG = _self_adjoint_eig(one_output=True)
SELFADJOINTEIGV2 = BATCHSELFADJOINTEIGV2 = _self_adjoint_eig(one_output=False)
SVD = BATCHSVD = _svd()
