"""Planning of depthwise convolutions: the layouts of data, and the parts of the work for threads, for the kernels of `taps`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from oplet import Context, Node, Tensor, TensorType, charge, decline
from oplet.kernels.windows import Windows2D
from oplet_compiled_ops.convolution import any_taps_kernel, taps_kernel
from oplet_compiled_ops.convolution.edges import edges
from oplet_compiled_ops.convolution.output_stage import Finishing
from oplet_compiled_ops.library.levels import LANES, windows_together
from oplet_compiled_ops.library.memory import Array, address, aligned, padded_rows
from oplet_compiled_ops.overriding import Bind, Thunk, charge_constant
from oplet_compiled_ops.threads.splitting import Range, each, grid, slots
from oplet_compiled_ops.threads.team import Step, ready, thunk

__all__ = ["plan_depthwise"]

#: The least multiply-adds of a part that is worth a thread's while.
_WORTH = 30_000
#: The cost of copying a value into a ring, in multiply-adds.
_COPY = 8
#: The most windows at a row's ends that get code of their own.
_EDGES = 6
#: The most values of a row of padding that is kept for other layers.
_KEPT = 1 << 18


#: The longest row of zeros that a layer has requested, shared by all layers that read their input without a copy.
_BORDERS: list[Array] = []


def _border(size: int) -> Array:
    found = _BORDERS[0] if _BORDERS else None
    if found is None or found.size < size:
        found = aligned((size,), np.float32)
        if size <= _KEPT:
            _BORDERS[:] = [found]
    return found[:size].reshape(1, size)


def plan_depthwise(
    context: Context,
    node: Node,
    source: Tensor,
    windows: Windows2D,
    multiplier: int,
    taps: Callable[[], Array],
    finish: Finishing,
    pad: float,
) -> Bind:
    """Plan a depthwise convolution with constant weights: pack the weights, request scratch memory, compile its kernel.

    Args:
        context: the kernel's context.
        source: the map that is convolved: the node's input, or that of a PAD that is fused into the node.
        windows: the windows over the map, which has as many channels as the output.
        multiplier: output channels of each input channel.
        taps: returns the weights, (height, width, channels).
        finish: the output stage, applied to the sums: bias, rescaling, clamp.
        pad: the value of the padding, in the numbers of the input.
    """
    output = node.outputs[0]
    h, w, columns = windows.height, windows.width, windows.channels
    if not windows.count:
        decline("there is nothing to compute.")
    kind = np.dtype(source.dtype)
    pixels = windows_together()
    row = padded_rows(columns, LANES)
    width = max(windows.padded_shape[2], w.size)
    # Rows are read without a copy if all vectors are whole; the code then leaves out taps beyond the row's ends.
    before, room = w.before, w.size + w.before - (w.out - 1) * w.stride
    room = min(room, w.span)
    direct = source.type == TensorType.FLOAT32 and multiplier == 1 and row == columns
    direct = direct and room > 0 and sum(edges(w.filter, w.stride, w.dilation, before, room)) <= min(w.out, _EDGES)
    if not direct:
        before, room = 0, w.span
    code = f"{kind.kind}{kind.itemsize}"
    of_width = h.filter, w.filter, w.stride, w.dilation
    kernel = taps_kernel(code, *of_width, before, room, pixels, finish.bits, finish.rounding)
    if direct and not kernel.exists:
        direct, before, room = False, 0, w.span
        kernel = taps_kernel(code, *of_width, before, room, pixels, finish.bits, finish.rounding)
    of_any: tuple[int, ...] = ()
    if not kernel.exists:
        kernel, of_any = any_taps_kernel(code, finish.bits, finish.rounding), of_width
    ready(kernel)
    lines = 0 if direct else h.span
    count = windows.batch * h.out
    work = windows.count * row * h.filter * w.filter
    # Each part copies the rows that it needs into its ring, so that channels are divided only where there are few rows.
    vectors = row // LANES if direct else 1
    worth = work // _WORTH if direct else min(work // _WORTH, context.num_threads)
    by_columns = count < 4 * context.num_threads <= vectors
    # Each part copies the rows above its own once more.
    copied = 0 if direct else count * min(h.stride, h.span) * width * row * _COPY
    least = 1 if direct else -(-h.span // h.stride)
    ranges = grid(count, 1, vectors, worth, context.num_threads, by_columns, max(worth, (work + copied) // _WORTH), least)
    whole = row // LANES // vectors
    several = slots(ranges)
    rings = [] if direct else [context.add_temporary(node, (lines + 1, width * row), TensorType.FLOAT32) for _ in range(several)]
    if direct:
        charge(4 * width * row)
    charge_constant(context, node, node.inputs[1], 4 * h.filter * w.filter * row)

    def arrange() -> Array:
        weights = aligned((h.filter, w.filter, row), np.float32)
        weights[..., :columns] = taps()
        return weights

    weights = node.cached(("taps", columns, source.type), [node.inputs[1]], arrange, shared=True)

    def bind() -> Thunk:
        values, result = source.data, output.data
        maps = values.reshape(windows.batch * h.size, -1)
        taken, table, outputs = address(weights), address(finish.table), address(result)
        own = [(ring.data, np.zeros(h.filter, np.int64)) for ring in rings]
        if direct:  # floats only, whose padding is zeros
            own = [(_border(width * row), np.zeros(h.filter, np.int64)) for _ in range(several)]
        before = taken, table, finish.channels, columns, multiplier, outputs
        after = h.size, h.out, w.out, h.before, w.before, h.stride, h.dilation, int(direct), pad, *finish.bounds, *of_any

        def part(of: tuple[Range, Range], slot: int) -> tuple[Any, ...]:
            rows, (first, last) = of
            return maps, *own[slot], *before, *rows, first * whole, last * whole, *after

        arguments = each(ranges, part)
        return thunk([Step(kernel, arguments)], context.num_threads, values, result, weights, finish.table)

    return bind
