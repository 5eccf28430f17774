"""Planning of convolutions as tiled matrix products: where windows lie in memory, how filters are packed, and the steps that
compute.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet import Context, Node, Tensor, TensorType, charge, checkpoint, decline
from oplet.kernels.activations import CLAMPS
from oplet.kernels.windows import Axis, Windows2D
from oplet.records import Row
from oplet.schema.enums import ActivationFunctionType
from oplet_compiled_ops.convolution import FEWER_ROWS, pad_kernel, product_kernel
from oplet_compiled_ops.convolution.output_stage import Finishing, float_finishing, quantized_finishing
from oplet_compiled_ops.library.levels import LANES, adds_128, has_byte_products, tile_rows
from oplet_compiled_ops.library.memory import Array, address, aligned
from oplet_compiled_ops.overriding import Bind, Thunk, charge_constant
from oplet_compiled_ops.shaping import COPY, copy_arguments
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each, grid
from oplet_compiled_ops.threads.team import Step, ready, thunk

if TYPE_CHECKING:
    from oplet_builtin_ops.layers.quantized_layer import QuantizedLayer

__all__ = ["Layout", "layout_of", "panel_vectors", "panels_of", "plan_quantized_tiles", "plan_stamps", "plan_tiles"]

#: Bytes of the input whose windows are multiplied with all filters before the next are read, so that they stay in the cache.
BLOCK_BYTES = 1 << 18
#: The least multiply-adds of a part, of floats and of bytes.
_WORTH = 100_000
_WORTH_BYTES = 250_000
#: The least values of a part of a copy.
_WORTH_COPYING = 8_000


#: The most windows that tiles of another size may suit better.
_FEW = 64
#: The most windows, and the most taps, of a layout that is cached.
_KEPT = 1 << 14
#: The values from which on a kernel rearranges them faster than numpy.
_MANY = 1 << 15
#: Bytes of weights that are rearranged at a time.
_AT_ONCE = 1 << 24


class Layout(Row):
    """Where windows lie in memory: each window is `runs` runs of consecutive values, at the same offsets from the window's start."""

    runs: int  #: The number of runs of a window.
    length: int  #: The values of a run.
    offsets: Array  #: The runs' offsets from the window's start, in bytes.
    starts: Array  #: Each window's start, in bytes from that of the map.


def layout_of(windows: Windows2D, item: int) -> Layout:
    """Return the layout of windows over a map whose values have `item` bytes; cached, as layers often share it."""
    taps = windows.height.filter * windows.width.filter
    if max(windows.count, taps) <= _KEPT:
        return _few_layouts(windows, item)
    charge(8 * (windows.count + taps))
    return _lay_out(windows, item)


def _lay_out(windows: Windows2D, item: int) -> Layout:
    h, w, channels = windows.height, windows.width, windows.channels
    batch, rows, columns, _ = windows.padded_shape
    row = columns * channels
    images, y, x = (np.arange(count, dtype=np.int64) for count in (batch, h.out, w.out))
    lines = np.add.outer(images * (rows * row * item), y * (h.stride * row * item))
    starts = np.add.outer(lines, x * (w.stride * channels * item)).reshape(-1)
    down = np.arange(h.filter, dtype=np.int64) * (h.dilation * row * item)
    if w.dilation == 1:
        if h.filter > 1 and w.filter == columns and h.dilation == 1:
            return Layout(1, h.filter * row, np.zeros(1, np.int64), starts)
        return Layout(h.filter, w.filter * channels, down, starts)
    across = np.arange(w.filter, dtype=np.int64) * (w.dilation * channels * item)
    return Layout(h.filter * w.filter, channels, (down[:, None] + across).reshape(-1), starts)


_few_layouts = lru_cache(maxsize=64)(_lay_out)


@lru_cache(maxsize=256)
def panel_vectors(filters: int) -> int:
    """Return how many vectors of 16 filters to pack side by side (a panel), so that few lanes are wasted on `filters` filters."""
    costs = {4: 1.0, 3: 1.0, 2: 1.03, 1: 1.25}
    return min(tile_rows(), key=lambda v: -(-filters // (v * LANES)) * v * costs[v])


def _tile(windows: int, vectors: int) -> int:
    """Return how many windows a tile computes together, so that few are computed twice, as the last tile is a full one.

    Args:
        windows: the number of windows.
        vectors: the vectors of filters of a panel.
    """
    most = tile_rows()[vectors]
    if windows > _FEW:
        return most
    return 1 if windows == 1 else min(most, FEWER_ROWS[most], key=lambda rows: -(-windows // rows) * rows)


def panels_of(matrix: Array, layout: Layout, vectors: int, integer: bool) -> Array:
    """Pack filters in the order in which tiles read them: (panel, run, step, filter of the panel, value of the step).

    Args:
        matrix: the filters, (filters, values of a window).
        layout: the runs of a window.
        vectors: the vectors of 16 filters of a panel.
        integer: whether a step is four bytes of int8, as byte dot products take them; otherwise it is one float32.
    """
    width, group = vectors * LANES, 4 if integer else 1
    count = -(-len(matrix) // width)
    steps = -(-layout.length // group)
    kind = np.dtype(np.int8 if integer else np.float32)
    panels = aligned((count, layout.runs, steps, width, group), kind, zeroed=False)
    if integer and not layout.length % group and matrix.dtype == kind and matrix.flags.c_contiguous:
        # Four bytes that stay together are moved as one.
        return _fill(panels.view(np.int32), matrix.view(np.int32), layout.runs, steps).view(kind)
    return _fill(panels, matrix, layout.runs, layout.length)


def _fill(panels: Array, matrix: Array, runs: int, length: int) -> Array:
    """Write filters (filters, values of a window of `runs` runs of `length`) into `panels`, with zeros after the last; return
    `panels`.
    """
    _, _, steps, width, group = panels.shape
    block = max(1, _AT_ONCE // panels[0].nbytes)
    count = len(panels)
    for first in range(0, count, block):
        if first:
            checkpoint()
        some = panels[first : first + block]
        whole = matrix[first * width : (first + len(some)) * width].reshape(-1, runs, length)
        if length != steps * group:
            given, whole = whole, np.zeros((len(whole), runs, steps * group), panels.dtype)
            whole[:, :, :length] = given
        full, rest = divmod(len(whole), width)
        if full:
            turned = whole[: full * width].reshape(full, width, runs, steps, group).transpose(0, 2, 3, 1, 4)
            if turned.size >= _MANY and (arguments := copy_arguments(some[:full], turned)) is not None:
                COPY.compiled()(*arguments)
            else:
                some[:full] = turned
        if rest:
            some[full] = 0
            some[full, :, :, :rest] = whole[full * width :].reshape(rest, runs, steps, group).transpose(1, 2, 0, 3)
    return panels


def _panel_bytes(filters: int, layout: Layout, vectors: int, integer: bool) -> int:
    width, group = vectors * LANES, 4 if integer else 1
    return 4 * -(-filters // width) * width * layout.runs * -(-layout.length // group)


def plan_tiles(
    context: Context,
    node: Node,
    windows: Windows2D,
    filters: int,
    rows: Callable[[], Array],
    finishing: Callable[[], Finishing],
    *,
    integer: bool = False,
    pad: float = 0,
    source: Tensor | None = None,
    output: Tensor | None = None,
    weights_are: str = "panels",
    after: Callable[[], list[Step]] = list,
) -> Bind:
    """Plan a convolution with constant weights as a tiled matrix product: layout, scratch memory, compiled kernels.

    Args:
        context: the kernel's context.
        windows: the windows over the input.
        filters: the number of filters.
        rows: returns the weights, (filters, values of a window).
        finishing: returns the output stage, applied to the sums: bias, rescaling, clamp.
        integer: whether bytes are multiplied; otherwise floats are, and integers are converted to floats.
        pad: the value of the padding.
        source: the input; None for the node's first one.
        output: the tensor of the outputs; None for the node's.
        weights_are: the key under which the packed weights are cached; callers whose `rows` differ pass different ones.
        after: returns steps to run after the product.
    """
    source, output = source or node.inputs[0], output or node.outputs[0]
    count = windows.count
    if not count or not filters:
        decline("there is nothing to compute.")
    finish = finishing()
    item = 1 if integer else 4
    layout = layout_of(windows, item)
    vectors = panel_vectors(filters)
    tile = _tile(count, vectors)
    product = product_kernel(vectors, tile, integer, finish.bits, finish.rounding)
    if not product.exists:
        tile = tile_rows()[vectors]
        product = product_kernel(vectors, tile, integer, finish.bits, finish.rounding)
    ready(product)
    compute = (TensorType.UINT8 if adds_128() else TensorType.INT8) if integer else TensorType.FLOAT32
    flip = 0x80 if source.type == TensorType.INT8 and adds_128() else 0
    scratch: Tensor | None = None
    if windows.is_padded or source.type != compute:
        batch, height, width, channels = windows.padded_shape
        size = batch * height * width * channels
        scratch = context.add_temporary(node, (size + 64,), TensorType.UINT8 if integer else compute)
        fill = pad_kernel("" if integer else f"{np.dtype(source.dtype).kind}{np.dtype(source.dtype).itemsize}")
        ready(fill)
        strips = cut(batch * height, size // _WORTH_COPYING, context.num_threads)
    charge_constant(context, node, node.inputs[1], _panel_bytes(filters, layout, vectors, integer))
    key = weights_are, vectors, layout.runs, layout.length, integer, source.type
    panels = node.cached(key, [node.inputs[1]], lambda: panels_of(rows(), layout, vectors, integer), shared=True)
    starts, offsets = layout.starts, layout.offsets
    length = panels.shape[2]
    depth = layout.runs * layout.length
    block = max(tile, BLOCK_BYTES // (item * depth) // tile * tile)
    worth = count * depth * len(panels) * vectors * LANES // (_WORTH_BYTES if integer else _WORTH)
    # Each thread reads either part of the inputs and all weights, or all inputs and part of the weights. A thread gets neighbouring
    # outputs, which the same thread is likely to read in the next layer.
    by_panels = panels.size > source.size + output.size
    ranges = grid(count, tile, len(panels), worth, context.num_threads, by_panels)

    def bind() -> Thunk:
        values: Any = source.data
        steps = []
        if scratch is not None:
            target = scratch.data[:size].reshape(batch, height, width * channels)
            maps = (values.view(np.uint8) if integer else values).reshape(
                batch, windows.height.size, windows.width.size * channels
            )
            where = windows.height.before, windows.width.before * channels
            rest = (*where, (int(pad) & 0xFF) ^ flip, flip) if integer else (*where, float(pad))
            steps.append(Step(fill, each(strips, lambda strip, _: (maps, target, *strip, *rest))))
            values = target
        result = output.data
        inputs = address(values), address(starts), address(offsets)
        weights, table, outputs = address(panels), address(finish.table), address(result)
        before = *inputs, layout.runs, length, weights, table, finish.channels, filters, outputs, filters * result.itemsize
        arguments = each(ranges, lambda of, _: (*before, *of[0], *of[1], block, *finish.bounds))
        steps += [Step(product, arguments), *after()]
        return thunk(steps, context.num_threads, values, result, starts, offsets, panels, finish.table)

    return bind


def plan_stamps(
    context: Context,
    node: Node,
    source: Tensor,
    bias: Tensor | None,
    activation: ActivationFunctionType = ActivationFunctionType.NONE,
) -> Bind:
    """Plan a float TRANSPOSE_CONV with stride = kernel size (no overlap): a matrix product, whose results are copied to their positions.

    Args:
        context: the kernel's context.
        node: the node, with constant weights (filters, height, width, channels) as its second input.
        source: the maps to convolve.
        bias: a constant, one value per filter; None for none.
    """
    if activation not in CLAMPS:
        decline("its activation is not one that it computes.")
    weights, output = node.inputs[1], node.outputs[0]
    batch, rows, columns, depth = source.shape
    filters, high, wide, _ = weights.shape
    every = high * wide * filters
    windows = Windows2D(batch, Axis(rows, 1, 1, 1, rows, 0), Axis(columns, 1, 1, 1, columns, 0), depth)
    products = context.add_temporary(node, (batch * rows, columns, every), TensorType.FLOAT32)
    ready(COPY)
    lines = cut(batch * rows, output.size // WORTH_VALUES, context.num_threads)

    def finishing() -> Finishing:
        return float_finishing(node, bias, every, activation, high * wide)

    def after() -> list[Step]:
        made, placed = products.data, output.data
        if wide * filters == 2:  # pairs of numbers are moved as one
            made, placed = made.view(np.int64), placed.reshape(-1).view(np.int64)
        found = made.reshape(batch * rows, columns, high, -1).transpose(0, 2, 1, 3)
        target = placed.reshape(found.shape)
        parts = [copy_arguments(target[slice(*some)], found[slice(*some)]) for some in lines]
        return [Step(COPY, [part for part in parts if part is not None])]

    matrix = lambda: weights.data.transpose(1, 2, 0, 3).reshape(every, depth)  # noqa: E731
    return plan_tiles(
        context, node, windows, every, matrix, finishing, source=source, output=products, weights_are="stamps", after=after
    )


def plan_quantized_tiles(context: Context, node: Node, windows: Windows2D, layer: QuantizedLayer, pad: int) -> Bind:
    """Plan a convolution of integers with constant weights and bias as a tiled matrix product.

    If the sums may not be exact in 32-bit lanes, a small layer is computed directly (`direct`), and a large one declined (left to
    numpy's).

    Args:
        context: the kernel's context.
        windows: the windows over the input.
        layer: the layer's parameters.
        pad: the value of the padding.
    """
    bytes_go = layer.source.type == TensorType.INT8 and layer.zero_point == 0 and layer.output.dtype.itemsize == 1
    integer = bytes_go and layer.weights.type in (TensorType.INT8, TensorType.INT4) and has_byte_products()
    # Where products are of unsigned bytes, 128 is added to each activation.
    finish = quantized_finishing(layer, integer, 128 if integer and adds_128() else 0)
    filters = layer.weights.shape[layer.axis]
    if isinstance(finish, str):
        from oplet_compiled_ops.convolution.direct import Geometry, plan_direct_layer  # here, as few models have such layers

        return plan_direct_layer(context, node, Geometry(*windows, 1, filters), layer, finish)
    return plan_tiles(context, node, windows, filters, layer.rows, lambda: finish, integer=integer, pad=pad)
