"""Plans of recurrent cells with constant weights, for LSTM and RNN nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet import Context, Node, NodeLimits, Tensor, TensorType, decline
from oplet_builtin_ops.kit.programs import Call, run_calls
from oplet_builtin_ops.kit.recurrence import Layout, Product, stacked
from oplet_numba_ops.compiling.kernels import Kernel
from oplet_numba_ops.overriding import Bind, Thunk
from oplet_numba_ops.recurrent.rows import PROJECT
from oplet_numba_ops.threads.splitting import cut, each, in_turn, slots
from oplet_numba_ops.threads.team import Step, ready, thunk

__all__ = ["FLOATS", "plan_cell"]

FLOATS = NodeLimits(inputs=[[TensorType.FLOAT32]])
#: The most rows, by whether the weights are int8; for more, matrix products are faster than compiled code.
_FEW = {False: 4, True: 12}
#: The least products of a part.
_WORTH = 100_000
#: The most products between two checkpoints; the cost of a gate's activation, and of a step, in products.
_UNWATCHED, _GATE, _STEP = 1 << 25, 16, 64
#: The most products of bytes in a sum, which is then surely within int32.
_DEEPEST = 1 << 16


def plan_cell(
    context: Context,
    node: Node,
    layout: Layout,
    products: tuple[Product, Product],
    biases: list[Tensor],
    states: Any,
    kernels: dict[bool, Kernel],
    settings: tuple[Any, ...],
) -> Bind:
    """Lay out a cell whose products and tensors are known; one of many batches or long rows is declined.

    Args:
        products: of the inputs, and of the state.
        biases: of the gates, one after the other.
        states: what a step reads and writes.
        kernels: the steps, by whether the weights are int8.
        settings: what the kernels take besides.
    """
    inputs, recurrent = products
    source, output = node.inputs[0], node.outputs[0]
    hybrid, columns = recurrent.hybrid, recurrent.columns
    steps, batches = layout.steps, layout.batches
    rows, depth, width = steps * batches, source.shape[-1], output.shape[-1]
    if batches > _FEW[hybrid] or not source.size or not output.size or max(depth, width) > _DEEPEST:
        decline("it has many rows side by side, long rows, or nothing to compute.")
    kernel, project = kernels[hybrid], PROJECT[hybrid]
    ready(kernel, project)
    projected = context.add_temporary(node, (rows, columns))
    gates = context.add_temporary(node, (columns,))
    parts = cut(rows, rows * depth * columns // _WORTH, context.num_threads)
    # Memory for a quantized row: of the input in each part, and of the state.
    lines = [context.add_temporary(node, (depth,), TensorType.INT16) if hybrid else None for _ in range(slots(parts))]
    line = context.add_temporary(node, (width,), TensorType.INT16) if hybrid else None
    strides = (batches, 1) if layout.time_major else (1, steps)
    pace = max(1, _UNWATCHED // (batches * (columns * (width + _GATE) + _STEP)))

    def weights_of(product: Product, quantized: Tensor | None) -> tuple[Any, ...]:
        weights = stacked(node, product.weights)
        return (weights,) if quantized is None else (weights, product.scales, quantized.data, int(product.asymmetric))

    def bind() -> Thunk:
        values, target, bias = source.data.reshape(rows, depth), projected.data, stacked(node, biases)
        calls: list[Call] = []
        before: list[Step] = []
        if not hybrid and rows > _FEW[hybrid]:
            calls += [*inputs.calls(values, target), (np.add, (target, bias, target))]
        else:
            weights = [weights_of(inputs, one) for one in lines]
            before.append(
                Step(
                    project,
                    each(parts, lambda some, slot: (values[slice(*some)], *weights[slot], bias, target[slice(*some)])),
                )
            )
        cells = [state.data.reshape(batches, width) for state in states]
        arguments = target, *weights_of(recurrent, line), *cells, gates.data, *settings, output.data.reshape(rows, width)
        before.append(Step(kernel, each(in_turn(steps, pace), lambda some, _: (*arguments, *some, *strides))))
        calls.append((thunk(before, context.num_threads), ()))
        return calls[0][0] if len(calls) == 1 else run_calls(calls)

    return bind
