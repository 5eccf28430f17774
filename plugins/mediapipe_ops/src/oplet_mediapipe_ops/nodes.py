"""Checks that several ops make of their node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from oplet import Node, Tensor, TensorType, ensure, ensure_type

__all__ = ["Array", "Thunk", "ensure_matrix", "ensure_operands"]

Array = NDArray[Any]
Thunk = Callable[[], None]


def ensure_operands(node: Node, inputs: int, outputs: int) -> None:
    """Refuse the node unless it has exactly so many inputs, all given, and outputs."""
    given = sum(node.has_input(i) for i in range(len(node.inputs)))
    ensure(
        given == len(node.inputs) == inputs,
        f"{node.op_name} takes {inputs} inputs, this node has {len(node.inputs)} ({given} given).",
    )
    ensure(len(node.outputs) == outputs, f"{node.op_name} gives {outputs} outputs, this node has {len(node.outputs)}.")


def ensure_matrix(matrix: Tensor) -> None:
    """Refuse the node unless the tensor is one 4 x 4 transformation matrix."""
    ensure_type(matrix, TensorType.FLOAT32)
    ensure(matrix.size == 16, f"the transformation matrix {matrix} must have 4 x 4 values.")
