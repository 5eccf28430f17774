"""Builds registrations of TensorFlow ops from a type signature, an output shape function, and a formula on arrays.

Half precision and bfloat16 are computed in single precision and rounded once, which is how TensorFlow's kernels for the CPU compute
them: the arrays that a formula gets are float32 there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, charge, ensure, ensure_type
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.shapes import defer_or_resize, defer_or_run
from oplet_flex_ops.attributes import Attributes, attributes_of
from oplet_flex_ops.numerics.types import SHORT_FLOATS

__all__ = ["Formula", "Shapes", "Signature", "Step", "operator", "quietly"]

#: The shapes of the outputs. It reads values only of the inputs that `operator` names as `values`, and refuses what cannot be computed.
Shapes = Callable[[Node, Attributes], Sequence[Shape]]
#: A function without arguments that computes a node; what it returns does not count.
Step = Callable[[], object]
#: The step that computes the arrays of the outputs from those of the inputs: `formula(attributes, inputs, outputs)`, and the state of
#: the node as a fourth argument where it has one.
Formula = Callable[..., Step]


@dataclass(frozen=True)
class Signature:
    """Input and output types of an op, by type attributes, as in TensorFlow's op definition.

    Attributes:
        inputs: for each input the name of the attribute that is its type, or the type; "N*T" for `N` inputs of type `T`.
        outputs: likewise, the type of each output.
        types: the types that each attribute may be.
        defaults: the types of attributes that may be missing.
    """

    inputs: Sequence[str | TensorType]
    outputs: Sequence[str | TensorType]
    types: Mapping[str, Sequence[TensorType]] = field(default_factory=dict)
    defaults: Mapping[str, TensorType] = field(default_factory=dict)

    def check(self, node: Node) -> Attributes:
        """Check a node's operands against the signature, and return its attributes.

        Raises:
            EnsureError: the number or types of the operands do not fit, or an attribute is missing.
        """
        attributes = attributes_of(node)
        inputs: list[str | TensorType] = []
        for kind in self.inputs:
            name, _, type = kind.partition("*") if isinstance(kind, str) else ("", "", kind)
            inputs += [type] * attributes.integer(name, least=1, most=len(node.inputs)) if type and name else [kind]
        ensure_operands(node, len(inputs), len(self.outputs))
        found = {name: attributes.type(name, *allowed, default=self.defaults.get(name)) for name, allowed in self.types.items()}
        for tensor, kind in zip([*node.inputs, *node.outputs], [*inputs, *self.outputs]):
            if isinstance(kind, TensorType):
                ensure_type(tensor, kind)
            elif tensor.type is not found[kind]:
                ensure(
                    False, f"the attribute '{kind}' of {attributes.op} is {found[kind].name}, but {tensor} is {tensor.type.name}."
                )
        return attributes

    def main_types(self) -> tuple[TensorType, ...]:
        """Return the allowed types of the first input."""
        kind = next(iter([*self.inputs, *self.outputs]))
        return (kind,) if isinstance(kind, TensorType) else tuple(self.types[kind.rpartition("*")[2]])


def operator(
    signature: Signature,
    shapes: Shapes,
    formula: Formula,
    *,
    values: Sequence[int] = (),
    widened: Mapping[TensorType, TensorType] | None = None,
    state: Callable[[], Any] | None = None,
    differences: str = "",
) -> Registration:
    """Build the registration of an op from its signature, shape function and formula.

    Args:
        signature: the types of its inputs and outputs.
        shapes: computes the shapes of its outputs.
        formula: returns, for attributes and arrays, the function that computes the outputs; numpy's warnings of overflow and
            invalid values are off while that runs.
        values: the positions of inputs whose values `shapes` reads.
        widened: maps types to the type that they are computed in; None for float16 and bfloat16 in float32.
        state: makes the state of a node, which is kept between invokes; None where the outputs depend on the inputs alone.
        differences: one sentence on how the results differ from TensorFlow's; "" where they do not.
    """
    wider = dict.fromkeys(SHORT_FLOATS, TensorType.FLOAT32) if widened is None else widened

    def shapes_of(node: Node) -> Sequence[Shape]:
        return shapes(node, attributes_of(node))

    def prepare(context: Context, node: Node) -> None:
        signature.check(node)
        sources = [node.inputs[position] for position in values if position < len(node.inputs)]
        defer_or_resize(context, node, sources, shapes_of)
        if node.prepared:
            for tensor in (*node.inputs, *node.outputs):
                if tensor.type in wider:
                    context.add_temporary(node, tensor.shape, wider[tensor.type])

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

    def bind(context: Context, node: Node) -> Thunk:
        return defer_or_run(context, node, shapes_of, bind_arrays)

    return Registration(
        init=None if state is None else lambda context, buffer: state(),
        prepare=prepare,
        bind=bind,
        pure=state is None,
        types=signature.main_types(),
        differences=differences,
    )


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
