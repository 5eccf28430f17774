"""Arithmetic of sparse tensors: SparseAdd, SparseTensorDenseAdd, SparseTensorDenseMatMul, SparseDenseCwiseAdd, Mul and Div,
SparseSparseMaximum and Minimum, and SparseMatMul of dense matrices with many zeros.

Numerics: tensorflow/core/kernels/{sparse_add_op.cc,sparse_tensor_dense_add_op.cc,sparse_tensor_dense_matmul_op.cc,
sparse_dense_binary_op_shared.cc,sparse_sparse_binary_op_shared.cc,sparse_matmul_op.cc}
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oplet import Node, Registration, TensorType, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import computed, filled, reserve, zeros
from oplet_flex_ops.numerics.dense import multiply
from oplet_flex_ops.ops.sparse.coordinates import Coordinates, coordinates, vectors
from oplet_flex_ops.positions import row_numbers
from oplet_flex_ops.signature import INDICES, NUMBERS, REALS

_SPARSE = "{0}_indices: INT64[2], {0}_values: T[1], {0}_shape: INT64[1]"
_A_B = f"{_SPARSE.format('a')}, {_SPARSE.format('b')}"
_MATRICES = (TensorType.FLOAT32, TensorType.BFLOAT16)


def _both(a: Coordinates, b: Coordinates, operation: np.ufunc) -> tuple[Array, Array]:
    """Combine two sparse tensors by a ufunc over the union of their positions, with 0 for missing values; return positions and
    results.
    """
    ensure(a.shape == b.shape, f"the shapes {list(a.shape)} and {list(b.shape)} must be the same.")
    places = np.union1d(a.places, b.places)
    sides = np.zeros((2, places.size), a.values.dtype)
    for side, tensor in zip(sides, (a, b)):
        side[np.searchsorted(places, tensor.places)] = tensor.values
    with np.errstate(all="ignore"):
        return places, operation(sides[0], sides[1])


@computed("SparseAdd", f"{_A_B}, thresh: Treal[0] -> sum_indices: INT64, sum_values: T, sum_shape: INT64", T=NUMBERS, Treal=REALS)
def SPARSEADD(given: Any, *operands: Array) -> list[Array]:
    a, b = coordinates(*operands[:3]), coordinates(*operands[3:6])
    places, values = _both(a, b, np.add)
    shared = np.isin(places, a.places) & np.isin(places, b.places)
    kept = ~shared | (np.abs(values) >= operands[6])  # only sums of two values are dropped
    return [vectors(places[kept], a.shape), values[kept], operands[2]]


def _sparse_sparse(op: str, operation: np.ufunc) -> Registration:
    def compute(given: Any, *operands: Array) -> list[Array]:
        a, b = coordinates(*operands[:3]), coordinates(*operands[3:])
        places, values = _both(a, b, operation)
        return [vectors(places, a.shape), values]

    return computed(op, f"{_A_B} -> output_indices: INT64, output_values: T", T=REALS)(compute)


SPARSESPARSEMAXIMUM = _sparse_sparse("SparseSparseMaximum", np.maximum)
SPARSESPARSEMINIMUM = _sparse_sparse("SparseSparseMinimum", np.minimum)


def _dense_cwise(op: str, operation: np.ufunc) -> Registration:
    def compute(given: Any, indices: Array, values: Array, shape: Array, dense: Array) -> Array:
        sparse = coordinates(indices, values, shape)
        rank = len(sparse.shape)
        aligned = (1,) * (rank - dense.ndim) + dense.shape
        ensure(
            dense.ndim <= rank and all(a in (1, b) for a, b in zip(aligned, sparse.shape)),
            f"a dense tensor of shape {list(dense.shape)} cannot be broadcast to the sparse shape {list(sparse.shape)}.",
        )
        picks = tuple(np.where(size == 1, 0, indices[:, axis]) for axis, size in enumerate(aligned))
        others = dense.reshape(aligned)[picks]
        if operation is np.divide and values.dtype.kind in "iu":
            return _quotients(values, others)
        with np.errstate(all="ignore"):
            return np.asarray(operation(values, others))

    return computed(op, f"{_SPARSE.format('sp')}, dense: T -> output: T", T=NUMBERS)(compute)


def _quotients(values: Array, others: Array) -> Array:
    """Divide; integers truncate towards zero."""
    ensure(bool((others != 0).all()), "an integer is divided by zero.")
    found = np.abs(values) // np.abs(others)
    return np.where((values < 0) != (others < 0), -found, found).astype(values.dtype)


SPARSEDENSECWISEADD = _dense_cwise("SparseDenseCwiseAdd", np.add)
SPARSEDENSECWISEMUL = _dense_cwise("SparseDenseCwiseMul", np.multiply)
SPARSEDENSECWISEDIV = _dense_cwise("SparseDenseCwiseDiv", np.divide)


def _dense_add_shapes(node: Node, given: Any) -> list[Shape]:
    indices, values, shape, dense = node.inputs
    ensure(
        indices.shape == (values.size, dense.ndim) and shape.size == dense.ndim,
        f"{indices} must have a vector of {dense.ndim} indices, the axes of {dense}, for each value.",
    )
    return [dense.shape]


@filled(
    "SparseTensorDenseAdd",
    "a_indices: Tindices[2], a_values: T[1], a_shape: Tindices[1], b: T -> output: T",
    _dense_add_shapes,
    T=NUMBERS,
    Tindices=INDICES,
)
def SPARSETENSORDENSEADD(given: Any, outputs: list[Array], indices: Array, values: Array, shape: Array, dense: Array) -> None:
    ensure(
        shape.tolist() == list(dense.shape), f"the shape {shape.tolist()} must be that of the dense tensor, {list(dense.shape)}."
    )
    outputs[0][...] = dense
    np.add.at(outputs[0].reshape(-1), row_numbers(indices, dense.shape), values)


class _Adjoints(NamedTuple):
    a: bool
    b: bool


def _adjoints(attributes: Attributes) -> _Adjoints:
    return _Adjoints(attributes.flag("adjoint_a", default=False), attributes.flag("adjoint_b", default=False))


@computed(
    "SparseTensorDenseMatMul",
    "a_indices: Tindices[2], a_values: T[1], a_shape: INT64[1], b: T[2] -> product: T",
    _adjoints,
    T=NUMBERS,
    Tindices=INDICES,
)
def SPARSETENSORDENSEMATMUL(given: _Adjoints, indices: Array, values: Array, shape: Array, dense: Array) -> Array:
    ensure(shape.size == 2, f"the sparse tensor has {shape.size} axes; a matrix has 2.")
    sparse = coordinates(indices, values, shape)
    rows, columns = (indices[:, 1], indices[:, 0]) if given.a else (indices[:, 0], indices[:, 1])
    height, inner = sparse.shape[::-1] if given.a else sparse.shape
    right = dense.conj().T if given.b else dense
    ensure(
        inner == right.shape[0], f"a sparse matrix of {height} x {inner} and a dense one of {list(right.shape)} have no product."
    )
    product = zeros((height, right.shape[1]), dense.dtype)
    weights = values.conj() if given.a else values
    order = np.argsort(rows, kind="stable")
    rows, columns, weights = rows[order], columns[order], weights[order]
    if rows.size and right.shape[1]:
        reserve((rows.size, right.shape[1]), dense.itemsize)
        starts = np.concatenate(([0], (rows[1:] != rows[:-1]).nonzero()[0] + 1))
        product[rows[starts]] = np.add.reduceat(weights[:, None] * right[columns], starts, 0)
    return product


def _transposes(attributes: Attributes) -> _Adjoints:
    return _Adjoints(attributes.flag("transpose_a", default=False), attributes.flag("transpose_b", default=False))


def _dense_shapes(node: Node, given: _Adjoints) -> list[Shape]:
    (height, inner), (depth, width) = (
        tensor.shape[::-1] if turned else tensor.shape for tensor, turned in zip(node.inputs, given)
    )
    ensure(inner == depth, f"{node.inputs[0]} and {node.inputs[1]} have no product: {inner} columns meet {depth} rows.")
    return [(height, width)]


@filled("SparseMatMul", "a: Ta[2], b: Tb[2] -> product: FLOAT32", _dense_shapes, _transposes, Ta=_MATRICES, Tb=_MATRICES)
def SPARSEMATMUL(given: _Adjoints, outputs: list[Array], a: Array, b: Array) -> None:
    left, right = ((matrix.T if turned else matrix).astype(np.float32) for matrix, turned in zip((a, b), given))
    multiply(left, right, outputs[0])
