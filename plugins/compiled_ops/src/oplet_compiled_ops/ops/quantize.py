"""QUANTIZE, compiled: float32 to 8 or 16 bits with one scale, and quantized numbers to other scales by a table."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet.kernels.fixed_point import quantized_range
from oplet_builtin_ops.arithmetic.quantization import wraps_large_values
from oplet_builtin_ops.ops.quantize import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise import CODES
from oplet_compiled_ops.elementwise.flat import plan_flat
from oplet_compiled_ops.elementwise.maps.tables import TABLED, plan_table
from oplet_compiled_ops.library.kernels import Kernel
from oplet_compiled_ops.overriding import Bind, override

_SMALLEST, _INT32 = np.finfo(np.float32).smallest_normal, np.float32(2.0**31)
#: By the type of the output.
QUANTIZE = {
    type: Kernel("elementwise.float_maps:_quantize", f"void(f4[::1], {code}[::1], f4, i8, f4, f4, f4, f4)")
    for type, code in CODES.items()
}


def plan(context: Context, node: Node) -> Bind:
    source, output = node.inputs[0], node.outputs[0]
    if source.type in TABLED:
        return plan_table(context, node)
    if output.type not in QUANTIZE:
        decline("its output is of a type that it does not write.")
    scales, zero_points = node.prepared
    loses = wraps_large_values(output.type, scales)
    if scales.size != 1 or (loses and output.type != TensorType.INT16) or not scales.flat[0] >= _SMALLEST:
        decline("it has more than one scale, one that is tiny, or numbers that lose their last bits.")
    scale, zero_point = np.float32(scales.flat[0]), int(zero_points.flat[0])
    lowest, highest = (np.float32(bound - zero_point) for bound in quantized_range(output.type))
    limit, beyond = (_INT32, lowest) if loses else (highest, highest)
    return plan_flat(context, QUANTIZE[output.type], (source, output), scale, zero_point, lowest, highest, limit, beyond)


REGISTRATION = override(
    BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32, *TABLED]], outputs=[[*QUANTIZE, TensorType.INT32]])
)
