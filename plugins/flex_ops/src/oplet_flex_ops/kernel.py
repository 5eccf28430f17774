"""Decorators that make registrations of Flex ops from a function that computes the result; their arguments define the op.

A `shaped` operator knows its outputs' shapes from its inputs' shapes and the values of some inputs; a `computed` one only when it has
the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from oplet import Context, Node, Registration, charge, ensure
from oplet.errors import PrepareError
from oplet.kernels.arrays import Array, Shape, Thunk, copies
from oplet_flex_ops.attributes import Attributes, attributes_of
from oplet_flex_ops.signature import Signature, Types

__all__ = ["Bind", "Compute", "Settings", "Shapes", "Views", "computed", "filled", "reserve", "shaped", "viewed", "zeros"]

#: What an operator keeps of its attributes, checked.
Settings = Callable[[Attributes], Any]
#: The shapes of a node's outputs from its inputs; the second argument is what `Settings` returned.
Shapes = Callable[[Node, Any], Sequence[Shape]]
#: The thunk of a node whose outputs have their shapes.
Bind = Callable[[Node, Any], Thunk]
#: Views of the inputs' data that the outputs are copies of.
Views = Callable[[Node, Any], Sequence[Array]]
#: The results, one array for each output, from the settings and the inputs' data.
Compute = Callable[..., Any]

#: Bytes of scratch for each byte of an input that computations of `computed` operators are charged for.
_SCRATCH = 4
#: Fewer bytes than a pointer reaches.
_ADDRESSABLE = 1 << 62


def shaped(
    op: str, text: str, shapes: Shapes, settings: Settings | None = None, *, pure: bool = True, **types: Types
) -> Callable[[Bind], Registration]:
    """Return the decorator of a function that binds an op whose output shapes are known before it runs; it makes its registration.

    The function takes the node and the settings, and returns the thunk that runs the node for the present shapes.

    Args:
        op: the operator's name.
        text: its inputs and outputs, of the form that `Signature` describes; "!" marks the inputs whose values `shapes` reads.
        shapes: returns the outputs' shapes; raises EnsureError for invalid inputs.
        settings: parses the node's attributes once, for `shapes` and the function; None for an op whose only attributes are element
            types.
        pure: whether the outputs depend on the inputs only.
        types: the allowed types of each type attribute.
    """
    signature = Signature(text, types, op)

    def prepare(context: Context, node: Node) -> None:
        attributes = attributes_of(node)
        signature.check(context, node, attributes)
        given = settings(attributes) if settings else None
        known = all(node.inputs[position].is_constant for position in signature.reads)
        if known:
            try:
                _resize(context, node, shapes(node, given))
            except PrepareError:  # TensorFlow's kernels look at shapes and values when they run
                known = False
        if not known:
            for output in node.outputs:
                context.set_dynamic(output)
        node.prepared = given, known

    def registration(bind: Bind) -> Registration:
        def bound(context: Context, node: Node) -> Thunk:
            given, known = node.prepared
            if known:
                return bind(node, given)

            def run() -> None:
                _resize(context, node, shapes(node, given))
                bind(node, given)()

            return run

        return Registration(prepare=prepare, bind=bound, pure=pure)

    return registration


def viewed(op: str, text: str, shapes: Shapes, settings: Settings | None = None, **types: Any) -> Callable[[Views], Registration]:
    """Return the decorator of an op that only moves values: its outputs are copies of the array views that the function returns."""

    def registration(views: Views) -> Registration:
        def bind(node: Node, given: Any) -> Thunk:
            return copies(list(zip([output.data for output in node.outputs], views(node, given))))

        return shaped(op, text, shapes, settings, **types)(bind)

    return registration


def filled(
    op: str, text: str, shapes: Shapes, settings: Settings | None = None, **types: Any
) -> Callable[[Compute], Registration]:
    """Return the decorator of an op with known output shapes; its function writes into the outputs.

    The function takes the settings, the list of output arrays, and the inputs' arrays.
    """

    def registration(compute: Compute) -> Registration:
        def bind(node: Node, given: Any) -> Thunk:
            return partial(compute, given, [output.data for output in node.outputs], *[tensor.data for tensor in node.inputs])

        return shaped(op, text, shapes, settings, **types)(bind)

    return registration


def computed(
    op: str, text: str, settings: Settings | None = None, *, pure: bool = True, **types: Types
) -> Callable[[Compute], Registration]:
    """Return the decorator of an op whose output shapes depend on its results.

    The function takes the settings and the inputs' arrays, and returns an array, or a sequence of one for each output. What it
    allocates beyond four times the inputs' bytes it must count against the memory limit itself, by `reserve`.
    """
    signature = Signature(text, types, op)

    def prepare(context: Context, node: Node) -> None:
        attributes = attributes_of(node)
        signature.check(context, node, attributes)
        node.prepared = settings(attributes) if settings else None
        for output in node.outputs:
            context.set_dynamic(output)

    def registration(compute: Compute) -> Registration:
        def bind(context: Context, node: Node) -> Thunk:
            given, inputs, outputs = node.prepared, [tensor.data for tensor in node.inputs], node.outputs
            scratch, single = _SCRATCH * sum(tensor.nbytes for tensor in node.inputs), len(outputs) == 1

            def run() -> None:
                charge(scratch)
                results = compute(given, *inputs)
                for output, result in zip(outputs, (results,) if single else results):
                    context.resize_tensor(output, result.shape)
                    output.data[...] = result

            return run

        return Registration(prepare=prepare, bind=bind, pure=pure)

    return registration


def reserve(shape: Sequence[int], itemsize: int = 8) -> None:
    """Charge an array's bytes to the memory limit before it is allocated, for shapes that come from a model's values.

    Raises:
        LimitError: the interpreter's memory limit does not allow it.
        EnsureError: a size is negative, or no memory could hold the array.
    """
    elements = prod(shape)
    ensure(
        all(size >= 0 for size in shape) and prod(max(size, 1) for size in shape) * itemsize < _ADDRESSABLE,
        lambda: f"the shape {list(shape)} is no shape, or one with more elements than can be addressed.",
    )
    charge(elements * itemsize)


def zeros(shape: Sequence[int], dtype: Any) -> Array:
    """Return an array of zeros (or empty strings) of a shape that comes from a model's values, charged before allocation."""
    kind = np.dtype(dtype)
    reserve(shape, kind.itemsize)
    return np.full(shape, b"", object) if kind.kind == "O" else np.zeros(shape, kind)


def _resize(context: Context, node: Node, shapes: Sequence[Shape]) -> None:
    for output, shape in zip(node.outputs, shapes):
        context.resize_tensor(output, shape)
