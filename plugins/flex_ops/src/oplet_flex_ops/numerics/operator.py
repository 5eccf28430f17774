"""A decorator that makes registrations of TensorFlow ops from a signature, an output shape function, and a formula on arrays.

Half precision and bfloat16 are computed in single precision and rounded once, which is how TensorFlow's kernels for the CPU compute
them: the arrays that a formula gets are float32 there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, charge
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet_flex_ops.attributes import Attributes, attributes_of
from oplet_flex_ops.numerics.types import SHORT_FLOATS
from oplet_flex_ops.signature import Signature, Types

__all__ = ["Formula", "Shapes", "Step", "operator", "quietly", "writing"]

#: The shapes of the outputs. It reads values only of the inputs that the signature marks, and refuses what cannot be computed.
Shapes = Callable[[Node, Attributes], Sequence[Shape]]
#: A function without arguments that computes a node; what it returns does not count.
Step = Callable[[], object]
#: The step that computes the arrays of the outputs from those of the inputs: `formula(attributes, inputs, outputs)`, and the state of
#: the node as a fourth argument where it has one.
Formula = Callable[..., Step]


def operator(
    text: str,
    shapes: Shapes,
    *,
    widened: Mapping[TensorType, TensorType] | None = None,
    state: Callable[[], Any] | None = None,
    differences: str = "",
    **types: Types,
) -> Callable[[Formula], Registration]:
    """Return the decorator of an op's formula, which makes the op's registration.

    The formula returns, for attributes and arrays, the function that computes the outputs; numpy's warnings of overflow and invalid
    values are off while that runs.

    Args:
        text: its inputs and outputs, of the form that `Signature` describes, without names; "!" marks the inputs whose values
            `shapes` reads.
        shapes: computes the shapes of its outputs.
        widened: maps types to the type that they are computed in; None for float16 and bfloat16 in float32.
        state: makes the state of a node, which is kept between invokes; None where the outputs depend on the inputs alone.
        differences: one sentence on how the results differ from TensorFlow's; "" where they do not.
        types: the types that each type attribute may be.
    """
    signature = Signature(text, types)
    wider = dict.fromkeys(SHORT_FLOATS, TensorType.FLOAT32) if widened is None else widened

    def shapes_of(node: Node) -> Sequence[Shape]:
        return shapes(node, attributes_of(node))

    def prepare(context: Context, node: Node) -> None:
        signature.ensure(node)
        defer_or_resize(context, node, [node.inputs[position] for position in signature.reads], shapes_of)
        if node.prepared:
            for tensor in (*node.inputs, *node.outputs):
                if tensor.type in wider:
                    context.add_temporary(node, tensor.shape, wider[tensor.type])

    def registration(formula: Formula) -> Registration:
        def bind_arrays(node: Node) -> Thunk:
            before: list[tuple[Array, Array]] = []
            after: list[tuple[Array, Array]] = []
            temporaries = [temporary.data for temporary in node.temporaries]
            arrays = []
            for position, tensor in enumerate((*node.inputs, *node.outputs)):
                array = tensor.data
                if tensor.type in wider:
                    wide = temporaries.pop(0) if temporaries else _scratch(tensor, wider[tensor.type])
                    (before if position < len(node.inputs) else after).append((wide, array))
                    array = wide
                arrays.append(array)
            split = len(node.inputs)
            kept = () if state is None else (node.user_data,)
            return _between(before, formula(attributes_of(node), arrays[:split], arrays[split:], *kept), after)

        return Registration(
            init=None if state is None else lambda context, buffer: state(),
            prepare=prepare,
            bind=lambda context, node: defer_or_run(context, node, shapes_of, bind_arrays),
            pure=state is None,
            types=signature.main_types(),
            differences=differences,
        )

    return registration


def writing(function: Callable[..., Any]) -> Formula:
    """Return the formula of an op without attributes that matter: `function(*inputs, *outputs)` writes into the outputs."""
    return lambda attributes, inputs, outputs: partial(function, *inputs, *outputs)


def _scratch(tensor: Tensor, type: TensorType) -> Array:
    charge(tensor.size * 8)
    return np.empty(tensor.shape, np.float64 if type is TensorType.FLOAT64 else np.float32)


def _between(before: list[tuple[Array, Array]], thunk: Step, after: list[tuple[Array, Array]]) -> Thunk:
    if not before and not after:
        return quietly(thunk)

    def run() -> None:
        with np.errstate(all="ignore"):
            for wide, source in before:
                wide[...] = source
            thunk()
            for wide, target in after:
                target[...] = wide

    return run


def quietly(thunk: Step) -> Thunk:
    """Wrap a function to run with numpy's floating-point warnings off."""

    def run() -> None:
        with np.errstate(all="ignore"):
            thunk()

    return run
