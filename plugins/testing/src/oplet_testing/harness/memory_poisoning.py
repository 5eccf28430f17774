"""Memory poisoning: outputs and scratch are filled with values that no kernel computes, to find elements that a kernel does not
write.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Allocation, Interpreter, Tensor
from oplet.toolkit import SubgraphRunner

__all__ = ["POISON_BYTES", "poison_array", "poison_memory"]

#: Two bytes that differ in every bit; as booleans, they differ too.
POISON_BYTES = (0x2A, 0xD5)

#: Allocations whose values do not outlive an invoke.
_TRANSIENT = (Allocation.ARENA, Allocation.DYNAMIC)


def poison_array(array: NDArray[Any], byte: int) -> None:
    """Fill an array with a poison byte."""
    if array.dtype.hasobject:
        array[...] = bytes([byte]) * 8
    else:
        array.reshape(-1).view(np.uint8)[...] = byte & 1 if array.dtype == np.bool_ else byte


def poison_memory(interpreter: Interpreter, byte: int) -> None:
    """Fill with a poison byte what the next `invoke` must write: nodes' outputs and scratch, and memory that it allocates.

    Inputs, constants, variables and persistent temporaries are left alone. Set the inputs after this call.
    """
    subgraph = interpreter.subgraphs[0]
    for index in subgraph.execution_plan:
        node = subgraph.nodes[index]
        for tensor in (*node.outputs, *node.temporaries):
            if _is_transient(tensor) and tensor.has_data and tensor.data.flags.writeable:
                poison_array(tensor.data, byte)
    _poison_new_arrays(SubgraphRunner(interpreter).context, byte)


def _is_transient(tensor: Tensor) -> bool:
    return tensor.allocation in _TRANSIENT and not tensor.is_variable and not tensor.is_constant


def _poison_new_arrays(context: Any, byte: int) -> None:
    """Make the context fill each array that it gives a tensor of dynamic shape with a poison byte."""

    def poisoned(tensor: Tensor, *, zeroed: bool = True) -> NDArray[Any]:
        array: NDArray[Any] = type(context).new_array(context, tensor, zeroed=zeroed)
        if tensor.allocation is Allocation.DYNAMIC:
            poison_array(array, byte)
        return array

    context.new_array = poisoned
