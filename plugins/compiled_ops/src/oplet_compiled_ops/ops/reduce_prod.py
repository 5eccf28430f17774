"""REDUCE_PROD, compiled: over adjacent constant axes."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet.kernels.fixed_point import quantize_multiplier, quantized_range, quotient, single_rounding
from oplet_builtin_ops.ops.reduce_prod import REGISTRATION as BUILTIN
from oplet_compiled_ops.elementwise.quantized_sums import PRODUCT as QUANTIZED
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.shaping.reducing import INTEGERS, PRODUCT, folded_shape, plan_reduction
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The most quantized numbers of a part, which is done as a whole.
_MOST = 1 << 20


def plan(context: Context, node: Node) -> Bind:
    source, output = node.inputs[0], node.outputs[0]
    if source.type in INTEGERS and (source.quantization is None or not len(source.quantization.scales)):
        return plan_reduction(context, node, PRODUCT, INTEGERS[source.type])
    if source.type not in QUANTIZED or source.quantization is None or not len(source.quantization.scales):
        decline("its integers have no scale.")
    outer, count, inner = folded_shape(node)
    if count * inner > _MOST:
        decline("it multiplies so many numbers that the run is to be stopped between them.")
    multiplier, shift = quantize_multiplier(quotient(source.scale, output.scale ** (1.0 / count)))
    scale, right = single_rounding(multiplier, shift)
    if not 0 < right < 63:
        decline("its quotient of scales is too large.")
    constants = source.zero_point, scale, (1 << right) >> 1, right, output.zero_point, *quantized_range(output.type)
    kernel = QUANTIZED[source.type]
    ready(kernel)
    ranges = cut(outer, 4 * source.size // WORTH_VALUES, context.num_threads)

    def bind() -> Thunk:
        x, y = source.data.reshape(outer, count, inner), output.data.reshape(outer, inner)
        return thunk(
            [Step(kernel, each(ranges, lambda some, _: (x[slice(*some)], y[slice(*some)], *constants)))], context.num_threads
        )

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[*INTEGERS, TensorType.INT8, TensorType.INT16]], constant=[1]))
