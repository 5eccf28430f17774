"""SOFTMAX, compiled: float32, and integers with outputs of the same type."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet.schema.options import SoftmaxOptions
from oplet_builtin_ops.ops.softmax import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.flat import plan_flat
from oplet_compiled_ops.library.kernels import Kernel
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.threads.splitting import WORTH_VALUES

SOFTMAX = Kernel("softmax.exponentials:SOFTMAX", "void(f4[::1], f4[::1], i8, f4)")
SOFTMAX_8 = Kernel("softmax.quantized_softmax:SOFTMAX_8", "void(u1[::1], u1[::1], i8, i8[::1], i8[::1], i8)")
SOFTMAX_16 = Kernel("softmax.quantized_softmax:SOFTMAX_16", "void(i2[::1], i2[::1], i8, i8[::1], i2[::1])")
#: The longest row of integers whose sums surely are within 32 bits.
_LONGEST_ROW = 8191


def plan(context: Context, node: Node) -> Bind:
    source, output = node.inputs[0], node.outputs[0]
    if not output.size:
        decline("there is nothing to compute.")
    columns = source.shape[-1]
    if source.type == TensorType.FLOAT32:
        beta = node.options(SoftmaxOptions).beta
        if beta < 0:
            decline("its exponentials may exceed floats, where the kernel's end.")
        return plan_flat(context, SOFTMAX, (source, output), columns, beta, columns=columns, worth=WORTH_VALUES // 4)
    from oplet_builtin_ops.arithmetic.quantized_softmax import Softmax8, Softmax16  # here, as those of floats need no tables

    if isinstance(node.prepared, Softmax16) and columns <= _LONGEST_ROW:
        tabled = node.prepared.exponentials, node.prepared.reciprocals
        return plan_flat(context, SOFTMAX_16, (source, output), columns, *tabled, columns=columns, worth=WORTH_VALUES // 4)
    if source.type != output.type or not isinstance(node.prepared, Softmax8) or columns > _LONGEST_ROW:
        decline("its rows are too long, or its numbers of another kind.")
    tables = node.prepared
    lowest = 128 if output.type == TensorType.INT8 else 0
    exponentials, summands = flat(tables.exponentials), flat(tables.summands).astype(np.int64)
    constants = columns, exponentials, summands, lowest
    # An int8 with its sign bit flipped has the bits of the uint8 that is larger by 128.
    return plan_flat(context, SOFTMAX_8, (source, output), *constants, columns=columns, worth=WORTH_VALUES // 4, bits=np.uint8)


REGISTRATION = override(
    BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32, TensorType.INT8, TensorType.UINT8, TensorType.INT16]])
)
