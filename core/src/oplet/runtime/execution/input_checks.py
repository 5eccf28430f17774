"""What must be true of a node's inputs before its kernel plans its work for them."""

from __future__ import annotations

from oplet.ops.context import Node, ensure
from oplet.ops.tensor import Allocation
from oplet.runtime.limits import Memory
from oplet.schema.enums import BuiltinOperator

__all__ = ["check_inputs"]

_CONSTANT = Allocation.CONSTANT
#: So many inputs and outputs count, each with what a kernel notes for it: a view, a call, an offset.
_MANY, _OPERAND = 1000, 512


def check_inputs(node: Node, memory: Memory) -> None:
    """See that a kernel can read what it is about to prepare for.

    Raises:
        EnsureError: a constant is stored sparse, and the kernel does not say that it reads that.
        LimitError: a tensor is larger than is allowed, a sparse constant as if it were dense; or there are so many of them that
            what a kernel notes for each would take more memory than is allowed.
    """
    count = len(node.inputs) + len(node.outputs)
    if count > _MANY:
        memory.charge(count * _OPERAND)
    registration = node.registration
    for position, tensor in enumerate(node.inputs):
        if tensor is None or (tensor.allocation is _CONSTANT and tensor.sparsity is None):
            continue
        memory.check_tensor(tensor)
        if tensor.sparsity is not None and registration is not None and position not in registration.sparse:
            ensure(
                node.op is BuiltinOperator.DELEGATE,
                f"{tensor} is stored sparse, which this kernel does not read as input {position}; a DENSIFY node makes it dense.",
            )
