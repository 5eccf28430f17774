"""WHILE and STABLEHLO_WHILE: run a body subgraph as long as a condition subgraph returns true.

Shapes: tflite/kernels/while.cc. The loop variables are copied from the body's outputs to its inputs all at once, as an input may be
passed on as another output.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import repeat

import numpy as np

from oplet import Callee, Context, Node, Registration, Tensor, TensorType, ensure
from oplet.errors import LimitError
from oplet.kernels.arrays import Array, Copies
from oplet.schema.options import WhileOptions
from oplet.schema.stablehlo_options import StablehloWhileOptions
from oplet_builtin_ops.control.calls import copies, prepare_callee, set_inputs


class _Loop:
    """What a loop node's `prepare` leaves for its `bind`: the condition, the body, and which loop variables change."""

    def __init__(self, context: Context, node: Node, condition: Callee, body: Callee, dynamic: bool) -> None:
        self.context = context
        self.node = node
        self.condition = condition
        self.body = body
        self.dynamic = dynamic
        self.limit = context.max_while_iterations
        #: The loop variables that the body changes.
        self.changing = [i for i, (a, b) in enumerate(zip(body.inputs, body.outputs)) if a is not b]
        #: The changing variables whose new value is another variable's input tensor, which is overwritten while values are copied.
        self.handed_on = {i for i in self.changing if any(body.outputs[i] is tensor for tensor in body.inputs)}

    @cached_property
    def is_endless(self) -> bool:
        """Return whether the condition can never change however often the body runs, so that the loop would not end."""
        return self.condition.is_pure and not any(self.condition.reads(i) for i in self.changing)

    def restart(self) -> None:
        self.condition.restart()
        self.body.restart()

    def endless(self) -> LimitError:
        return LimitError(
            f"The loop never ends: its condition, {self.condition}, is true and depends on nothing that its body, {self.body}, changes."
        )

    def too_long(self) -> LimitError:
        return LimitError(
            f"The loop of condition {self.condition} and body {self.body} did not end after {self.limit} iterations, "
            "which is the limit (max_while_iterations)."
        )


def prepare_loop(context: Context, node: Node, condition_index: int, body_index: int) -> None:
    """Check a WHILE or STABLEHLO_WHILE node, and prepare its condition and body subgraphs."""
    count = len(node.inputs)
    ensure(len(node.outputs) == count, f"a loop of {count} inputs has as many outputs, this node has {len(node.outputs)}.")
    condition = prepare_callee(context, condition_index, "condition", node.inputs, 1)
    _check_condition(condition)
    ensure(condition_index != body_index, f"the condition and the body are both {condition}.")
    body = prepare_callee(context, body_index, "body", node.inputs, count)
    for position, (given, output) in enumerate(zip(body.outputs, node.outputs)):
        wanted = node.inputs[position].type
        ensure(
            given.type is wanted and output.type is wanted,
            f"loop variable {position} is of type {wanted.name}; the body {body} gives {given.type.name} and the node's output "
            f"is {output.type.name}.",
        )
    dynamic = body.is_dynamic or not all(map(_same_shape, body.inputs, body.outputs))
    for output, given in zip(node.outputs, body.outputs):
        if dynamic:
            context.set_dynamic(output)
        else:
            context.resize_tensor(output, given.shape)
    node.prepared = _Loop(context, node, condition, body, dynamic)


def _same_shape(a: Tensor, b: Tensor) -> bool:
    """Return whether a loop variable keeps its shape; a scalar and a one-element vector count as equal."""
    return a.shape == b.shape or (a.size == b.size == 1 and a.ndim + b.ndim == 1)


def _check_condition(condition: Callee) -> None:
    output = condition.outputs[0]
    ensure(output.type is TensorType.BOOL, f"the condition {condition} gives {output}; it must be of type BOOL.")
    if not condition.is_dynamic:
        _check_scalar(condition)


def _check_scalar(condition: Callee) -> None:
    output = condition.outputs[0]
    if output.shape not in ((), (1,)):
        ensure(False, f"the condition {condition} gives the shape {list(output.shape)}; it must be one value.")


def bind_loop(context: Context, node: Node) -> Callable[[], None]:
    """Return the function that runs a prepared WHILE or STABLEHLO_WHILE node."""
    loop: _Loop = node.prepared
    return _Growing(loop) if loop.dynamic else _Steady(loop)


class _Steady:
    """A loop whose variables keep their shapes: subgraphs are bound once, an iteration only runs and copies.

    The body's inputs hold the loop variables between iterations.
    """

    def __init__(self, loop: _Loop) -> None:
        self._loop = loop
        self._bind()

    def _bind(self) -> None:
        loop, condition, body = self._loop, self._loop.condition, self._loop.body
        node = loop.node
        for callee in (condition, body):
            set_inputs(callee, node.inputs)
            callee.prepare()
        self._generations = condition.generation, body.generation
        read = [i for i in range(len(body.inputs)) if condition.reads(i)]
        start = copies([condition.inputs[i] for i in read], [node.inputs[i] for i in read])
        self._start = Copies(start + copies(body.inputs, node.inputs))
        changed = [i for i in read if i in loop.changing]
        step = copies([condition.inputs[i] for i in changed], [body.outputs[i] for i in changed])
        held = {i: np.empty_like(body.inputs[i].data) for i in loop.handed_on}
        step += [(array, body.outputs[i].data.reshape(array.shape)) for i, array in held.items()]
        step += [
            (body.inputs[i].data, held[i] if i in held else body.outputs[i].data.reshape(body.inputs[i].shape))
            for i in loop.changing
        ]
        self._step, self._finish = Copies(step), Copies(copies(node.outputs, body.inputs))
        self._rounds: Callable[[int], bool | None] | None = None
        self._run_condition = condition.bind()
        self._run_body = body.bind()
        self._flag = None if condition.is_dynamic else condition.outputs[0].data.reshape(-1)
        self._endless = loop.is_endless

    def __call__(self) -> None:
        loop = self._loop
        if (loop.condition.generation, loop.body.generation) != self._generations:
            self._bind()
        loop.restart()
        run_condition, run_body, step, flag = self._run_condition, self._run_body, self._step, self._flag
        if flag is not None and not self._endless:
            rounds = self._rounds or loop.body.rounds(loop.condition, self._start, self._step, self._finish)
            ended = None if rounds is None else rounds(loop.limit)
            self._rounds = None if ended is None else rounds
            if ended:
                return
            if ended is not None:
                raise loop.too_long()
        self._start()
        for _ in repeat(None, loop.limit):
            run_condition()
            if flag is None:
                _check_scalar(loop.condition)
                if not loop.condition.outputs[0].data.item():
                    break
            elif not flag[0]:
                break
            if self._endless:
                raise loop.endless()
            run_body()
            step()
        else:
            raise loop.too_long()
        self._finish()


class _Growing:
    """A loop whose variables may change shape: subgraphs are prepared again whenever a shape has changed."""

    def __init__(self, loop: _Loop) -> None:
        self._loop = loop

    def __call__(self) -> None:
        loop = self._loop
        body = loop.body
        loop.restart()
        values = [tensor.data for tensor in loop.node.inputs]
        for _ in repeat(None, loop.limit):
            self._run(loop.condition, values)
            _check_scalar(loop.condition)
            if not loop.condition.outputs[0].data.item():
                break
            if loop.is_endless:
                raise loop.endless()
            self._run(body, values)
            values = [
                output.data.copy() if position in loop.handed_on else output.data for position, output in enumerate(body.outputs)
            ]
        else:
            raise loop.too_long()
        for output, value in zip(loop.node.outputs, values):
            loop.context.resize_tensor(output, value.shape)
            np.copyto(output.data, value)

    def _run(self, callee: Callee, values: list[Array]) -> None:
        for position, (value, tensor) in enumerate(zip(values, self._loop.node.inputs)):
            if callee.inputs[position].shape != value.shape or callee.inputs[position].type is not tensor.type:
                callee.set_input(position, value.shape, tensor.type)
        callee.prepare()
        for position, value in enumerate(values):
            target = callee.inputs[position].data
            if callee.reads(position) and target is not value:
                np.copyto(target, value)
        callee.bind()()


def _prepare_while(context: Context, node: Node) -> None:
    options = node.options(WhileOptions)
    prepare_loop(context, node, options.cond_subgraph_index, options.body_subgraph_index)


def _prepare_stablehlo_while(context: Context, node: Node) -> None:
    options = node.options(StablehloWhileOptions)
    prepare_loop(context, node, options.cond_subgraph_index, options.body_subgraph_index)


WHILE = Registration(
    prepare=_prepare_while,
    bind=bind_loop,
    differences="loop variables may swap places, of which LiteRT overwrites one, and nested loops may share a condition subgraph",
)
STABLEHLO_WHILE = Registration(prepare=_prepare_stablehlo_while, bind=bind_loop, differences="LiteRT has no kernel of it")
