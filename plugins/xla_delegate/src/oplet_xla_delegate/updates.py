"""Updates of one row of a list, as converters write them: what is before the row, the row, and what is behind, joined again.

Both slices have shapes that are known only while running, but what is joined has the list's: it is an update in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from oplet import Node, Tensor
from oplet.schema.enums import ActivationFunctionType
from oplet.schema.options import ConcatenationOptions

__all__ = ["Update", "updates_in"]


class Update(NamedTuple):
    """A CONCATENATION that replaces consecutive rows of a tensor: slice before, new rows, slice after."""

    whole: Tensor  #: The tensor whose rows are replaced.
    rows: Tensor  #: The new rows.
    behind: Tensor  #: The tensor with the start of the slice after the new rows.
    slices: tuple[Node, Node]  #: The two SLICE nodes.


def updates_in(nodes: Sequence[Node], outputs: Sequence[Tensor]) -> dict[Node, Update]:
    """Return the row updates among nodes, by their CONCATENATION node; they can be computed in place.

    Args:
        nodes: all nodes of a subgraph.
        outputs: the subgraph's outputs.
    """
    makers = {tensor: node for node in nodes if node.op_name == "SLICE" for tensor in node.outputs}
    reads = [tensor for node in nodes for tensor in node.inputs] + list(outputs)
    found = {}
    for node in nodes:
        if node.op_name != "CONCATENATION" or len(node.inputs) != 3:
            continue
        (first, rows, last), options = node.inputs, node.options(ConcatenationOptions)
        before, behind = makers.get(first), makers.get(last)
        if before is None or behind is None or reads.count(first) != 1 or reads.count(last) != 1:
            continue
        whole, begin, _ = before.inputs
        fits = (
            behind.inputs[0] is whole
            and begin.is_constant
            and not begin.data.any()
            and behind.inputs[2].is_constant
            and (behind.inputs[2].data == -1).all()
            and options.axis == 0
            and options.fused_activation_function is ActivationFunctionType.NONE
            and node.outputs[0].shape == whole.shape
            and not node.outputs[0].is_dynamic
            and rows.shape[1:] == whole.shape[1:]
        )
        if fits:
            found[node] = Update(whole, rows, behind.inputs[1], (before, behind))
    return found
