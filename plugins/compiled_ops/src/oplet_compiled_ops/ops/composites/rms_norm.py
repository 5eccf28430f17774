"""odml.rms_norm, compiled."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet_builtin_ops.ops.composites.rms_norm import REGISTRATION as BUILTIN
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.softmax.norms import RMS_NORM
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each
from oplet_compiled_ops.threads.team import Step, ready, thunk


def plan(context: Context, node: Node) -> Bind:
    (x, weight), output, epsilon = node.inputs, node.outputs[0], node.prepared
    if not x.size:
        decline("there is nothing to compute.")
    ready(RMS_NORM)
    node.in_place = [x]
    columns = weight.size
    share = float(np.float32(1 / columns))
    ranges = cut(x.size // columns, x.size // WORTH_VALUES, context.num_threads)

    def bind() -> Thunk:
        rows, factors, result = flat(x.data), flat(weight.data), flat(output.data)
        spans = each(ranges, lambda some, _: slice(some[0] * columns, some[1] * columns))
        parts = each(spans, lambda span, _: (rows[span], factors, result[span], share, epsilon))
        return thunk([Step(RMS_NORM, parts)], context.num_threads)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32]] * 2))
