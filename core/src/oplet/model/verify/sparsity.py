"""Verification of the sparsity tables of constants.

A sparse tensor is a tree with one level for each dimension, in traversal order, then one for each block dimension. A dense level has all
positions; a compressed level has those in its indices, of which the segments give each parent's range.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from oplet.errors import ModelError
from oplet.ops.strings import values_in
from oplet.schema.enums import DimensionType, TensorType
from oplet.schema.table import Table
from oplet.schema.tables import DimensionMetadata, SparsityParameters

__all__ = ["verify_sparsity"]

#: The most values of a vector in a message.
_SHOWN = 8


def verify_sparsity(sparsity: SparsityParameters, shape: Sequence[int], type: TensorType, size: int, what: str) -> None:
    """Check the sparsity table of a tensor against its shape and buffer.

    Args:
        sparsity: the table.
        shape: the tensor's shape.
        type: the tensor's type.
        size: the size of its buffer in bytes.
        what: the tensor's name in messages.

    Raises:
        ModelError: a rule is broken; the message names the level and the values.
    """
    broken = f"{what} has invalid sparsity parameters:"
    rank = len(shape)
    levels = sparsity.dim_metadata or ()
    order = _vector(sparsity.traversal_order, rank, "traversal order", broken)
    block_map = _vector(sparsity.block_map, rank, "block map", broken)
    total = rank + len(block_map)
    if sorted(order) != list(range(total)):
        raise ModelError(f"{broken} the traversal order {order} is not a permutation of 0 to {total - 1}.")
    if max(order[:rank], default=-1) >= rank:
        raise ModelError(f"{broken} the traversal order {order} visits a block before all of the {rank} dimensions.")
    if len(levels) != total:
        raise ModelError(f"{broken} it has metadata of {len(levels)} dimensions; {total} are traversed.")
    if len(set(block_map)) != len(block_map) or not all(0 <= axis < rank for axis in block_map):
        raise ModelError(f"{broken} the block map {block_map} must name different dimensions below {rank}.")
    extents = _extents(order, block_map, levels, shape, broken)
    count = 1
    for depth, (axis, level) in enumerate(zip(order, levels)):
        count = _verify_level(level, depth, count, extents[axis], depth >= rank, broken)
    if count > values_in(size, type):
        raise ModelError(f"{broken} it names {count} values of {type.name}, its buffer has {size} bytes.")


def _vector(values: NDArray[np.int32] | None, rank: int, name: str, broken: str) -> list[int]:
    if values is None:
        return []
    if values.size > 2 * rank:
        raise ModelError(f"{broken} the {name} has {values.size} entries for {rank} dimensions.")
    entries: list[int] = values.tolist()
    return entries


def _extents(
    order: Sequence[int], block_map: Sequence[int], levels: Sequence[DimensionMetadata], shape: Sequence[int], broken: str
) -> list[int]:
    """Return the length of each level: for blocked dimensions the number of blocks, for block dimensions the block size."""
    rank = len(shape)
    blocks = [levels[order.index(rank + k)].dense_size for k in range(len(block_map))]
    extents = [*shape, *blocks]
    for block, axis in zip(blocks, block_map):
        if block <= 0 or shape[axis] % block:
            raise ModelError(f"{broken} blocks of {block} do not divide dimension {axis} of the shape {list(shape)}.")
        extents[axis] //= block
    return extents


def _verify_level(level: DimensionMetadata, depth: int, parents: int, extent: int, is_block: bool, broken: str) -> int:
    """Check one level of a sparse tensor, under a level of `parents` positions; return the number of positions of this one."""
    if level.format == DimensionType.DENSE:
        if level.dense_size != extent:
            raise ModelError(
                f"{broken} dense level {depth} has size {level.dense_size}; its dimension is {extent} long."
            )  # fmt: skip
        return parents * extent
    if level.format != DimensionType.SPARSE_CSR:
        raise ModelError(f"{broken} level {depth} has the unknown format {int(level.format)}.")
    if is_block:
        raise ModelError(f"{broken} a block dimension is compressed; only whole blocks can be left out.")
    segments, indices = _values(level.array_segments), _values(level.array_indices)
    if len(segments) != parents + 1:
        raise ModelError(
            f"{broken} compressed level {depth} has {len(segments)} segment bounds; its {parents} parents take {parents + 1}."
        )
    if segments[0] != 0 or segments[-1] != len(indices) or bool((segments[1:] < segments[:-1]).any()):
        raise ModelError(
            f"{broken} the segments of level {depth} must run upwards from 0 to its {len(indices)} indices; they are {_short(segments)}."
        )
    if len(indices) and not 0 <= np.minimum.reduce(indices) <= np.maximum.reduce(indices) < extent:
        outside = indices[(indices < 0) | (indices >= extent)]
        raise ModelError(f"{broken} level {depth} has the index {_short(outside)}, outside its dimension of {extent}.")
    return len(indices)


def _values(vector: Table | None) -> NDArray[np.integer]:
    values = getattr(vector, "values", None)
    return np.zeros(0, np.int32) if values is None else values


def _short(values: NDArray[np.integer]) -> str:
    shown = ", ".join(str(value) for value in values[:_SHOWN].tolist())
    return f"[{shown}{', ...' if values.size > _SHOWN else ''}]"
