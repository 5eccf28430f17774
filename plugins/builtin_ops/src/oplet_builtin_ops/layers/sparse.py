"""Converts sparse constants to dense arrays. Numerics: tflite/kernels/internal/utils/sparsity_format_converter.cc

A sparse tensor is a tree with one level for each dimension, in traversal order, and then one for each block dimension: a dense
level has all positions, a compressed one has the positions in its indices, of which each parent has a range (a segment).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import ensure
from oplet.schema.enums import DimensionType
from oplet.schema.tables import DimensionMetadata, SparsityParameters

__all__ = ["densify"]

Indices = NDArray[np.int64]


def densify(
    values: NDArray[Any], sparsity: SparsityParameters, shape: tuple[int, ...], out: NDArray[Any] | None = None
) -> NDArray[Any]:
    """Convert the stored values of a sparse constant to a dense array of `shape`.

    Args:
        values: the stored values, in the order of the sparsity table's traversal; surplus ones are ignored.
        sparsity: the sparsity table.
        shape: the dense shape.
        out: receives the result, contiguous; a new array unless given.

    Raises:
        EnsureError: the table contradicts itself, the shape, or the number of values.
    """
    order, block_map = _integers(sparsity.traversal_order), _integers(sparsity.block_map)
    levels = list(sparsity.dim_metadata or ())
    rank = len(shape)
    _check_structure(order, block_map, levels, rank)
    blocks = [levels[order.index(rank + k)].dense_size for k in range(len(block_map))]
    extents = list(shape) + blocks
    for block, axis in zip(blocks, block_map):
        fits = block > 0 and shape[axis] % block == 0
        ensure(fits, f"blocks of {block} do not divide dimension {axis} of the shape {list(shape)}.")
        extents[axis] //= block
    # The distance in memory of neighbours along each dimension, and along those of blocks.
    steps = [math.prod(shape[axis + 1 :]) for axis in range(rank)]
    steps += [steps[axis] for axis in block_map]
    for block, axis in zip(blocks, block_map):
        steps[axis] *= block
    places = _walk(order, levels, extents, steps)
    ensure(
        len(places) <= values.size, lambda: f"the sparsity metadata name {len(places)} values, the buffer holds {values.size}."
    )
    if out is None:
        dense = np.zeros(shape, values.dtype)
    else:
        dense = out
        dense.fill(0)
    dense.reshape(-1)[places] = values.reshape(-1)[: len(places)]
    return dense


def _integers(array: NDArray[np.int32] | None) -> list[int]:
    return [] if array is None else array.tolist()


def _check_structure(order: list[int], block_map: list[int], levels: list[DimensionMetadata], rank: int) -> None:
    total = rank + len(block_map)
    ensure(sorted(order) == list(range(total)), lambda: f"the traversal order {order} is not a permutation of 0 to {total - 1}.")
    ensure(
        max(order[:rank], default=-1) < rank,
        lambda: f"the traversal order {order} visits a block before all of the {rank} dimensions.",
    )
    ensure(len(levels) == total, lambda: f"there are metadata of {len(levels)} dimensions; {total} are traversed.")
    inside = all(0 <= axis < rank for axis in block_map) and len(set(block_map)) == len(block_map)
    ensure(inside, lambda: f"the block map {block_map} must name different dimensions below {rank}.")
    for level in levels[rank:]:
        ensure(level.format == DimensionType.DENSE, "a block dimension is compressed; only whole blocks can be left out.")


def _walk(order: list[int], levels: list[DimensionMetadata], extents: list[int], steps: list[int]) -> Indices:
    """Return the flat dense index of every stored value.

    Args:
        order: the traversal order.
        levels: the levels of the tree.
        extents: the size of each dimension.
        steps: the distance in memory of neighbours along each dimension.
    """
    places = np.zeros(1, np.int64)
    room = 1
    for depth, (axis, level) in enumerate(zip(order, levels)):
        extent = extents[axis]
        room *= extent
        if level.format == DimensionType.DENSE:
            if level.dense_size != extent:
                ensure(False, f"dense level {depth} has size {level.dense_size}; its dimension is {extent} long.")
            if extent != 1:
                places = (places[:, None] + np.arange(extent) * steps[axis]).reshape(-1)
        else:
            lengths, found = _compressed(depth, level, len(places), extent)
            if len(found) > room:
                ensure(False, f"level {depth} stores {len(found)} positions where there are {room}.")
            places = places.repeat(lengths.astype(np.intp, copy=False))
            places += found * steps[axis]
    return places


def _compressed(depth: int, level: DimensionMetadata, parents: int, extent: int) -> tuple[Indices, Indices]:
    """Decode a compressed (CSR) level: return the number of children of each parent, and the children's positions."""
    segments, indices = (_vector(union) for union in (level.array_segments, level.array_indices))
    ensure(
        len(segments) == parents + 1,
        lambda: f"compressed level {depth} has {len(segments)} segment bounds; its {parents} parents take {parents + 1}.",
    )
    lengths = segments[1:] - segments[:-1]
    ensure(
        segments[0] == 0 and np.minimum.reduce(lengths, initial=0) == 0 and segments[-1] == len(indices),
        lambda: (
            f"the segments of level {depth} must run upwards from 0 to its {len(indices)} indices; they are {_short(segments)}."
        ),
    )
    if indices.size and not 0 <= np.minimum.reduce(indices) <= np.maximum.reduce(indices) < extent:
        outside = indices[(indices < 0) | (indices >= extent)]
        ensure(False, f"level {depth} has the index {_short(outside)}, outside its dimension of {extent}.")
    return lengths, indices


def _vector(union: Any) -> Indices:
    values = None if union is None else union.values
    return np.zeros(0, np.int64) if values is None else np.asarray(values, np.int64)


def _short(values: Indices) -> str:
    shown = ", ".join(str(value) for value in values[:8])
    return f"[{shown}{', ...' if values.size > 8 else ''}]"
