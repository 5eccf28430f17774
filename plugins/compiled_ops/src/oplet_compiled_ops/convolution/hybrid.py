"""Hybrid layers: float activations, quantized to 8 bits at run time, times integer weights.

On processors with dot products of bytes (AVX-512 VNNI), layers of all sizes are computed in integers. On others only layers of up
to four rows are computed here; they read each weight once, as a byte.
"""

from __future__ import annotations

from math import prod

import numpy as np

from oplet import Context, Node, TensorType, charge, decline
from oplet.kernels.activations import CLAMPS, float_activation_range
from oplet.kernels.windows import Windows2D
from oplet_builtin_ops.layers.blocks import block_scales
from oplet_builtin_ops.layers.hybrid_layer import HybridLayer
from oplet_compiled_ops.convolution import PAD_BATCHES, SCALED_ROWS, scaled_kernel
from oplet_compiled_ops.convolution.products import BLOCK_BYTES, Layout, layout_of, panel_vectors, panels_of
from oplet_compiled_ops.convolution.row_quantization import QUANTIZE_BYTES, ROWS_TO_FLOATS, quantization_of
from oplet_compiled_ops.library.kernels import kernel
from oplet_compiled_ops.library.levels import LANES, has_byte_products
from oplet_compiled_ops.library.memory import Array, address, aligned, padded_rows
from oplet_compiled_ops.overriding import Bind, Thunk, charge_constant
from oplet_compiled_ops.threads.splitting import cut, each, grid
from oplet_compiled_ops.threads.team import Step, ready, thunk

__all__ = ["multiplies_bytes", "plan_hybrid_rows", "plan_scaled_tiles"]

#: The most rows; for more, a matrix product is faster than reading bytes.
_FEW = 4
#: The least weights of a part.
_WORTH = 100_000
#: The least rows of weights of a block; in smaller ones the overhead is larger than the products.
_SMALLEST = 16
#: The most products of bytes whose sum is surely an int32.
_DEEPEST = (2**31 - 1) // (256 * 128)
#: The most weights of a block whose sum, 8 times as large at most, is an int16.
_LONGEST = (2**15 - 1) // 8
#: The least multiply-adds of a part, and the least values of a part of a copy.
_WORTH_BYTES, _WORTH_COPYING = 250_000, 8_000
_NARROW = TensorType.INT4, TensorType.INT2


def multiplies_bytes(layer: HybridLayer) -> bool:
    """Return whether `plan_scaled_tiles` (byte products) can compute this layer (constant weights) on this processor."""
    weights, size = layer.weights, layer.block_size
    if not has_byte_products() or layer.activation not in CLAMPS or not layer.channels or not layer.batches:
        return False
    if size:
        return layer.even and size <= _LONGEST and layer.axis == 0
    return weights.dtype.itemsize == 1 and weights.size // layer.channels <= _DEEPEST


def plan_scaled_tiles(context: Context, node: Node, windows: Windows2D, layer: HybridLayer) -> Bind:
    """Plan a layer for which `multiplies_bytes` is true, as a tiled product of bytes whose sums are scaled to floats.

    Its results are XNNPACK's where that claims the layer, with AVX-512 bit for bit, else those of numpy's kernels.

    Args:
        windows: the windows over the activations, (batches, rows, columns, channels).
        layer: the layer's weights and quantization.
    """
    source, output, weights = layer.source, node.outputs[0], layer.weights
    if not windows.count or not weights.size:
        decline("there is nothing to compute.")
    channels, batches, size = layer.channels, layer.batches, layer.block_size
    packed = weights.type in _NARROW
    layout = _blocks(windows.count, weights.shape[-1], size) if size else layout_of(windows, 1)
    vectors = panel_vectors(channels)
    tile = 1 if windows.count == 1 else SCALED_ROWS
    product = scaled_kernel(vectors, tile, packed, bool(size))
    ready(QUANTIZE_BYTES, product)
    where = context.add_temporary(node, (source.size + 64,), TensorType.UINT8)
    zeros, factors = (context.add_temporary(node, (batches,), kind) for kind in (TensorType.INT32, TensorType.FLOAT32))
    around = None
    if windows.is_padded:
        ready(PAD_BATCHES)
        around = context.add_temporary(node, (prod(windows.padded_shape) + 64,), TensorType.UINT8)
    width = vectors * LANES
    steps = -(-layout.length // (8 if packed else 4))
    panel_bytes = layout.runs * steps * width * 4
    count = -(-channels // width)
    charge_constant(context, node, weights, count * (panel_bytes + 4 * layout.runs * width * bool(size)) + 12 * count * width)
    scales = None if weights.quantization is None else hash(weights.quantization.scales.tobytes())
    key = "scaled panels", vectors, layout.runs, layout.length, layer.axis, scales
    panels, marks, table = node.cached(
        key, [weights], lambda: _scaled_panels(layer, layout, vectors, packed), shared="everywhere"
    )
    if layer.bias is not None:
        table = table.copy()
        table[1, :channels] = layer.bias.data.reshape(-1)
    how = quantization_of(layer)
    bounds = tuple(float(bound) for bound in float_activation_range(layer.activation))
    strips = cut(batches, source.size // _WORTH_COPYING, context.num_threads)
    depth = layout.runs * layout.length
    block = max(tile, BLOCK_BYTES // depth // tile * tile)
    worth = windows.count * depth * count * width // _WORTH_BYTES
    ranges = grid(windows.count, tile, count, worth, context.num_threads, panels.size > source.size + 4 * output.size)

    def bind() -> Thunk:
        values, integers = source.data.reshape(batches, -1), where.data
        rows = integers[: source.size].reshape(batches, -1)
        quantized = each(strips, lambda of, _: (values, rows, factors.data, zeros.data, how, *of))
        run = [Step(QUANTIZE_BYTES, quantized)]
        if around is not None:
            integers = around.data
            batch, height, columns, deep = windows.padded_shape
            maps = rows.reshape(batch, windows.height.size, windows.width.size * deep)
            target = integers[: prod(windows.padded_shape)].reshape(batch, height, columns * deep)
            before = windows.height.before, windows.width.before * deep
            lines = cut(batch * height, integers.size // _WORTH_COPYING, context.num_threads)
            run.append(Step(PAD_BATCHES, each(lines, lambda of, _: (maps, target, zeros.data, *of, *before))))
        result = output.data
        inputs = address(integers), address(layout.starts), address(layout.offsets), layout.runs, steps
        constants = address(panels), address(marks) if size else 0, address(table), table.shape[1]
        outputs = channels, address(result), channels * 4
        quantization = address(zeros.data), address(factors.data), windows.count // batches, layer.even
        words = *inputs, *constants, *outputs, *quantization
        run.append(Step(product, each(ranges, lambda of, _: (*words, *of[0], *of[1], block, *bounds))))
        return thunk(run, context.num_threads, integers, result, layout.starts, layout.offsets, panels, marks, table)

    return bind


def _blocks(rows: int, depth: int, size: int) -> Layout:
    """Return the layout of `rows` windows that are rows of `depth` values; each block of `size` weights of one scale is a run."""
    return Layout(depth // size, size, np.arange(0, depth, size, dtype=np.int64), np.arange(rows, dtype=np.int64) * depth)


def _scaled_panels(layer: HybridLayer, layout: Layout, vectors: int, packed: bool) -> tuple[Array, Array, Array]:
    """Return the weights as `scaled_kernel` reads them: packed filters, its `marks`, and its `table` without biases.

    `vectors` vectors of filters are packed side by side (a panel); `packed` means that two weights of 4 bits share a byte.
    """
    integers, channels, size = layer.integers(), layer.channels, layer.block_size
    width = vectors * LANES
    count = -(-channels // width)
    panels = panels_of(integers, layout, vectors, True)
    if packed:
        _, runs, steps, _, group = panels.shape
        pairs = aligned((count, runs, -(-steps // 2), width, group), np.uint8)
        halves = panels.view(np.uint8)
        np.bitwise_and(halves[:, :, ::2], 15, out=pairs)
        pairs[:, :, : steps // 2] |= halves[:, :, 1::2] << 4
        panels = pairs
    table = aligned((3, padded_rows(channels, width)), np.float32)
    table[0, :channels] = layer.scales
    table[1] = -0.0  # adding it changes no number
    if not size:
        table[2].view(np.int32)[:channels] = integers.sum(axis=1, dtype=np.int32)
        return panels, table, table
    marks = aligned((count * width, layout.runs), np.uint32)
    sums = integers.reshape(channels, layout.runs, size).sum(axis=2, dtype=np.int16)
    marks[:channels] = (block_scales(layer.weights, layer.even) / 16).view(np.uint32) | sums.view(np.uint16)
    turned = aligned((count, layout.runs, width), np.uint32)
    turned[...] = marks.reshape(count, width, layout.runs).transpose(0, 2, 1)
    return panels, turned, table


@kernel(
    "void(f4[:,::1], i1[:,::1], f4[:,::1], f4[::1], f4[::1], f4[::1], f4[:,::1], i8, i8, f4, f4)",
    fastmath={"reassoc", "contract", "nsz"},
)
def _rows_kernel(values, weights, scales, own, others, bias, output, first, last, low, high):  # type: ignore[no-untyped-def]
    depth = weights.shape[1]
    blocks = scales.shape[1]
    size = depth // blocks
    for unit in range(first, last):
        for row in range(values.shape[0]):
            total = np.float32(0)
            for block in range(blocks):
                left, right = values[row, block * size : (block + 1) * size], weights[unit, block * size : (block + 1) * size]
                part = np.float32(0)
                for k in range(size):
                    part += left[k] * np.float32(right[k])
                total += part * scales[unit, block]
            factor = np.float32(np.float64(own[row]) * np.float64(others[unit]))  # first, in whatever order the rest is computed
            result = total * factor + bias[unit]
            output[row, unit] = min(max(result, low), high)


def plan_hybrid_rows(context: Context, node: Node, layer: HybridLayer) -> Bind:
    """Plan a layer of a few rows with constant weights; decline (leave to numpy's kernel) more than four, or sums that float32
    cannot hold.
    """
    weights, output = layer.weights, node.outputs[0]
    units, depth = weights.shape
    if layer.batches > _FEW or not layer.batches or layer.compute != TensorType.FLOAT32 or weights.dtype.itemsize != 1:
        decline("it has many rows, none, or weights of a kind that it does not read as bytes.")
    if layer.block_size and (depth % layer.block_size or layer.block_size < _SMALLEST):
        decline("its blocks of weights are short, or do not fill a row.")
    ready(_rows_kernel, ROWS_TO_FLOATS)
    quantized = context.add_temporary(node, layer.source.shape, TensorType.FLOAT32)
    charge(4 * units * 3 + (4 * weights.size // layer.block_size if layer.block_size else 0))
    scales = block_scales(weights, layer.even) if layer.block_size else np.ones((units, 1), np.float32)
    bias = np.zeros(units, np.float32) if layer.bias is None else layer.bias.data.reshape(-1).astype(np.float32)
    bounds = float_activation_range(layer.activation)
    ranges = cut(units, weights.size * layer.batches // _WORTH, context.num_threads)

    def bind() -> Thunk:
        own = np.empty(layer.batches, np.float32)
        source, values = (tensor.data.reshape(layer.batches, depth) for tensor in (layer.source, quantized))
        rows = np.ascontiguousarray(weights.data).view(np.int8).reshape(units, depth)
        target = output.data.reshape(layer.batches, units)
        others = np.ascontiguousarray(np.broadcast_to(layer.scales, units))
        arguments = each(ranges, lambda some, _: (values, rows, scales, own, others, bias, target, *some, *bounds))
        quantize = Step(ROWS_TO_FLOATS, [(source, values, own, quantization_of(layer))])
        return thunk([quantize, Step(_rows_kernel, arguments)], context.num_threads)

    return bind
