"""DEQUANTIZE, compiled: 8 or 16 bits with one scale."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, NodeLimits, decline
from oplet_builtin_ops.ops.dequantize import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise import CODES
from oplet_compiled_ops.elementwise.flat import plan_flat
from oplet_compiled_ops.library.kernels import Kernel
from oplet_compiled_ops.overriding import Bind, override

#: By the type of the input.
DEQUANTIZE = {
    type: Kernel("elementwise.float_maps:_dequantize", f"void({code}[::1], f4[::1], f4, f4)") for type, code in CODES.items()
}


def plan(context: Context, node: Node) -> Bind:
    source, output = node.inputs[0], node.outputs[0]
    if source.sparsity is not None:
        decline("its numbers are stored sparse.")
    if node.prepared is None:  # None for blockwise quantization
        decline("its numbers have scales in blocks.")
    scales, zero_points = node.prepared
    if scales.size != 1:
        decline("its numbers have more than one scale.")
    scale, zero_point = np.float32(scales.flat[0]), np.float32(zero_points.flat[0])
    return plan_flat(context, DEQUANTIZE[source.type], (source, output), scale, zero_point)


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[list(DEQUANTIZE)]))
