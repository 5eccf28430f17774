"""Einsum: Einstein summation over one or two tensors. Numerics: tensorflow/core/kernels/linalg/einsum_op_impl.h."""

from __future__ import annotations

import string
from collections.abc import Sequence

import numpy as np

from oplet import Node, Registration, decline, ensure
from oplet.kernels.arrays import Array, Shape
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.operator import Signature, Step, operator
from oplet_flex_ops.numerics.types import COMPLEX, FLOATS, INDEX

_LABELS = frozenset(string.ascii_letters)


def _parts(attributes: Attributes, inputs: int) -> tuple[list[str], str]:
    """Parse the equation; return the operands' and the result's subscripts."""
    equation = attributes.text("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    operands = left.split(",")
    ensure(arrow and len(operands) == inputs, f"the equation '{equation:.60}' does not state {inputs} operands and a result.")
    for labels in (*operands, right):
        plain = labels.replace("...", "", 1)
        ensure(set(plain) <= _LABELS, f"the equation '{equation:.60}' holds other than letters and one '...' for each operand.")
    unknown = set(right) - set(left)
    ensure(
        not unknown, f"the result of the equation '{equation:.60}' has labels that no operand has: {''.join(sorted(unknown))}."
    )
    plain = right.replace("...", "")
    if len(set(plain)) < len(plain):
        decline(f"numpy's einsum cannot repeat a label in the result, as the equation '{equation:.60}' does.")
    return operands, right


def _shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure(len(node.inputs) <= 2, f"Einsum has {len(node.inputs)} operands; it takes one or two.")
    operands, result = _parts(attributes, len(node.inputs))
    sizes: dict[str, int] = {}
    batch: Shape = ()
    for labels, tensor in zip(operands, node.inputs):
        plain = labels.replace("...", "")
        free = tensor.ndim - len(plain)
        ensure(free == 0 or (free > 0 and "..." in labels), f"{tensor} does not have the dimensions '{labels}'.")
        before = labels.index("...") if "..." in labels else len(labels)
        named = tensor.shape[:before] + tensor.shape[before + free :]
        for label, size in zip(plain, named):
            known = sizes.setdefault(label, size)
            ensure(known == size, f"the label '{label}' stands for sizes {known} and {size}, of {tensor}.")
        middle = tensor.shape[before : before + free]
        fits = all(m == n or 1 in (m, n) for m, n in zip(batch[::-1], middle[::-1]))
        ensure(fits, f"the dimensions '...' of {tensor} do not broadcast.")
        batch = np.broadcast_shapes(batch, middle)
    ensure("..." in result or not batch, "the result must have '...' where an operand has dimensions there.")
    before = result.index("...") if "..." in result else len(result)
    plain = result.replace("...", "")
    return [(*(sizes[label] for label in plain[:before]), *batch, *(sizes[label] for label in plain[before:]))]


def _formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    operands, result = _parts(attributes, len(inputs))
    equation = f"{','.join(operands)}->{result}"
    return lambda: np.copyto(outputs[0], np.einsum(equation, *inputs, optimize=True))


def _registration() -> Registration:
    return operator(Signature(["N*T"], ["T"], {"T": (*FLOATS, *COMPLEX, *INDEX)}), _shapes, _formula)


EINSUM = _registration()
