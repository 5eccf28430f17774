"""Functions of square matrices: determinants, exponential, logarithm, square root; and the vector product."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from oplet import Node, Registration, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics import dense
from oplet_flex_ops.numerics.matrices import each, exponential, logarithm, numbers_per_square, refusing, square_root, square_shape
from oplet_flex_ops.numerics.operator import Step, operator, writing
from oplet_flex_ops.numerics.types import COMPLEX, REAL, WIDE


@operator("T -> T", numbers_per_square, T=WIDE)
@writing
def MATRIXDETERMINANT(source: Array, output: Array) -> None:
    np.copyto(output, dense.det(source))


@operator("T -> T, T", numbers_per_square, T=WIDE)
@writing
def LOGMATRIXDETERMINANT(source: Array, *outputs: Array) -> None:
    """Compute the determinant's sign (complex: phase), and the log of its magnitude."""
    for output, found in zip(outputs, dense.slogdet(source)):
        np.copyto(output, found, "unsafe")


def _function(function: Callable[[Array], Array], message: str, *, complex_only: bool = False) -> Registration:
    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        return refusing(lambda: each(function, inputs[0], outputs[0]), message)

    return operator("T -> T", square_shape, T=COMPLEX if complex_only else WIDE)(formula)


def _cross_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    a, b = node.inputs
    ensure(a.shape == b.shape, f"{a} and {b} must have the same shape.")
    ensure(a.ndim >= 1 and a.shape[-1] == 3, f"{a} must hold vectors of three values along its last axis.")
    return [a.shape]


@operator("T, T -> T", _cross_shapes, T=REAL)
@writing
def CROSS(a: Array, b: Array, output: Array) -> None:
    """Compute the cross product along the last axis, of size 3."""
    for axis in range(3):
        i, j = (axis + 1) % 3, (axis + 2) % 3
        np.subtract(a[..., i] * b[..., j], a[..., j] * b[..., i], output[..., axis])


BATCHMATRIXDETERMINANT = MATRIXDETERMINANT
MATRIXEXPONENTIAL = _function(exponential, "the exponential cannot be computed.")
MATRIXLOGARITHM = _function(logarithm, "the matrix has no principal logarithm that can be computed.", complex_only=True)
MATRIXSQUAREROOT = _function(square_root, "the matrix has no principal square root that can be computed.")
