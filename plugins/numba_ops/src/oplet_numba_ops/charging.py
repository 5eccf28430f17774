"""What constants in another layout count against the limit on memory."""

from __future__ import annotations

from oplet import Allocation, Context, Node, Tensor, charge
from oplet_numba_ops.memory import address

__all__ = ["charge_constant"]

#: In `Context.resources`: by the address of a constant of the file, the node whose layout of it counts as part of the file.
_LAID_OUT = "oplet_numba_ops", "laid out"
#: Bytes of a number in the layout that counts so.
_ITEM = 4


def charge_constant(context: Context, node: Node, tensor: Tensor, nbytes: int) -> None:
    """Charge, in a plan, the copy of a constant that a node's kernel reads.

    What a file holds is not counted, and so a copy of it is not as long as it is the only one, and no larger than its numbers are as
    float32: a file may name the same bytes as often as it likes, and what it makes of a FILL is not in it at all.

    Raises:
        LimitError: the model may not take so much.
    """
    if tensor.allocation is Allocation.CONSTANT:
        readers: dict[int, int] = context.resources.setdefault(_LAID_OUT, {})
        if readers.setdefault(address(tensor.data), id(node)) == id(node):
            nbytes -= _ITEM * tensor.size
    if nbytes > 0:
        charge(nbytes)
