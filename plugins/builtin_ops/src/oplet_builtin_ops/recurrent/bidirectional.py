"""Shared parts of bidirectional sequence ops: the auxiliary input, and where each direction writes its output."""

from __future__ import annotations

from oplet import Context, Node, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.records import Row
from oplet_builtin_ops.recurrent.sequences import Layout

__all__ = ["Sources", "in_order", "output_views", "read_sources", "resize_outputs"]


class Sources(Row):
    """The input tensors of the forward and the backward direction.

    Attributes:
        forward: the input of the forward direction.
        backward: the input of the backward direction.
        auxiliary: the second input of both; None for none.
    """

    forward: Tensor
    backward: Tensor
    auxiliary: Tensor | None

    @property
    def auxiliary_depth(self) -> int:
        """The number of features of the auxiliary input; 0 if there is none."""
        return 0 if self.auxiliary is None else self.auxiliary.shape[-1]


def read_sources(node: Node, position: int, weighted: bool) -> Sources:
    """Return both directions' inputs; an auxiliary input without weights is the backward direction's input.

    Args:
        node: the node.
        position: the position of the auxiliary input.
        weighted: whether the node has weights for the auxiliary input.
    """
    source, auxiliary = node.inputs[0], node.optional_input(position)
    ensure(auxiliary is not None or not weighted, f"input {position}, the auxiliary input, is left out, but it has weights.")
    if auxiliary is None:
        return Sources(source, source, None)
    ensure_type(auxiliary, TensorType.FLOAT32)
    ensure(auxiliary.ndim == 3, f"the auxiliary input {auxiliary} must have 3 dimensions.")
    wanted = source.shape[:2] if weighted else source.shape
    ensure(
        auxiliary.shape[: len(wanted)] == wanted, f"the auxiliary input {auxiliary} must have a shape like the input {source}."
    )
    return Sources(source, source, auxiliary) if weighted else Sources(source, auxiliary, None)


def resize_outputs(context: Context, node: Node, layout: Layout, sizes: tuple[int, int], merged: bool) -> None:
    """Set the output shapes: one output per direction, or one with both concatenated."""
    count = 1 if merged else 2
    ensure(len(node.outputs) == count, f"it has {len(node.outputs)} outputs and gives {count} when merge_outputs is {merged}.")
    for output, size in zip(node.outputs, (sum(sizes),) if merged else sizes):
        ensure_type(output, TensorType.FLOAT32)
        context.resize_tensor(output, (*layout.shape, size))


def output_views(node: Node, forward_size: int, merged: bool) -> tuple[Array, Array]:
    """Return the views of the outputs that the forward and the backward direction write to."""
    if merged:
        both = node.outputs[0].data
        return both[..., :forward_size], both[..., forward_size:]
    return node.outputs[0].data, node.outputs[1].data


def in_order(first: Thunk, second: Thunk) -> Thunk:
    """Return a function that runs the forward cell, then the backward one."""

    def run() -> None:
        first()
        second()

    return run
