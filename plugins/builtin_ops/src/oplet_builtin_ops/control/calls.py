"""Nodes that call subgraphs: copy the inputs in, run, copy the outputs out.

Shapes: LiteRT's tflite/kernels/control_flow_common.h, if.cc and stablehlo_case.cc. If the outputs of all subgraphs that a node may
call have known and equal shapes, the node's outputs have these shapes; otherwise they are dynamic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from oplet import Callee, Context, Tensor, ensure
from oplet.kernels.arrays import Array

__all__ = ["Call", "copies", "prepare_branches", "prepare_callee", "set_inputs"]

Copies = list[tuple[Array, Array]]


def prepare_callee(context: Context, index: int, role: str, inputs: Sequence[Tensor], outputs: int) -> Callee:
    """Prepare the subgraph that a node calls, for the shapes and types of its inputs.

    Args:
        context: the node's context.
        index: the subgraph's index.
        role: the subgraph's name in messages, such as "condition" or "then".
        inputs: the node's tensors, in the order of the callee's inputs.
        outputs: the number of outputs that the node reads.
    """
    callee = context.callee(index)
    ensure(
        len(callee.inputs) == len(inputs),
        f"the {role} {callee} takes {len(callee.inputs)} inputs, the node hands it {len(inputs)}.",
    )
    ensure(
        len(callee.outputs) == outputs,
        f"the {role} {callee} gives {len(callee.outputs)} outputs, the node takes {outputs}.",
    )
    for position, tensor in enumerate(inputs):
        ensure(tensor is not None, f"nothing is given for input {position} of the {role} {callee}.")
    set_inputs(callee, inputs)
    callee.prepare()
    return callee


def set_inputs(callee: Callee, inputs: Sequence[Tensor]) -> None:
    """Set the callee's input shapes and types to those of the caller's tensors."""
    for position, tensor in enumerate(inputs):
        callee.set_input(position, tensor.shape, tensor.type)


def prepare_branches(context: Context, callees: Sequence[Callee], outputs: Sequence[Tensor]) -> bool:
    """Set the node's output shapes from its prepared branches, one of which runs; return whether the shapes are dynamic."""
    for callee in callees:
        for position, (given, output) in enumerate(zip(callee.outputs, outputs)):
            ensure(
                given.type is output.type,
                f"output {position} is of type {output.type.name}, {callee} gives {given.type.name} there.",
            )
    first = callees[0]
    dynamic = any(
        callee.is_dynamic or any(a.shape != b.shape for a, b in zip(callee.outputs, first.outputs)) for callee in callees
    )
    for output, given in zip(outputs, first.outputs):
        if dynamic:
            context.set_dynamic(output)
        else:
            context.resize_tensor(output, given.shape)
    return dynamic


def copies(targets: Sequence[Tensor], sources: Sequence[Tensor]) -> Copies:
    """Return (target, source) array pairs to copy between tensors; a scalar and a one-element vector are compatible."""
    return [(target.data, source.data.reshape(target.shape)) for target, source in zip(targets, sources)]


class Call:
    """A function without arguments that runs one subgraph: it copies the inputs in, runs the nodes, and copies the outputs out.

    Args:
        dynamic: whether the outputs' shapes are known only after the subgraph has run.
    """

    def __init__(
        self, context: Context, callee: Callee, inputs: Sequence[Tensor], outputs: Sequence[Tensor], *, dynamic: bool
    ) -> None:
        self._context = context
        self._callee = callee
        self._inputs = inputs
        self._outputs = outputs
        self._dynamic = dynamic
        self._bind()

    def _bind(self) -> None:
        callee = self._callee
        set_inputs(callee, self._inputs)  # another node may have prepared it for other shapes
        callee.prepare()
        self._generation = callee.generation
        read = [position for position in range(len(self._inputs)) if callee.reads(position)]
        self._before = copies([callee.inputs[i] for i in read], [self._inputs[i] for i in read])
        self._run: Callable[[], None] = callee.bind()
        self._after = [] if self._dynamic else copies(self._outputs, callee.outputs)

    def __call__(self) -> None:
        if self._callee.generation != self._generation:
            self._bind()
        self._callee.restart()
        for target, source in self._before:
            target[...] = source
        self._run()
        for target, source in self._after:
            target[...] = source
        if self._dynamic:
            for output, given in zip(self._outputs, self._callee.outputs):
                self._context.resize_tensor(output, given.shape)
                np.copyto(output.data, given.data)
