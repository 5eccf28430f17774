"""Memory accounting for constants that kernels copy into another layout."""

from __future__ import annotations

from oplet import Allocation, Context, Node, Tensor, charge
from oplet_compiled_ops.library.memory import address

__all__ = ["charge_constant"]

#: In `Context.resources`: by the address of a constant (or the tensor, if it is computed), the node whose copy is not charged.
_LAID_OUT = "oplet_compiled_ops", "laid out"
#: Bytes of a number of a copy that is not charged: float32.
_ITEM = 4


def charge_constant(context: Context, node: Node, tensor: Tensor, nbytes: int) -> None:
    """Count the bytes of a repacked copy of a constant (weights in another layout) against the model's memory limit; called in
    `prepare`.

    The copy of the first node that reads a constant is free up to the constant's own size (its size as float32 if it lies in the
    file). Copies for further nodes count in full, since a file may refer to the same bytes any number of times.

    Raises:
        LimitError: the limit would be exceeded.
    """
    in_file = tensor.allocation is Allocation.CONSTANT
    readers: dict[int, int] = context.resources.setdefault(_LAID_OUT, {})
    if readers.setdefault(address(tensor.data) if in_file else -id(tensor), id(node)) == id(node):
        nbytes -= _ITEM * tensor.size if in_file else tensor.nbytes
    if nbytes > 0:
        charge(nbytes)
