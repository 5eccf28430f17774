"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND: pixels that lie a block apart, gathered into batches of their own, and back.

Numerics: tflite/kernels/internal/reference/space_to_batch_nd.h, tflite/kernels/internal/reference/batch_to_space_nd.h
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import prod

from oplet import Context, Node, Tensor, TensorType, ensure, ensure_type
from oplet_builtin_ops.arithmetic.scaling import ensure_zero_point_is_zero
from oplet_builtin_ops.layers.program import run_calls
from oplet_builtin_ops.shaping.shapes import (
    Array,
    Shape,
    Thunk,
    along,
    copier,
    defer_or_resize,
    defer_or_run,
    ensure_operands,
    ensure_plain,
    ensure_same_quantization,
    ensure_same_type,
    read_ints,
)

__all__ = ["bind_batch_to_space", "bind_space_to_batch", "prepare_batch_to_space", "prepare_space_to_batch"]

_QUANTIZED = (TensorType.UINT8, TensorType.INT8, TensorType.INT16)
#: Two numbers for each spatial axis: what is added (or cut off) in front and behind.
Margins = list[tuple[int, int]]


def prepare_space_to_batch(context: Context, node: Node) -> None:
    """Check a SPACE_TO_BATCH_ND node and size its output, if blocks and paddings are known by now."""
    _check(node)
    defer_or_resize(context, node, node.inputs[1:], _batched_shapes)


def prepare_batch_to_space(context: Context, node: Node) -> None:
    """Check a BATCH_TO_SPACE_ND node and size its output, if blocks and crops are known by now."""
    _check(node)
    defer_or_resize(context, node, node.inputs[1:], _spatial_shapes)


def bind_space_to_batch(context: Context, node: Node) -> Thunk:
    """The thunk of a SPACE_TO_BATCH_ND node."""
    return defer_or_run(context, node, _batched_shapes, _bind_space_to_batch)


def bind_batch_to_space(context: Context, node: Node) -> Thunk:
    """The thunk of a BATCH_TO_SPACE_ND node."""
    return defer_or_run(context, node, _spatial_shapes, _bind_batch_to_space)


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
    """Views of the batches and of the image's pixels that belong together, one pair for each place within a block."""
    batch = image.shape[0]
    for number, places in enumerate(product(*map(range, blocks))):
        cells, pixels = [], []
        for place, block, (before, _), length in zip(places, blocks, margins, image.shape[1:]):
            first = max(0, -(-(before - place) // block))
            start = first * block + place - before
            count = max(0, -(-(length - start) // block))
            cells.append(slice(first, first + count))
            pixels.append(slice(start, None, block))
        if all(cell.stop > cell.start for cell in cells):
            yield batched[along(0, slice(number * batch, (number + 1) * batch), *cells)], image[along(1, *pixels)]


def _bind_space_to_batch(node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    copies = [copier(cells, pixels) for cells, pixels in _pairs(output, source, _blocks(node), _margins(node))]
    if any(any(pair) for pair in _margins(node)):
        copies.insert(0, partial(output.fill, _padding(node.outputs[0])))
    return run_calls((copy, ()) for copy in copies)


def _bind_batch_to_space(node: Node) -> Thunk:
    pairs = _pairs(node.inputs[0].data, node.outputs[0].data, _blocks(node), _margins(node))
    return run_calls((copier(pixels, cells), ()) for cells, pixels in pairs)


def _padding(output: Tensor) -> int:
    # LiteRT writes the zero point byte by byte, which is right for one byte, and for zero.
    return output.zero_point if output.dtype.itemsize == 1 else 0
