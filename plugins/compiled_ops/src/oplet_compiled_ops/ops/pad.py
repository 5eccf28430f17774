"""PAD, compiled: large maps of float32 or int8 with a constant border of zeros, on several threads. On one, numpy is as fast."""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet_builtin_ops.shaping.padding import PAD as BUILTIN
from oplet_compiled_ops.overriding import Bind, Thunk, needs_threads, override


def plan(context: Context, node: Node) -> Bind:
    source, paddings = node.inputs[:2]
    output = node.outputs[0]
    if node.optional_input(2) is not None or source.ndim > 4 or not source.size:
        decline("its border has a value, or its map more than 4 dimensions or no values.")
    from oplet_compiled_ops.elementwise.flat import worth_sharing
    from oplet_compiled_ops.shaping.constant_border import BORDER
    from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each
    from oplet_compiled_ops.threads.team import Step, ready, thunk

    if not worth_sharing(context, output.size):
        decline("numpy is as fast for small maps.")
    more = (1,) * (4 - source.ndim)
    shapes = (*more, *source.shape), (*more, *output.shape)
    before = [0] * len(more) + np.asarray(paddings.data)[:, 0].tolist()
    value = output.zero_point if source.type == TensorType.INT8 and source.quantization is not None else 0
    kernel = BORDER[source.dtype.itemsize]
    ready(kernel)
    ranges = cut(shapes[1][0] * shapes[1][1], output.size // WORTH_VALUES, context.num_threads)

    def bind() -> Thunk:
        bits = f"u{source.dtype.itemsize}"
        arrays = [tensor.data.view(bits).reshape(shape) for tensor, shape in zip((source, output), shapes)]
        return thunk([Step(kernel, each(ranges, lambda some, _: (*arrays, *some, *before, value & 0xFF)))], context.num_threads)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32, TensorType.INT8]], constant=[1]), needs_threads)
