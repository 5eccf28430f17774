"""LEAKY_RELU, compiled: float32, and quantized numbers by look-up table."""

from __future__ import annotations

from math import inf

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet.schema.options import LeakyReluOptions
from oplet_builtin_ops.ops.leaky_relu import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise import PRELU
from oplet_compiled_ops.elementwise.flat import bind_float_pair, float_pair_kernel
from oplet_compiled_ops.elementwise.maps.tables import TABLED, plan_table
from oplet_compiled_ops.elementwise.plain.broadcasting import repetition
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.threads.team import ready


def plan(context: Context, node: Node) -> Bind:
    source = node.inputs[0]
    if source.type in TABLED:
        return plan_table(context, node)
    if not source.size:
        decline("there is nothing to compute.")
    alpha = np.array([node.options(LeakyReluOptions).alpha], np.float32)
    how = repetition(source.shape, ())
    if how is None:
        decline("its shape is one that its loops do not know.")
    ready(float_pair_kernel(PRELU, how.per_row))
    return lambda: bind_float_pair(PRELU, source, alpha, node.outputs[0], how, -inf, inf, context.num_threads)


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32, *TABLED]]))
