"""Construction of sparse constants: the stored values, and the table with their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet.errors import ModelError, text_of
from oplet.model.builders.arguments import SIZES, Kind, takes
from oplet.schema.enums import DimensionType
from oplet.schema.table import Table
from oplet.schema.tables import DimensionMetadata, Int32Vector, SparsityParameters, Uint8Vector, Uint16Vector
from oplet.texts import shown

__all__ = ["Sparse", "sparsify", "stored_values"]

DENSE, SPARSE_CSR = DimensionType.DENSE, DimensionType.SPARSE_CSR


_FORMAT = Kind("a list of DENSE and SPARSE_CSR", lambda value: isinstance(value, (list, tuple)))


class Sparse(NamedTuple):
    """A sparse constant: `add_tensor(..., data=sparse.values, sparsity=sparse.sparsity)`.

    Attributes:
        values: the stored values, in storage order, of one dimension.
        sparsity: the tensor's sparsity table.
    """

    values: NDArray[Any]
    sparsity: SparsityParameters


@takes(format=_FORMAT, traversal_order=SIZES, block_map=SIZES, block_size=SIZES)
def sparsify(
    array: Any,
    format: Sequence[DimensionType | str] | None = None,
    *,
    traversal_order: Sequence[int] | None = None,
    block_map: Sequence[int] = (),
    block_size: Sequence[int] = (),
) -> Sparse:
    """Convert an array to a sparse constant without its zeros, as TensorFlow's format converter does.

    Args:
        array: the dense values.
        format: DENSE or SPARSE_CSR for each dimension of the array; by default the last one is sparse and the others dense. Block
            dimensions are always dense.
        traversal_order: the order in which dimensions are stored: first the array's dimensions by number, then the block dimensions,
            whose numbers follow. By default the array's order.
        block_map: the dimensions that are divided into blocks, ascending.
        block_size: the block length along each of them.

    Raises:
        ModelError: the arguments do not fit the array.

    Examples:
        >>> values, sparsity = sparsify(np.array([[0, 5, 0], [0, 0, 0], [1, 0, 2]]))
        >>> values.tolist()
        [5, 1, 2]
        >>> sparsity.dim_metadata[1].array_segments.values.tolist()
        [0, 1, 1, 3]
        >>> sparsity.dim_metadata[1].array_indices.values.tolist()
        [1, 0, 2]
    """
    try:
        array = np.asarray(array)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{shown(repr(array))} are no values that could be stored sparse: {text_of(error)}.") from error
    if array.dtype.kind not in "biufcV":
        raise ModelError(f"Values of numpy's {array.dtype} cannot be stored sparse.")
    rank = array.ndim
    if not rank:
        raise ModelError("A scalar cannot be sparse.")
    blocks, lengths = [int(d) for d in block_map], [int(n) for n in block_size]
    if len(blocks) != len(lengths) or blocks != sorted(set(blocks)) or not all(0 <= d < rank for d in blocks):
        raise ModelError(
            f"The block map {blocks} with the sizes {lengths} does not name rising dimensions of the shape {list(array.shape)}."
        )
    expanded = _cut(array, blocks, lengths)
    order = list(range(expanded.ndim)) if traversal_order is None else [int(d) for d in traversal_order]
    if sorted(order[:rank]) != list(range(rank)) or sorted(order) != list(range(expanded.ndim)):
        raise ModelError(
            f"The traversal order {order} is not an order of {rank} dimensions followed by one of {len(blocks)} blocks."
        )
    kinds = _kinds(format, rank) + [DENSE] * len(blocks)
    values, levels = _store(expanded.transpose(order), [kinds[d] for d in order])
    sparsity = SparsityParameters(traversal_order=np.array(order, np.int32), dim_metadata=levels)
    if blocks:
        sparsity.block_map = np.array(blocks, np.int32)
    return Sparse(values, sparsity)


def _kinds(format: Sequence[DimensionType | str] | None, rank: int) -> list[DimensionType]:
    if format is None:
        return [DENSE] * (rank - 1) + [SPARSE_CSR]
    try:
        kinds = [DimensionType[kind] if isinstance(kind, str) else DimensionType(kind) for kind in format]
    except (KeyError, ValueError) as error:
        raise ModelError(f"The format {list(format)} has {error}; a dimension is DENSE or SPARSE_CSR.") from None
    if len(kinds) != rank:
        raise ModelError(f"The format {[kind.name for kind in kinds]} names {len(kinds)} dimensions of {rank}.")
    return kinds


def _cut(array: NDArray[Any], blocks: list[int], lengths: list[int]) -> NDArray[Any]:
    """Split each blocked dimension of the array in two: the blocks in its place, the elements within a block at the end."""
    shape: list[int] = []
    outer: list[int] = []
    inner: list[int] = []
    sizes = dict(zip(blocks, lengths))
    for dimension, size in enumerate(array.shape):
        outer.append(len(shape))
        if dimension in sizes:
            length = sizes[dimension]
            if length < 1 or size % length:
                raise ModelError(f"Blocks of {length} do not divide dimension {dimension} of the shape {list(array.shape)}.")
            inner.append(len(shape) + 1)
            shape += [size // length, length]
        else:
            shape.append(size)
    cut: NDArray[Any] = array.reshape(shape).transpose(outer + inner)
    return cut


def _store(array: NDArray[Any], kinds: list[DimensionType]) -> tuple[NDArray[Any], list[DimensionMetadata]]:
    """Return the stored values and each level's metadata: a dense level stores all slices, a sparse one those with nonzeros."""
    # By this comparison -0.0 is dropped and NaN is kept.
    nonzero: NDArray[np.bool_] = np.not_equal(array, 0)
    kept = np.zeros((1, 0), np.intp)  # one row per stored node of the tree: its coordinates down to this level
    levels = []
    for depth, (size, kind) in enumerate(zip(array.shape, kinds)):
        parents = np.repeat(np.arange(len(kept)), size)
        places = np.tile(np.arange(size), len(kept))
        if kind == SPARSE_CSR:
            occupied = np.any(nonzero, axis=tuple(range(depth + 1, array.ndim)))
            keep = occupied[tuple(np.column_stack([kept[parents], places]).T)]
            parents, places = parents[keep], places[keep]
            segments = np.concatenate([[0], np.cumsum(np.bincount(parents, minlength=len(kept)))])
            levels.append(
                DimensionMetadata(format=SPARSE_CSR, array_segments=_index_vector(segments), array_indices=_index_vector(places))
            )
        else:
            levels.append(DimensionMetadata(format=DENSE, dense_size=size))
        kept = np.column_stack([kept[parents], places])
    return array[tuple(kept.T)], levels


def _index_vector(values: NDArray[Any]) -> Table:
    """Make an index vector of the narrowest type that can hold the values, as TensorFlow's exporter chooses it."""
    highest = int(values.max(initial=0))
    if highest <= 0xFF:
        return Uint8Vector(values=values.astype(np.uint8))
    if highest <= 0xFFFF:
        return Uint16Vector(values=values.astype(np.uint16))
    return Int32Vector(values=values.astype(np.int32))


def stored_values(sparsity: SparsityParameters) -> int:
    """Count the values that a sparse tensor stores."""
    count = 1
    for level in sparsity.dim_metadata or []:
        if level.format == DENSE:
            count *= level.dense_size
        else:
            indices = getattr(level.array_indices, "values", None)
            count = 0 if indices is None else len(indices)
    return count
