"""GELU, compiled: float32, exact or by tanh, and quantized numbers by look-up table."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, TensorType
from oplet.schema.options import GeluOptions
from oplet_builtin_ops.ops.gelu import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.flat import plan_flat
from oplet_compiled_ops.elementwise.maps.functions import GELU, GELU_BY_TANH
from oplet_compiled_ops.elementwise.maps.tables import TABLED, plan_table
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.threads.splitting import WORTH_VALUES


def plan(context: Context, node: Node) -> Bind:
    if node.inputs[0].type in TABLED:
        return plan_table(context, node)
    kernel = GELU_BY_TANH if node.options(GeluOptions).approximate else GELU
    return plan_flat(context, kernel, (node.inputs[0], node.outputs[0]), worth=WORTH_VALUES // 8)


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32, *TABLED]]))
