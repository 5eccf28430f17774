"""SUM, compiled: float32, quantized numbers, int32 and int64 over adjacent axes."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, decline, ensure
from oplet.kernels.fixed_point import quantize_multiplier, quantized_range, quotient
from oplet_builtin_ops.ops.sum import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.fixed_point import scaling
from oplet_compiled_ops.elementwise.means import MEAN, plan_rows, plan_scaled_sums, squares_to_absorb
from oplet_compiled_ops.elementwise.quantized_sums import REAL_SUM
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.shaping.reducing import INTEGERS, TOTAL, folded_shape, plan_reduction

#: The most floats that are added one after the other: a sum of more of them would be less precise than numpy's.
_FEW = 64
#: The most quantized numbers of a sum, which is then surely within int32.
_MOST = 1 << 15


def plan(context: Context, node: Node) -> Bind:
    source = node.inputs[0]
    if source.type in INTEGERS:
        return plan_reduction(context, node, TOTAL, INTEGERS[source.type])
    outer, count, inner = folded_shape(node)
    if source.type is not TensorType.FLOAT32:
        return _plan_quantized(context, node, outer, count, inner)
    if inner == 1:
        return plan_rows(context, node, count, 1.0)
    ensure(not node.absorbed, "its kernel of columns squares nothing.")
    if count > _FEW:
        decline("its columns are long, and numpy's sums more precise.")
    return plan_reduction(context, node, TOTAL, "f4")


def _plan_quantized(context: Context, node: Node, outer: int, count: int, inner: int) -> Bind:
    """Plan sums of quantized numbers (outer, count, inner) over the middle axis, rescaled with the numpy kernel's factor.

    uint8 is rescaled in fixed point, other types in float32.
    """
    source, output = node.inputs[0], node.outputs[0]
    bounds = quantized_range(output.type)
    constants: tuple[float, ...]
    if count > _MOST:
        decline("its sums have too many numbers.")
    if source.type is TensorType.UINT8:
        multiplier, shift = quantize_multiplier(quotient(source.scale, output.scale))
        if shift > 0 and (256 * count) << shift >= 1 << 31:
            decline("its sums may wrap around when they are scaled.")
        kernel = MEAN[source.type]
        constants = source.zero_point * count, *scaling(multiplier, shift), output.zero_point, *bounds
    else:
        with np.errstate(all="ignore"):
            scale = np.float32(source.scale) / np.float32(output.scale)
            bias = np.float32(-source.zero_point) * scale * np.float32(count)
        if not (bounds[1] + 1) * count * float(scale) + abs(float(bias)) < 2.0**30:
            decline("its sums may come near the bounds of int32.")
        kernel = REAL_SUM[source.type]
        constants = float(scale), float(bias), float(output.zero_point), float(bounds[0]), float(bounds[1])
    return plan_scaled_sums(context, node, kernel, (outer, count, inner), constants)


_TYPES = [TensorType.FLOAT32, TensorType.UINT8, *REAL_SUM, *INTEGERS]
REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[_TYPES], constant=[1]), fuses=squares_to_absorb)
