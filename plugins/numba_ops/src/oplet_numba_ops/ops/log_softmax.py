"""LOG_SOFTMAX, compiled: float32."""

from __future__ import annotations

from oplet import Context, Node, TensorType
from oplet_builtin_ops.ops.log_softmax import REGISTRATION as BUILTIN
from oplet_numba_ops.exponentials import LOG_SOFTMAX
from oplet_numba_ops.flat import plan_flat
from oplet_numba_ops.overriding import Bind, override
from oplet_numba_ops.shares import WORTH_VALUES


def plan(context: Context, node: Node) -> Bind | None:
    source, output = node.inputs[0], node.outputs[0]
    if source.type != TensorType.FLOAT32 or not output.size:
        return None
    columns = source.shape[-1]
    return plan_flat(context, LOG_SOFTMAX, (source, output), columns, columns=columns, worth=WORTH_VALUES // 4)


REGISTRATION = override(BUILTIN, plan)
