"""PRELU, compiled: with an alpha that broadcasts in a supported pattern."""

from __future__ import annotations

from math import inf

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet.kernels.fixed_point import quantize_multiplier, quantized_range
from oplet_builtin_ops.ops.prelu import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise import PRELU
from oplet_compiled_ops.elementwise.fixed_point import scaling
from oplet_compiled_ops.elementwise.flat import bind_float_pair, float_pair_kernel
from oplet_compiled_ops.elementwise.plain.broadcasting import Repetition, repetition
from oplet_compiled_ops.elementwise.plain.plain_pairs import arguments
from oplet_compiled_ops.elementwise.plain.slopes import QUANTIZED_PRELU
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The largest shifts to the left of which no value, and no product with alpha, wraps around.
_SHIFTS = 14, 6


def plan(context: Context, node: Node) -> Bind:
    source, alpha = node.inputs
    if not source.size:
        decline("there is nothing to compute.")
    how = repetition(source.shape, alpha.shape) if source.shape == node.outputs[0].shape else None
    if how is None:
        decline("its alpha repeats in a way that its loops do not know.")
    if source.type is not TensorType.FLOAT32:
        return _plan_quantized(context, node, how)
    ready(float_pair_kernel(PRELU, how.per_row))
    node.in_place = [source]
    return lambda: bind_float_pair(PRELU, source, alpha.data, node.outputs[0], how, -inf, inf, context.num_threads)


def _plan_quantized(context: Context, node: Node, how: Repetition) -> Bind:
    source, alpha = node.inputs
    output = node.outputs[0]
    factors = [quantize_multiplier(factor) if np.isfinite(factor) else (0, 0) for factor in node.prepared]
    if any(shift > most for (_, shift), most in zip(factors, _SHIFTS)):
        decline("its numbers may wrap around.")
    kernel = QUANTIZED_PRELU[source.type]
    ready(kernel)
    bounds = quantized_range(output.type)
    offsets = source.zero_point, alpha.zero_point, output.zero_point
    numbers = np.array([*offsets, *bounds, *scaling(*factors[0]), *scaling(*factors[1])], np.int64)
    kind = np.int8 if source.type is TensorType.INT16 else alpha.dtype

    def bind() -> Thunk:
        slopes = np.ascontiguousarray(flat(alpha.data)).view(kind)[: alpha.size]
        parts = arguments(flat(source.data), slopes, flat(output.data), (source, alpha, how, False), context.num_threads)
        return thunk([Step(kernel, [(*part, numbers) for part in parts])], context.num_threads)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32, *QUANTIZED_PRELU]]))
