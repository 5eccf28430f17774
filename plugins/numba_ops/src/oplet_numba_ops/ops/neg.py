"""NEG, compiled: float32."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, TensorType
from oplet_builtin_ops.ops.neg import REGISTRATION as BUILTIN
from oplet_numba_ops.elementwise.flat import plan_flat
from oplet_numba_ops.elementwise.functions import NEGATIVE
from oplet_numba_ops.overriding import Bind, override
from oplet_numba_ops.threads.splitting import WORTH_VALUES


def plan(context: Context, node: Node) -> Bind:
    return plan_flat(context, NEGATIVE, (node.inputs[0], node.outputs[0]), worth=WORTH_VALUES // 4)


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32]]))
