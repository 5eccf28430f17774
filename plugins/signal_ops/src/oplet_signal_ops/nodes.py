"""Checks that the ops make of their nodes, and the state that nodes keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from oplet import Allocation, Context, Node, Tensor, TensorType, ensure, ensure_type

__all__ = ["AT_ONCE", "Array", "Thunk", "add_state", "ensure_operands", "ensure_vector"]

#: Values that are worked on at once, where what is worked out in between is wider than they are.
AT_ONCE = 1 << 16

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


def ensure_vector(tensor: Tensor, type: TensorType) -> None:
    """Refuse the node unless the tensor has one dimension and is of the type."""
    ensure_type(tensor, type)
    ensure(tensor.ndim == 1, f"{tensor} must have one dimension.")


def add_state(context: Context, node: Node, shape: tuple[int, ...], type: TensorType) -> Tensor:
    """Memory of the node's own that lives on between invokes: zeros at first and after `reset_all_variables()`.

    Zeros are therefore how every op begins, whatever else its state counts.
    """
    state = context.add_temporary(node, shape, type, allocation=Allocation.PERSISTENT)
    state.is_variable = True
    return state
