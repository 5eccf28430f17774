"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: rearrange pixels a block apart into batches, and back.

Numerics: tflite/kernels/internal/reference/space_to_batch_nd.h, tflite/kernels/internal/reference/batch_to_space_nd.h
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, islice
from math import prod
from typing import Any

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Copies, Shape, Thunk, copier
from oplet.kernels.axes import along, read_ints
from oplet.kernels.operands import PLAIN_TYPES, ensure_operands, ensure_plain, ensure_same_type
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet_builtin_ops.arithmetic.quantization import ensure_same_quantization
from oplet_builtin_ops.arithmetic.scaling import ensure_zero_point_is_zero
from oplet_builtin_ops.layers.program import Call, places, run_program

_QUANTIZED = (TensorType.UINT8, TensorType.INT8, TensorType.INT16)
#: The most positions within blocks that are copied one after the other, as long as there are no more of them than blocks.
_MANY = 64
#: The most copies that are one thunk, and the most numbers that they copy; a run can be stopped between others.
_FEW, _SMALL = 64, 1 << 16
#: For each spatial axis the padding (or cropping) before and after.
Margins = list[tuple[int, int]]


def prepare_space_to_batch(context: Context, node: Node) -> None:
    """Check a SPACE_TO_BATCH_ND node; set its output shape if blocks and paddings are constant."""
    _check(node)
    defer_or_resize(context, node, node.inputs[1:], _batched_shapes)


def prepare_batch_to_space(context: Context, node: Node) -> None:
    """Check a BATCH_TO_SPACE_ND node; set its output shape if blocks and crops are constant."""
    _check(node)
    defer_or_resize(context, node, node.inputs[1:], _spatial_shapes)


def bind_space_to_batch(context: Context, node: Node) -> Thunk:
    """Return the function that runs SPACE_TO_BATCH_ND."""
    return defer_or_run(context, node, _batched_shapes, _bind_space_to_batch, node.inputs[1:])


def bind_batch_to_space(context: Context, node: Node) -> Thunk:
    """Return the function that runs BATCH_TO_SPACE_ND."""
    return defer_or_run(context, node, _spatial_shapes, _bind_batch_to_space, node.inputs[1:])


def _check(node: Node) -> None:
    ensure_operands(node, 3)
    source, blocks, margins = node.inputs
    output = node.outputs[0]
    ensure(source.ndim in (3, 4), f"{source} must have 3 or 4 dimensions.")
    ensure_same_type(source, output)
    ensure_plain(source)
    if source.type in _QUANTIZED:
        ensure_same_quantization(source, output)
    if source.type == TensorType.INT16:
        ensure_zero_point_is_zero(source, output)
    for tensor in (blocks, margins):
        ensure_type(tensor, TensorType.INT32)


def _ensure_parameters_fit(node: Node) -> None:
    source, blocks, margins = node.inputs
    axes = source.ndim - 2
    ensure(blocks.shape == (axes,), f"{blocks} must hold the lengths of blocks along {axes} spatial axes of {source}.")
    ensure(margins.shape == (axes, 2), f"{margins} must have shape [{axes}, 2], a pair per spatial axis of {source}.")


def _blocks(node: Node) -> list[int]:
    blocks = read_ints(node.inputs[1])
    ensure(all(block > 0 for block in blocks), f"the block shape {blocks} must be above zero.")
    return blocks


def _margins(node: Node) -> Margins:
    values = read_ints(node.inputs[2])
    pairs = list(zip(values[::2], values[1::2]))
    ensure(min(values) >= 0, f"the paddings or crops {pairs} must not be negative.")
    return pairs


def _batched_shapes(node: Node) -> list[Shape]:
    _ensure_parameters_fit(node)
    batch, *dims, depth = node.inputs[0].shape
    blocks, margins = _blocks(node), _margins(node)
    padded = [dim + before + after for dim, (before, after) in zip(dims, margins)]
    for dim, block in zip(padded, blocks):
        ensure(dim % block == 0, f"{node.inputs[0]} padded by {margins} has length {dim}, which blocks of {block} do not divide.")
    return [(batch * prod(blocks), *(dim // block for dim, block in zip(padded, blocks)), depth)]


def _spatial_shapes(node: Node) -> list[Shape]:
    _ensure_parameters_fit(node)
    batch, *dims, depth = node.inputs[0].shape
    blocks, margins = _blocks(node), _margins(node)
    ensure(batch % prod(blocks) == 0, f"{node.inputs[0]} has a batch of {batch}, which blocks of {blocks} do not divide.")
    cropped = [dim * block - before - after for dim, block, (before, after) in zip(dims, blocks, margins)]
    ensure(min(cropped) >= 0, f"the crops {margins} take more than the {blocks} blocks of {node.inputs[0]} have.")
    return [(batch // prod(blocks), *cropped, depth)]


def _pairs(batched: Array, image: Array, blocks: list[int], margins: Margins) -> Iterator[tuple[Array, Array]]:
    """Yield pairs of views: a group of batches, and the image's strided pixels that correspond to it.

    There is a pair for each position within a block; along axes with few long blocks, one for each block instead. So there are
    never more pairs than the square root of the number of values.
    """
    batch, depth = image.shape[0], image.shape[-1]
    cells = batched.shape[1:-1]
    by_block = [block > max(_MANY, count) for block, count in zip(blocks, cells)]
    apart = batched.reshape(*blocks, batch, *cells, depth)
    rank = len(blocks)
    # The axes of `apart` that are left when each pair has selected a position or a block along each axis, in the image's order.
    left = [*(axis for axis in range(rank) if by_block[axis]), -1, *(axis for axis in range(rank) if not by_block[axis])]
    order = [left.index(axis) for axis in (-1, *range(rank))]
    counts = [count if whole else block for whole, block, count in zip(by_block, blocks, cells)]
    for numbers in places(counts):
        within: list[Any] = []
        among: list[Any] = []
        pixels = []
        for whole, number, block, (before, _), length in zip(by_block, numbers, blocks, margins, image.shape[1:]):
            if whole:
                start = number * block - before
                first, end = max(0, start), min(start + block, length)
                within.append(slice(first - start, max(first, end) - start))
                among.append(number)
                pixels.append(slice(first, max(first, end)))
            else:
                first = max(0, -(-(before - number) // block))
                start = first * block + number - before
                within.append(number)
                among.append(slice(first, first + max(0, -(-(length - start) // block))))
                pixels.append(slice(start, None, block))
        seen = image[along(1, *pixels)]
        if seen.size:
            picked = (*within, slice(None), *among)
            yield apart[picked].transpose(*order, rank + 1), seen


def _bind_space_to_batch(node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    blocks, margins = _blocks(node), _margins(node)
    padding: list[tuple[Array, Array]] = []
    if any(map(any, margins)):
        value = np.array(_padding(node.outputs[0]), output.dtype)
        padding.append((output, np.broadcast_to(value, output.shape)))
    return _copies(output.size, lambda: chain(padding, _pairs(output, source, blocks, margins)))


def _bind_batch_to_space(node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    blocks, margins = _blocks(node), _margins(node)
    return _copies(source.size, lambda: ((pixels, cells) for cells, pixels in _pairs(source, output, blocks, margins)))


def _copies(size: int, pairs: Callable[[], Iterator[tuple[Array, Array]]]) -> Thunk:
    """Return a function that copies source to target for each pair; few small copies become one step that can be fused with
    others.
    """
    few = list(islice(pairs(), _FEW + 1)) if size <= _SMALL else []
    if 0 < len(few) <= _FEW:
        return Copies(few)

    def calls() -> Iterator[Call]:
        return ((copier(target, source), ()) for target, source in pairs())

    return run_program(calls)


def _padding(output: Tensor) -> int:
    # LiteRT writes the zero point byte by byte, which is correct for one-byte types, and for zero.
    return output.zero_point if output.dtype.itemsize == 1 else 0


BATCH_TO_SPACE_ND = Registration(prepare=prepare_batch_to_space, bind=bind_batch_to_space, pure=True, types=PLAIN_TYPES)
SPACE_TO_BATCH_ND = Registration(
    prepare=prepare_space_to_batch,
    bind=bind_space_to_batch,
    pure=True,
    types=PLAIN_TYPES,
    differences="refuses negative paddings",
)
