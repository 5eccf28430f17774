"""Planning of recurrent cells with constant weights, for LSTM and RNN nodes of one or two directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from oplet import Context, Node, NodeLimits, Tensor, TensorType, decline
from oplet.records import Row
from oplet_builtin_ops.layers.program import Call, run_calls
from oplet_builtin_ops.recurrent.recurrent_products import Product, stacked
from oplet_builtin_ops.recurrent.sequences import Layout
from oplet_compiled_ops.library.kernels import Kernel
from oplet_compiled_ops.library.memory import Array
from oplet_compiled_ops.overriding import Bind, Thunk
from oplet_compiled_ops.recurrent.rows import PROJECT, PROJECT_MORE
from oplet_compiled_ops.threads.splitting import cut, each, in_turn, slots
from oplet_compiled_ops.threads.team import Step, ready, thunk

__all__ = ["FLOATS", "Cell", "Direction", "bind_directions", "plan_direction", "product_arguments"]

FLOATS = NodeLimits(inputs=[[TensorType.FLOAT32]])
#: The most rows, by whether the weights are int8; for more, matrix products are faster than compiled code.
_FEW = {False: 4, True: 12}
#: The most products of all rows for which a call of numpy takes longer, and parts compiled neighbours.
_SMALL = 1 << 13
#: The least products of a part.
_WORTH = 100_000
#: The most products between two checkpoints; the cost of a gate's activation, and of a step, in products.
_UNWATCHED, _GATE, _STEP = 1 << 25, 16, 64
#: The most products of bytes in a sum, which is then surely within int32.
_DEEPEST = 1 << 16

#: Returns the calls of numpy and the steps that run one direction, from the output's rows and the column of its first number.
Direction = Callable[[Array, int], tuple[list[Call], list[Step]]]


class Cell(Row):
    """A recurrent cell that runs over a sequence in one direction: its matrix products, tensors and kernels.

    Attributes:
        layout: the layout of the sequence in its tensors.
        inputs, recurrent: the products of the weights with the inputs, and with the cell's last output.
        auxiliary: the product with a second input; None if there is none.
        biases: those of the gates, one after the other, which are added to the inputs' product; None where the kernel adds them
            later.
        states: the state tensors that a step reads and writes, the outputs first.
        kernels: the kernels that run time steps: with float weights (False), and with int8 weights (True).
        more: returns the kernel's further arguments: those that follow the weights, and those that follow the gates.
        backward: whether the cell runs from the last step to the first.
        passes: how many times it runs over the sequence.
    """

    layout: Layout
    inputs: Product
    recurrent: Product
    auxiliary: Product | None
    biases: Sequence[Tensor] | None
    states: Sequence[Tensor]
    kernels: dict[bool, Kernel]
    more: Callable[[], tuple[tuple[Any, ...], tuple[Any, ...]]]
    backward: bool = False
    passes: int = 1


def product_arguments(node: Node, product: Product, quantized: Tensor | None) -> tuple[Any, ...]:
    """Return a product's weights as kernel arguments: (weights,), or with scales, scratch and `asymmetric` where they are int8.

    Args:
        node: the node, whose cache keeps the weights.
        quantized: memory for the quantized row; None if the weights are floats.
    """
    weights = stacked(node, product.weights)
    return (weights,) if quantized is None else (weights, product.scales, quantized.data, int(product.asymmetric))


def plan_direction(context: Context, node: Node, cell: Cell, source: Tensor, second: Tensor | None = None) -> Direction:
    """Plan a cell in one direction; decline (leave to numpy's kernel) many batches or long rows.

    Args:
        source: the input.
        second: the second input, where the cell has weights for one; else None.
    """
    layout, inputs, recurrent = cell.layout, cell.inputs, cell.recurrent
    hybrid, columns = recurrent.hybrid, recurrent.columns
    steps, batches = layout.steps, layout.batches
    rows, depth, width = steps * batches, source.shape[-1], cell.states[0].shape[-1]
    depths = [depth] if second is None else [depth, second.shape[-1]]
    widths = [state.shape[-1] for state in cell.states]
    if batches > _FEW[hybrid] or not source.size or 0 in (*depths, *widths) or max(*depths, *widths) > _DEEPEST:
        decline("it has many rows side by side, long rows, or nothing to compute.")
    kernel, project, project_more = cell.kernels[hybrid], PROJECT[hybrid], PROJECT_MORE[hybrid]
    ready(kernel, project, *([] if cell.auxiliary is None else [project_more]))
    projected = context.add_temporary(node, (rows, columns))
    gates = context.add_temporary(node, (columns,))
    parts = cut(rows, rows * depth * columns // _WORTH, context.num_threads)
    # Memory for a quantized row: of the input in each part, and of the state.
    lines = [context.add_temporary(node, (max(depths),), TensorType.INT16) if hybrid else None for _ in range(slots(parts))]
    line = context.add_temporary(node, (width,), TensorType.INT16) if hybrid else None
    strides = (batches, 1) if layout.time_major else (1, steps)
    begin = (steps - 1) * strides[0] if cell.backward else 0
    pace = max(1, _UNWATCHED // (batches * (columns * (width + _GATE) + _STEP)))

    def projection(values: Array, product: Product, target: Array, kernel: Kernel, *added: Array) -> Step:
        weights = [product_arguments(node, product, one) for one in lines]
        if hybrid:  # the memory of a row is as long as the longer input
            length = values.shape[1]
            weights = [(one[0], one[1], one[2][:length], one[3]) for one in weights]
        return Step(kernel, each(parts, lambda some, at: (values[slice(*some)], *weights[at], *added, target[slice(*some)])))

    def bind(output: Array, column: int) -> tuple[list[Call], list[Step]]:
        values, target = source.data.reshape(rows, depth), projected.data
        bias: Array = np.zeros(columns, np.float32) if cell.biases is None else stacked(node, cell.biases)
        calls: list[Call] = []
        before: list[Step] = []
        if not hybrid and rows > _FEW[hybrid] and rows * depth * columns > _SMALL:
            calls += [*inputs.calls(values, target), (np.add, (target, bias, target))]
        else:
            before.append(projection(values, inputs, target, project, bias))
        if cell.auxiliary is not None and second is not None:
            before.append(projection(second.data.reshape(rows, second.shape[-1]), cell.auxiliary, target, project_more))
        early, late = cell.more()
        states = [state.data.reshape(batches, state.shape[-1]) for state in cell.states]
        arguments = target, *product_arguments(node, recurrent, line), *early, *states, gates.data, *late, output, column
        order = steps, begin, -strides[0] if cell.backward else strides[0], strides[1]
        before.append(Step(kernel, each(in_turn(steps * cell.passes, pace), lambda some, _: (*arguments, *order, *some))))
        return calls, before

    return bind


def bind_directions(context: Context, directions: Sequence[Direction], places: Callable[[], Sequence[tuple[Array, int]]]) -> Bind:
    """Return the function that `bind` calls for a node with one or two directions: it returns the one that runs the node.

    Args:
        directions: the planned directions.
        places: returns for each direction its output as a table of rows, and the first column that it writes.
    """

    def bind() -> Thunk:
        calls: list[Call] = []
        steps: list[Step] = []
        for direction, (output, column) in zip(directions, places()):
            some, more = direction(output, column)
            calls += some
            steps += more
        run = thunk(steps, context.num_threads)
        return run_calls([*calls, (run, ())]) if calls else run

    return bind
