"""LOCAL_RESPONSE_NORMALIZATION, compiled."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, charge, decline
from oplet.schema.options import LocalResponseNormalizationOptions
from oplet_builtin_ops.ops.local_response_normalization import REGISTRATION as BUILTIN
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.softmax.norms import NEIGHBOURS
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each, slots
from oplet_compiled_ops.threads.team import Step, ready, thunk

#: The longest row, which is computed as a whole.
_LONGEST = 1 << 16


def plan(context: Context, node: Node) -> Bind:
    source, output = node.inputs[0], node.outputs[0]
    if not source.size or source.shape[-1] > _LONGEST:
        decline("there is nothing to compute, or its rows are long.")
    options, columns = node.options(LocalResponseNormalizationOptions), source.shape[-1]
    numbers = columns, min(options.radius, columns), options.alpha, options.bias, options.beta
    ready(NEIGHBOURS)
    ranges = cut(source.size, 8 * source.size // WORTH_VALUES, context.num_threads, columns)
    charge(8 * (columns + 1) * slots(ranges))

    def bind() -> Thunk:
        x, y = flat(source.data), flat(output.data)
        sums = [np.empty(columns + 1) for _ in range(slots(ranges))]
        parts = each(ranges, lambda some, slot: (x[slice(*some)], y[slice(*some)], sums[slot], *numbers))
        return thunk([Step(NEIGHBOURS, parts)], context.num_threads)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32]]))
