"""MEAN, compiled: quantized numbers and float32 over adjacent constant axes."""

from __future__ import annotations

from math import prod

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, charge, decline, ensure
from oplet.kernels.axes import read_ints, resolve_axes
from oplet.kernels.fixed_point import quantize_multiplier, quantized_range, quotient
from oplet_builtin_ops.ops.mean import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise import means
from oplet_compiled_ops.elementwise.fixed_point import scaling
from oplet_compiled_ops.library.levels import LANES
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The least rows of a block of columns that is averaged for itself.
_LONG = 16


def plan(context: Context, node: Node) -> Bind:
    source, output = node.inputs[0], node.outputs[0]
    floats = source.type == TensorType.FLOAT32
    if node.prepared is not True or not source.size:
        decline("its axes are not known yet, or there is nothing to compute.")
    axes = [axis for axis in resolve_axes(read_ints(node.inputs[1]), source.ndim) if source.shape[axis] > 1]
    if not axes or axes[-1] - axes[0] != len(axes) - 1:
        decline("its axes do not follow one another.")
    shape = source.shape[: axes[0]], source.shape[axes[0] : axes[-1] + 1], source.shape[axes[-1] + 1 :]
    outer, count, inner = (prod(part) for part in shape)
    if floats and inner == 1:
        return means.plan_rows(context, node, count, float(np.float32(1 / count)))
    ensure(not node.absorbed, "its kernel of columns squares nothing.")
    if floats:
        return _plan_columns(context, node, outer, count, inner)
    multiplier, shift = quantize_multiplier(quotient(source.scale, output.scale))
    # The division by the count is folded into the multiplier, as far as its 31 bits allow.
    bits = min(count.bit_length() - 1, 32, 31 + shift)
    multiplier, shift = (multiplier << bits) // count, shift - bits
    if shift > 0 or count >= 1 << 15:
        decline("its quotient of scales, or its number of values, is too large.")
    constants = source.zero_point * count, *scaling(multiplier, shift), output.zero_point, *quantized_range(output.type)
    return means.plan_scaled_sums(context, node, means.MEAN[source.type], (outer, count, inner), constants)


def _plan_columns(context: Context, node: Node, outer: int, count: int, inner: int) -> Bind:
    """Plan the mean of float32 (outer, count, inner) over the middle axis; decline what numpy's kernel computes as fast."""
    source, output = node.inputs[0], node.outputs[0]
    if outer > 1 and inner < LANES:
        decline("numpy is as fast for a few columns at a time.")
    blocks = next((blocks for blocks in (8, 6, 4) if count % blocks == 0 and count >= _LONG * blocks), 1)
    if blocks > 1 and source.size >= 2 * WORTH_VALUES:
        return _plan_blocks(context, node, (outer, blocks, count // blocks, inner))
    ready(means.MEAN_OF_COLUMNS)
    ranges = cut(outer, source.size // WORTH_VALUES, context.num_threads)

    def bind() -> Thunk:
        x, y = source.data.reshape(outer, count, inner), output.data.reshape(outer, inner)
        return thunk(
            [Step(means.MEAN_OF_COLUMNS, each(ranges, lambda some, _: (x[slice(*some)], y[slice(*some)])))], context.num_threads
        )

    return bind


def _plan_blocks(context: Context, node: Node, shape: tuple[int, int, int, int]) -> Bind:
    """Plan the mean of long float32 columns as a mean of means of blocks, so that threads share it.

    The blocks do not depend on the number of threads, and so the results do not either.

    Args:
        shape: (outer, blocks of a column, rows of a block, inner): the input, whose second and third axes are averaged.
    """
    source, output = node.inputs[0], node.outputs[0]
    outer, blocks, rows, inner = shape
    ready(means.MEAN_OF_COLUMNS, means.MEAN_OF_LONG_COLUMNS)
    ranges = cut(outer * blocks, source.size // WORTH_VALUES, context.num_threads)
    charge(4 * outer * blocks * inner)

    def bind() -> Thunk:
        x, y = source.data.reshape(outer * blocks, rows, inner), output.data.reshape(outer, inner)
        own = np.empty((outer * blocks, inner), np.float32)
        parts = each(ranges, lambda some, _: (x[slice(*some)], own[slice(*some)]))
        last = own.reshape(outer, blocks, inner), y
        return thunk([Step(means.MEAN_OF_LONG_COLUMNS, parts), Step(means.MEAN_OF_COLUMNS, [last])], context.num_threads)

    return bind


REGISTRATION = override(
    BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32, *means.MEAN]], constant=[1]), fuses=means.squares_to_absorb
)
