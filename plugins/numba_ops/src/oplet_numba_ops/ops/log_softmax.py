"""LOG_SOFTMAX, compiled: float32."""

from __future__ import annotations

from functools import partial

from oplet import Context, Node, TensorType
from oplet_builtin_ops.ops.log_softmax import REGISTRATION as BUILTIN
from oplet_numba_ops.exponentials import LOG_SOFTMAX
from oplet_numba_ops.memory import flat
from oplet_numba_ops.overriding import Bind, override


def plan(context: Context, node: Node) -> Bind | None:
    source, output = node.inputs[0], node.outputs[0]
    if source.type != TensorType.FLOAT32 or not output.size:
        return None
    compiled, columns = LOG_SOFTMAX.compiled(), source.shape[-1]
    return lambda: partial(compiled, flat(source.data), flat(output.data), columns)


REGISTRATION = override(BUILTIN, plan)
