"""GELU, compiled: float32, exact or by tanh, and quantized numbers by look-up table."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, TensorType
from oplet.schema.options import GeluOptions
from oplet_builtin_ops.ops.gelu import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.flat import plan_flat
from oplet_compiled_ops.elementwise.maps.plain_maps import FLOATS, map_kernels
from oplet_compiled_ops.elementwise.maps.tables import TABLED, plan_table
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.threads.splitting import WORTH_VALUES


def plan(context: Context, node: Node) -> Bind:
    if node.inputs[0].type in TABLED:
        return plan_table(context, node)
    rule = "gelu_by_tanh" if node.options(GeluOptions).approximate else "gelu"
    return plan_flat(
        context, map_kernels(rule, FLOATS)[TensorType.FLOAT32], (node.inputs[0], node.outputs[0]), worth=WORTH_VALUES // 8
    )


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32, *TABLED]]))
