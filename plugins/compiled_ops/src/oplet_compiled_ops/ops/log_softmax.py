"""LOG_SOFTMAX, compiled: float32 and 8-bit numbers."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet_builtin_ops.ops.log_softmax import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.flat import plan_flat
from oplet_compiled_ops.library.kernels import Kernel
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.threads.splitting import WORTH_VALUES

LOG_SOFTMAX = Kernel("softmax.exponentials:LOG_SOFTMAX", "void(f4[::1], f4[::1], i8)")
LOG_SOFTMAX_8 = Kernel("softmax.quantized_softmax:LOG_SOFTMAX_8", "void(u1[::1], u1[::1], i8, i8[::1], i8[::1], i8)")
#: The longest row of integers whose sums surely are within 32 bits.
_LONGEST_ROW = 8191


def plan(context: Context, node: Node) -> Bind:
    source, output = node.inputs[0], node.outputs[0]
    if not output.size:
        decline("there is nothing to compute.")
    columns = source.shape[-1] if source.ndim else 1
    if source.type == TensorType.FLOAT32:
        return plan_flat(context, LOG_SOFTMAX, (source, output), columns, columns=columns, worth=WORTH_VALUES // 4)
    from oplet_builtin_ops.arithmetic.quantized_softmax import LogSoftmax8  # here, as those of floats need no tables

    tables = node.prepared
    if columns > _LONGEST_ROW or not isinstance(tables, LogSoftmax8):
        decline("its rows are too long, or its numbers of another kind.")
    constants = (
        columns,
        tables.distances.astype(np.int64),
        tables.summands.astype(np.int64),
        128 if output.type == TensorType.INT8 else 0,
    )
    return plan_flat(
        context, LOG_SOFTMAX_8, (source, output), *constants, columns=columns, worth=WORTH_VALUES // 4, bits=np.uint8
    )


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8]]))
