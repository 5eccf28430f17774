"""Ops that move blocks between space and batch or depth: SpaceToBatch(ND), BatchToSpace(ND), SpaceToDepth, DepthToSpace.

Numerics: tensorflow/core/kernels/{spacetobatch_op.cc,batchtospace_op.cc,spacetodepth_op.cc,depthtospace_op.cc}
"""

from __future__ import annotations

from itertools import chain
from math import prod
from typing import Any, NamedTuple

from oplet import Node, ensure
from oplet.kernels.arrays import Array, Shape, Thunk, copier
from oplet.kernels.axes import read_ints
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import shaped, zeros
from oplet_flex_ops.signature import INDICES


class _Blocks(NamedTuple):
    sizes: list[int]
    before: list[int]
    after: list[int]


def _blocks(node: Node, size: int | None) -> _Blocks:
    """Read block sizes, and paddings or crops, of each axis; `size` is the block size if it is an attribute."""
    source, edges = node.inputs[0], node.inputs[-1]
    sizes = read_ints(node.inputs[1]) if size is None else [size, size]
    ensure(size is None or source.ndim == 4, f"{source} must have 4 dimensions.")
    ensure(len(sizes) < source.ndim <= 12, f"{source} must have a batch and the {len(sizes)} axes of blocks, 12 axes at most.")
    ensure(edges.shape == (len(sizes), 2), f"{edges} must have a row of two for each of the {len(sizes)} axes of blocks.")
    values = read_ints(edges)
    ensure(min(sizes, default=1) >= 1, f"the block sizes {sizes} must be above zero.")
    ensure(min(values, default=0) >= 0, f"{edges} holds {values}, which must not be negative.")
    return _Blocks(sizes, values[::2], values[1::2])


def _to_batch_shapes(node: Node, size: int | None) -> list[Shape]:
    blocks, shape = _blocks(node, size), node.inputs[0].shape
    padded = [length + before + after for length, before, after in zip(shape[1:], blocks.before, blocks.after)]
    for length, block in zip(padded, blocks.sizes):
        ensure(length % block == 0, f"a padded axis of {length} cannot be divided by the block size {block}.")
    space = [length // block for length, block in zip(padded, blocks.sizes)]
    return [(shape[0] * prod(blocks.sizes), *space, *shape[1 + len(space) :])]


def _to_batch(node: Node, size: int | None) -> Thunk:
    blocks, source, output = _blocks(node, size), node.inputs[0].data, node.outputs[0].data
    count = len(blocks.sizes)
    sizes = [length + b + a for length, b, a in zip(source.shape[1:], blocks.before, blocks.after)]
    padded = zeros((source.shape[0], *sizes, *source.shape[1 + count :]), source.dtype)
    middle = (slice(None), *(slice(b, b + length) for b, length in zip(blocks.before, source.shape[1:])))
    inner = padded[middle]
    apart = padded.reshape(source.shape[0], *_pairs(sizes, blocks.sizes), *source.shape[1 + count :])
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count, 2), *range(2 * count + 1, apart.ndim)]
    turned = apart.transpose(order)
    target = output.reshape(turned.shape)

    def run() -> None:
        inner[...] = source
        target[...] = turned

    return run


def _pairs(sizes: list[int], blocks: list[int]) -> list[int]:
    return list(chain.from_iterable((length // block, block) for length, block in zip(sizes, blocks)))


def _to_space_shapes(node: Node, size: int | None) -> list[Shape]:
    blocks, shape = _blocks(node, size), node.inputs[0].shape
    ensure(shape[0] % prod(blocks.sizes) == 0, f"the batch of {shape[0]} cannot be divided into blocks of {blocks.sizes}.")
    space = [n * block - b - a for n, block, b, a in zip(shape[1:], blocks.sizes, blocks.before, blocks.after)]
    ensure(min(space, default=0) >= 0, f"the crops {blocks.before} and {blocks.after} take more than there is.")
    return [(shape[0] // prod(blocks.sizes), *space, *shape[1 + len(space) :])]


def _to_space_views(node: Node, size: int | None) -> list[Array]:
    blocks, source = _blocks(node, size), node.inputs[0].data
    count, batch = len(blocks.sizes), node.outputs[0].shape[0]
    apart = source.reshape(*blocks.sizes, batch, *source.shape[1:])
    order = [count, *chain.from_iterable((count + 1 + axis, axis) for axis in range(count)), *range(2 * count + 1, apart.ndim)]
    sizes = [n * block for n, block in zip(source.shape[1:], blocks.sizes)]
    whole = apart.transpose(order).reshape(batch, *sizes, *source.shape[1 + count :])
    middle = (slice(None), *(slice(b, length - a) for b, a, length in zip(blocks.before, blocks.after, sizes)))
    return [whole[middle]]


def _to_space(node: Node, size: int | None) -> Thunk:
    output = node.outputs[0].data

    def run() -> None:
        output[...] = _to_space_views(node, size)[0]

    return run


def _block_size(attributes: Attributes) -> int:
    return attributes.integer("block_size", least=2, most=1 << 20)


_TO_BATCH: dict[str, Any] = {"Tpaddings": INDICES, "Tblock_shape": INDICES}
_TO_SPACE: dict[str, Any] = {"Tcrops": INDICES, "Tblock_shape": INDICES, "Tidx": INDICES}

SPACETOBATCH = shaped(
    "SpaceToBatch", "input: T, paddings: Tpaddings[2]! -> output: T", _to_batch_shapes, _block_size, **_TO_BATCH
)(_to_batch)
SPACETOBATCHND = shaped(
    "SpaceToBatchND",
    "input: T, block_shape: Tblock_shape[1]!, paddings: Tpaddings[2]! -> output: T",
    _to_batch_shapes,
    **_TO_BATCH,
)(_to_batch)
BATCHTOSPACE = shaped("BatchToSpace", "input: T, crops: Tidx[2]! -> output: T", _to_space_shapes, _block_size, **_TO_SPACE)(
    _to_space
)
BATCHTOSPACEND = shaped(
    "BatchToSpaceND", "input: T, block_shape: Tblock_shape[1]!, crops: Tcrops[2]! -> output: T", _to_space_shapes, **_TO_SPACE
)(_to_space)


def _depth_block(attributes: Attributes) -> int:
    attributes.text("data_format", "NHWC", default="NHWC")
    return _block_size(attributes)


def _to_depth_shapes(node: Node, block: int) -> list[Shape]:
    source = node.inputs[0]
    ensure(source.ndim == 4, f"{source} must have 4 dimensions.")
    batch, height, width, depth = source.shape
    ensure(height % block == 0 and width % block == 0, f"{source} has rows or columns that blocks of {block} do not divide.")
    return [(batch, height // block, width // block, depth * block * block)]


@shaped("SpaceToDepth", "input: T -> output: T", _to_depth_shapes, _depth_block)
def SPACETODEPTH(node: Node, block: int) -> Thunk:
    batch, height, width, depth = node.inputs[0].shape
    return _turner(node, (batch, height // block, block, width // block, block, depth))


def _turner(node: Node, shape: Shape) -> Thunk:
    """Return the function that copies the input, seen in this shape, with its third and fourth axis exchanged."""
    turned = node.inputs[0].data.reshape(shape).transpose(0, 1, 3, 2, 4, 5)
    return copier(node.outputs[0].data.reshape(turned.shape), turned)


def _from_depth_shapes(node: Node, block: int) -> list[Shape]:
    source = node.inputs[0]
    ensure(source.ndim == 4, f"{source} must have 4 dimensions.")
    batch, height, width, depth = source.shape
    ensure(depth % (block * block) == 0, f"{source} has {depth} channels, which blocks of {block} x {block} do not divide.")
    return [(batch, height * block, width * block, depth // (block * block))]


@shaped("DepthToSpace", "input: T -> output: T", _from_depth_shapes, _depth_block)
def DEPTHTOSPACE(node: Node, block: int) -> Thunk:
    batch, height, width, depth = node.inputs[0].shape
    return _turner(node, (batch, height, width, block, block, depth // (block * block)))
