"""LceBconv2d, compiled: with constant filters and what follows them."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, charge, decline
from oplet.schema.enums import ActivationFunctionType
from oplet_compiled_ops.convolution.binary import BITS, FLOATS, INTEGERS, binary_kernel, blocked
from oplet_compiled_ops.library.levels import LANES
from oplet_compiled_ops.library.memory import aligned, flat, padded_rows
from oplet_compiled_ops.overriding import Bind, Thunk, charge_constant, override
from oplet_compiled_ops.threads.splitting import cut, each, slots
from oplet_compiled_ops.threads.team import Step, ready, thunk
from oplet_larq_ops.ops.bconv2d import REGISTRATION as BUILTIN

_KINDS = {TensorType.FLOAT32: FLOATS, TensorType.INT8: INTEGERS, TensorType.INT32: BITS}
#: Words of filters that a part compares, at least: a few microseconds.
_WORTH_WORDS = 20_000


def plan(context: Context, node: Node) -> Bind:
    found = node.prepared
    source, filters, multiplier, bias, thresholds = (node.optional_input(position) for position in range(5))
    output = node.outputs[0]
    if source is None or filters is None or not output.size:
        decline("there is nothing to compute.")
    if any(tensor is not None and not tensor.is_constant for tensor in node.inputs[1:]):
        decline("its filters, or what follows them, are no constants.")
    count, depth, words = filters.shape[0], filters.shape[3], source.shape[3]
    of_group = count // found.groups
    padded = found.groups * padded_rows(of_group, LANES)
    windows = source.shape[0] * found.windows
    kind = _KINDS[output.type]
    kernel = binary_kernel(kind)
    ready(kernel)
    work = windows * padded * found.taps * depth
    ranges = cut(windows, work // _WORTH_WORDS, context.num_threads)
    charge(8 * padded * slots(ranges) + 4 * found.width.filter * depth + 16 * count)
    charge_constant(context, node, filters, 4 * padded * found.taps * depth)
    late = kind == FLOATS and found.activation == ActivationFunctionType.NONE
    along = None if kind == BITS or multiplier is None or bias is None else found.line(multiplier.data, bias.data, output)
    numbers = np.array(
        [
            *(found.height.size, found.width.size, words, found.height.out, found.width.out),
            *(found.height.filter, found.width.filter, found.height.stride, found.width.stride),
            *(found.height.dilation, found.width.dilation, found.height.before, found.width.before),
            *(found.groups, depth, of_group, found.channels),
            *(0 if not found.zero_padding else 2 if late else 1, *found.bounds),
        ],
        np.int64,
    )

    def bind() -> Thunk:
        packed = node.cached("blocks of filters", [filters], lambda: blocked(filters.data, found.groups), shared=True)
        nothing = np.zeros(0, np.float32)
        factors, offsets = (nothing, nothing) if along is None else along
        doubled = np.zeros(0, np.int64)
        if kind == BITS and thresholds is not None:
            doubled = 2 * thresholds.data.astype(np.int64)
        counters = aligned((slots(ranges), 2, padded), np.int32)
        zeros = np.zeros(found.width.filter * depth, np.uint32)
        into = flat(output.data).view(np.uint32) if kind == BITS else flat(output.data)
        arrays = flat(source.data).view(np.uint32), flat(packed), zeros, factors, offsets, doubled, into, counters, numbers
        return thunk([Step(kernel, each(ranges, lambda some, slot: (*arrays, *some, slot)))], context.num_threads)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.INT32]]))
