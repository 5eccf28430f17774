"""Ops that rearrange sparse tensors: SparseReorder, SparseReshape, SparseSlice, SparseConcat, SparseSplit, SparseFillEmptyRows
and SparseToDense.

Numerics: tensorflow/core/kernels/{sparse_reorder_op.cc,reshape_util.cc,sparse_slice_op.cc,sparse_concat_op.cc,sparse_split_op.cc,
sparse_fill_empty_rows_op.cc,sparse_to_dense_op.cc}
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from oplet import Node, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_ints, resolve_axis
from oplet.kernels.limits import paced
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import computed, filled, reserve
from oplet_flex_ops.ops.sparse.coordinates import coordinates, shape_of, vectors
from oplet_flex_ops.positions import row_numbers
from oplet_flex_ops.signature import INDICES


def _validated(attributes: Attributes) -> bool:
    return attributes.flag("validate_indices", default=True)


@computed(
    "SparseReorder",
    "input_indices: INT64[2], input_values: T[1], input_shape: INT64[1] -> output_indices: INT64, output_values: T",
)
def SPARSEREORDER(given: Any, indices: Array, values: Array, shape: Array) -> list[Array]:
    order = np.argsort(coordinates(indices, values, shape).places, kind="stable")
    return [indices[order], values[order]]


@computed(
    "SparseReshape",
    "input_indices: INT64[2], input_shape: INT64[1], new_shape: INT64[1] -> output_indices: INT64, output_shape: INT64",
)
def SPARSERESHAPE(given: Any, indices: Array, shape: Array, new_shape: Array) -> list[Array]:
    old, wanted = shape_of(shape), new_shape.tolist()
    ensure(indices.shape[1] == len(old), f"indices of {indices.shape[1]} axes do not fit the shape {list(old)}.")
    ensure(len(wanted) <= 32 and wanted.count(-1) <= 1, f"the new shape {wanted!r:.60} has more than 32 axes or one -1.")
    if -1 in wanted:
        known = prod(size for size in wanted if size != -1)
        ensure(known > 0 and prod(old) % known == 0, f"the new shape {wanted} does not fit the shape {list(old)}.")
        wanted[wanted.index(-1)] = prod(old) // known
    ensure(min(wanted, default=0) >= 0 and prod(wanted) == prod(old), f"the shape {list(old)} cannot become {wanted}.")
    return [vectors(row_numbers(indices, old), wanted), np.array(wanted, np.int64)]


@computed(
    "SparseSlice",
    "indices: INT64[2], values: T[1], shape: INT64[1], start: INT64[1], size: INT64[1] "
    "-> output_indices: INT64, output_values: T, output_shape: INT64",
)
def SPARSESLICE(given: Any, indices: Array, values: Array, shape: Array, start: Array, size: Array) -> list[Array]:
    sizes = np.array(coordinates(indices, values, shape).shape, np.int64)
    ensure(start.shape == size.shape == shape.shape, f"start and size must have {shape.size} numbers each, one for an axis.")
    ensure(
        bool((size >= 0).all() and (start >= 0).all()), f"start {start.tolist()} and size {size.tolist()} must not be negative."
    )
    extent = np.clip(sizes - start, 0, size)
    inside = ((indices >= start) & (indices - start < extent)).all(1)
    return [indices[inside] - start, values[inside], extent]


@computed(
    "SparseConcat",
    "indices: N*INT64[2], values: N*T[1], shapes: N*INT64[1] -> output_indices: INT64, output_values: T, output_shape: INT64",
    lambda attributes: attributes.integer("concat_dim"),
)
def SPARSECONCAT(axis: int, *operands: Array) -> list[Array]:
    count = len(operands) // 3
    indices, values, shapes = operands[:count], operands[count : 2 * count], operands[2 * count :]
    tensors = [coordinates(*parts) for parts in zip(indices, values, shapes)]
    first = tensors[0].shape
    at = resolve_axis(axis, len(first), "concat_dim")
    moved, offset = [], 0
    for tensor, vector in zip(tensors, indices):
        same = len(tensor.shape) == len(first) and all(a == b for n, (a, b) in enumerate(zip(tensor.shape, first)) if n != at)
        ensure(same, f"the shapes {list(first)} and {list(tensor.shape)} differ beside axis {at}.")
        shifted = vector.copy()
        shifted[:, at] += offset
        moved.append(shifted)
        offset += tensor.shape[at]
    shape = np.array([*first[:at], offset, *first[at + 1 :]], np.int64)
    joined = np.concatenate(moved)
    order = np.argsort(row_numbers(joined, shape.tolist()), kind="stable")
    return [joined[order], np.concatenate(values)[order], shape]


@computed(
    "SparseSplit",
    "split_dim: INT64, indices: INT64[2], values: T[1], shape: INT64[1] "
    "-> output_indices: num_split*INT64, output_values: num_split*T, output_shape: num_split*INT64",
    lambda attributes: attributes.integer("num_split", least=1, most=1 << 16),
)
def SPARSESPLIT(count: int, split_dim: Array, indices: Array, values: Array, shape: Array) -> list[Array]:
    sizes = coordinates(indices, values, shape).shape
    ensure(split_dim.size == 1, f"split_dim must be one axis, not {split_dim.size}.")
    axis = resolve_axis(int(split_dim.reshape(-1)[0]), len(sizes), "split_dim")
    ensure(count <= sizes[axis], f"axis {axis} of size {sizes[axis]} cannot be split into {count} pieces.")
    each, more = divmod(sizes[axis], count)
    pieces = []
    for number in paced(range(count), 4):
        start, length = number * each + min(number, more), each + (number < more)
        inside = (indices[:, axis] >= start) & (indices[:, axis] < start + length)
        part = indices[inside]
        part[:, axis] -= start
        pieces.append((part, values[inside], np.array([*sizes[:axis], length, *sizes[axis + 1 :]], np.int64)))
    return [piece[kind] for kind in range(3) for piece in pieces]


@computed(
    "SparseFillEmptyRows",
    "indices: INT64[2], values: T[1], dense_shape: INT64[1], default_value: T[0] "
    "-> output_indices: INT64, output_values: T, empty_row_indicator: BOOL, reverse_index_map: INT64",
)
def SPARSEFILLEMPTYROWS(given: Any, indices: Array, values: Array, shape: Array, default: Array) -> list[Array]:
    sizes = coordinates(indices, values, shape).shape
    ensure(len(sizes) >= 1, "a sparse tensor without axes has no rows to fill.")
    reserve((sizes[0], len(sizes) + 2), 8)
    rows = indices[:, 0]
    empty = np.ones(sizes[0], np.bool_)
    empty[rows] = False
    places = np.flatnonzero(empty)
    order = np.argsort(np.concatenate((rows, places)), kind="stable")
    more = np.zeros((places.size, len(sizes)), np.int64)
    more[:, 0] = places
    filler = np.empty(places.size, values.dtype)
    filler[...] = default
    back = np.empty(order.size, np.int64)
    back[order] = np.arange(order.size)
    return [np.concatenate((indices, more))[order], np.concatenate((values, filler))[order], empty, back[: rows.size]]


def _dense_shapes(node: Node, validate: bool) -> list[Shape]:
    indices, shape, values, _ = node.inputs
    sizes = read_ints(shape)
    ensure(len(sizes) <= 32 and min(sizes, default=0) >= 0, f"{shape} holds {sizes!r:.60}, which is no shape.")
    count = indices.shape[0] if indices.ndim else 1
    axes = indices.shape[1] if indices.ndim == 2 else 1
    ensure(indices.ndim <= 2 and axes == len(sizes), f"{indices} must have a vector of {len(sizes)} indices for each value.")
    ensure(
        values.ndim == 0 or values.shape == (count,), f"{values} must be a scalar, or have {count} values, as there are indices."
    )
    return [tuple(sizes)]


@filled(
    "SparseToDense",
    "sparse_indices: Tindices, output_shape: Tindices[1]!, sparse_values: T, default_value: T[0] -> dense: T",
    _dense_shapes,
    _validated,
    Tindices=INDICES,
)
def SPARSETODENSE(validate: bool, outputs: list[Array], indices: Array, shape: Array, values: Array, default: Array) -> None:
    output = outputs[0]
    places = row_numbers(indices if indices.ndim == 2 else indices.reshape(-1, 1), output.shape)
    ensure(not validate or bool((places[1:] > places[:-1]).all()), "the indices are not in ascending order, each once.")
    output[...] = default
    output.reshape(-1)[places] = values
