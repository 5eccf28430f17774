"""AVERAGE_POOL_2D and MAX_POOL_2D, compiled: float32, uint8, int8, int16. `pooling.windows` has the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Context, Node, NodeLimits, Registration, TensorType, charge, decline
from oplet.kernels.activations import activation_range, float_activation_range
from oplet.kernels.fixed_point import quantized_range
from oplet.kernels.windows import Axis
from oplet.schema.options import Pool2DOptions
from oplet_builtin_ops.layers import pooling as builtin
from oplet_compiled_ops.library.kernels import Kernel
from oplet_compiled_ops.library.memory import Array
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each, slots
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The most values of a row of outputs, as kernels divide their work between rows.
_LONGEST_ROW = 1 << 28
#: The overhead of a window's tap, in values.
_TAP = 16
_CODES = {TensorType.INT8: "i1", TensorType.UINT8: "u1", TensorType.INT16: "i2"}
_GEOMETRY = "i8[::1], i8[::1], i8[::1]"


def _declared(function: str, code: str, scratch: str, bound: str) -> Kernel:
    return Kernel(
        f"pooling.windows:{function}",
        f"void({code}[:,:,:,::1], {code}[:,:,:,::1], i8, i8, {scratch}, {bound}, {bound}, {_GEOMETRY})",
    )


#: Arguments: input, output, first and last row of all outputs together, scratch for a row of the input, bounds, and for both
#: dimensions the window's size, its stride and the padding before.
_MAXIMUM = _declared("_maximum", "f4", "f4[::1]", "f4")
_MAXIMUM_INTEGERS = {type: _declared("_maximum_integers", code, f"{code}[::1]", code) for type, code in _CODES.items()}
#: The same arguments, and scratch for the sums of a window; one of them by type.
_AVERAGE_FLOATS = _declared("_average_floats", "f4", "f4[::1], f4[::1]", "f4")
_AVERAGE_INTEGERS = {type: _declared("_average_integers", code, "i4[::1], i4[::1]", "i8") for type, code in _CODES.items()}


def _pool_registration(builtin: Registration, averages: bool) -> Registration:
    """Build the registration of AVERAGE_POOL_2D or MAX_POOL_2D."""

    def plan(context: Context, node: Node) -> Bind:
        source, output = node.inputs[0], node.outputs[0]
        rows, columns = node.prepared
        if not output.size or not _filled(rows) or not _filled(columns):
            decline("there is nothing to compute, or a window has no tap inside the map.")
        activation = node.options(Pool2DOptions).fused_activation_function
        low: Any
        high: Any
        if output.type == TensorType.FLOAT32:
            low, high = float_activation_range(activation)
        else:
            low, high = activation_range(activation, output.type, output.scale, output.zero_point)
            lowest, highest = quantized_range(output.type)
            if not (averages or (lowest <= low <= highest and lowest <= high <= highest)):
                decline("a bound of its activation is beyond its type.")
        width, channels = source.shape[2:]
        row = min(rows.filter, rows.size) * max(width * channels, _TAP)
        row += output.shape[2] * (1 + min(columns.filter, columns.size)) * max(channels, _TAP)
        if row > _LONGEST_ROW:
            decline("its rows are too long.")
        kernel = _kernel(output.type, averages)
        ready(kernel)
        if averages and output.type != TensorType.FLOAT32:
            bounds = low, high
        else:
            bounds = output.dtype.type(low), output.dtype.type(high)
        blocks = _blocks(rows, columns) if averages and output.type == TensorType.FLOAT32 else 1
        if blocks > 1 and source.size >= 2 * WORTH_VALUES:
            return _plan_whole(context, node, blocks, bounds)
        worth, lines = source.size // WORTH_VALUES, output.shape[0] * output.shape[1]
        ranges = cut(lines, worth, context.num_threads, length=max(worth, lines * row // WORTH_VALUES))
        charge(4 * (width + averages) * channels * slots(ranges))
        geometry = [
            np.array(pair, np.int64)
            for pair in ((rows.filter, columns.filter), (rows.stride, columns.stride), (rows.before, columns.before))
        ]

        def bind() -> Thunk:
            wide = np.dtype(np.int32) if averages and output.type != TensorType.FLOAT32 else output.dtype
            sizes = (width * channels, channels)[: 1 + averages]
            scratch = [[np.empty(size, wide) for size in sizes] for _ in range(slots(ranges))]
            maps = source.data, output.data
            parts = each(ranges, lambda some, slot: (*maps, *some, *scratch[slot], *bounds, *geometry))
            return thunk([Step(kernel, parts)], context.num_threads)

        return bind

    return override(builtin, plan, NodeLimits(inputs=[[TensorType.FLOAT32, *_CODES]]))


def _blocks(rows: Axis, columns: Axis) -> int:
    """Return into how many blocks of rows to divide a global average pool, whatever the number of threads; 1 for other pools."""
    whole = all(axis.out == 1 and axis.filter == axis.size for axis in (rows, columns))
    return next((count for count in (8, 4) if rows.size % count == 0), 1) if whole else 1


def _plan_whole(context: Context, node: Node, blocks: int, bounds: tuple[Any, Any]) -> Bind:
    """Plan a global average pool as an average of averages of `blocks` blocks of rows, so that each thread reads contiguous
    memory.

    `bounds` are the lower and upper bound of the fused activation.
    """
    source, output = node.inputs[0], node.outputs[0]
    batch, height, width, channels = source.shape
    ranges = cut(batch * blocks, source.size // WORTH_VALUES, context.num_threads)
    charge(4 * channels * (batch * blocks + (width + 1) * slots(ranges)))

    def geometry(*size: int) -> tuple[Array, ...]:
        return np.array(size, np.int64), np.array(size, np.int64), np.zeros(2, np.int64)

    def scratch(*sizes: int) -> list[Array]:
        return [np.empty(size, np.float32) for size in sizes]

    def bind() -> Thunk:
        averages = np.empty((batch, blocks, 1, channels), np.float32)
        every = np.float32(-np.inf), np.float32(np.inf)
        sizes = width * channels, channels
        steps = geometry(height // blocks, width)
        values, lines = source.data, [scratch(*sizes) for _ in range(slots(ranges))]
        parts = each(ranges, lambda some, slot: (values, averages, *some, *lines[slot], *every, *steps))
        last = (averages, output.data, 0, batch, *scratch(channels, channels), *bounds, *geometry(blocks, 1))
        return thunk([Step(_AVERAGE_FLOATS, parts), Step(_AVERAGE_FLOATS, [last])], context.num_threads)

    return bind


def _filled(axis: Axis) -> bool:
    """Return whether each window has at least one tap inside the map."""
    return axis.before < axis.filter and (axis.out - 1) * axis.stride - axis.before < axis.size


def _kernel(type: TensorType, averages: bool) -> Kernel:
    if type == TensorType.FLOAT32:
        return _AVERAGE_FLOATS if averages else _MAXIMUM
    return (_AVERAGE_INTEGERS if averages else _MAXIMUM_INTEGERS)[type]


AVERAGE_POOL_2D = _pool_registration(builtin.AVERAGE_POOL_2D, averages=True)
MAX_POOL_2D = _pool_registration(builtin.MAX_POOL_2D, averages=False)
