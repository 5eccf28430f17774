"""L2_NORMALIZATION, compiled: float32, int8 and uint8."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet_builtin_ops.ops.l2_normalization import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.flat import plan_flat
from oplet_compiled_ops.overriding import Bind, override
from oplet_compiled_ops.softmax.norms import NORM, QUANTIZED_NORM
from oplet_compiled_ops.threads.splitting import WORTH_VALUES

#: The bits by which the output's scale, 1/128, shifts.
_BITS = 7
#: The longest row, which is computed as a whole.
_LONGEST = 1 << 20


def plan(context: Context, node: Node) -> Bind:
    source, output = node.inputs[0], node.outputs[0]
    columns = source.shape[-1]
    if not source.size or columns > _LONGEST:
        decline("there is nothing to compute, or its rows are long.")
    if source.type is TensorType.FLOAT32:
        return plan_flat(context, NORM, (source, output), columns, columns=columns)
    signed = source.type is TensorType.INT8
    numbers = (0, 0, _BITS, -128, 127) if signed else (128, _BITS, 0, 0, 255)
    kernel = QUANTIZED_NORM[source.type]
    return plan_flat(
        context, kernel, (source, output), columns, source.zero_point, *numbers, columns=columns, worth=WORTH_VALUES // 4
    )


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32, *QUANTIZED_NORM]]))
