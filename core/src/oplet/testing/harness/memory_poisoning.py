"""Values that no kernel computes, put where it has to write: what is still there afterwards was not written."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.ops.tensor import Allocation, Tensor
from oplet.runtime.execution.kernel_context import KernelContext
from oplet.runtime.interpreter import Interpreter

__all__ = ["POISONS", "poison", "spoil"]

#: Two that differ in every bit of every number; for booleans, too.
POISONS = (0x2A, 0xD5)

_PASSING = (Allocation.ARENA, Allocation.DYNAMIC)


def spoil(array: NDArray[Any], byte: int) -> None:
    """Fill an array with a poison."""
    if array.dtype.hasobject:
        array[...] = bytes([byte]) * 8
    else:
        array.reshape(-1).view(np.uint8)[...] = byte & 1 if array.dtype == np.bool_ else byte


def poison(interpreter: Interpreter, byte: int) -> None:
    """Spoil what the next `invoke` has to write: outputs of nodes and their scratch, also what is yet to get its memory.

    Inputs, constants, variables and persistent temporaries keep their values. What is fed has to be fed afterwards.
    """
    subgraph = interpreter._subgraphs[0]
    for index in subgraph.execution_plan:
        node = subgraph.nodes[index]
        for tensor in (*node.outputs, *node.temporaries):
            if _is_passing(tensor) and tensor.has_data and tensor.data.flags.writeable:
                spoil(tensor.data, byte)
    _spoil_what_comes(interpreter._executors[0].context, byte)


def _is_passing(tensor: Tensor) -> bool:
    return tensor.allocation in _PASSING and not tensor.is_variable and not tensor.is_constant


def _spoil_what_comes(context: KernelContext, byte: int) -> None:
    """Memory that tensors get while the graph runs, whose shapes depend on values, is spoilt too."""

    def spoilt(tensor: Tensor, *, zeroed: bool = True) -> NDArray[Any]:
        array = type(context).new_array(context, tensor, zeroed=zeroed)
        if tensor.allocation is Allocation.DYNAMIC:
            spoil(array, byte)
        return array

    context.new_array = spoilt  # type: ignore[method-assign]
