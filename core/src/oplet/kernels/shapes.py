"""Shapes of outputs: set in `prepare` where they are known by then, else at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_

from oplet.errors import PrepareError
from oplet.kernels.arrays import Array, Shape, Thunk
from oplet.ops.context import Context, Node
from oplet.ops.tensor import Tensor

__all__ = ["defer_or_resize", "defer_or_run", "has_placeholder", "offer_in_place"]

#: A function that computes the shapes of a node's outputs from the present values of its inputs.
Shapes = Callable[[Node], Sequence[Shape]]

#: The most bytes of the tensors of a node whose thunk is kept: of larger ones it saves little and holds memory.
_SMALL = 1 << 16


def defer_or_resize(context: Context, node: Node, sources: Sequence[Tensor], shapes: Shapes) -> None:
    """Set the outputs' shapes in `prepare` if all `sources` are constant; otherwise make the outputs dynamic.

    Until the application resizes its inputs, shapes may be placeholders (see `has_placeholder`). So `shapes`, and not the
    kernel's `prepare`, checks the shapes of `sources`; and where constant sources do not fit placeholder shapes of other inputs,
    the node is refused only at run time, if the shapes are the same by then. A refusal by `ensure_fits` in `shapes` always waits
    for the run.

    Args:
        sources: the inputs whose values `shapes` reads.
        shapes: computes the outputs' shapes, and raises EnsureError where they do not exist.
    """
    node.prepared = all(source.is_constant for source in sources)
    if node.prepared:
        try:
            _resize(context, node, shapes)
        except PrepareError:
            if not has_placeholder(node):
                raise
            node.prepared = False
    if not node.prepared:
        for output in node.outputs:
            context.set_dynamic(output)


def has_placeholder(node: Node) -> bool:
    """Whether a non-constant input has size 1 in a dimension that the model leaves free: a placeholder until it is resized."""
    return any(
        tensor is not None
        and not tensor.is_constant
        and any(dim == 1 and declared == -1 for dim, declared in zip(tensor.shape, tensor.shape_signature))
        for tensor in node.inputs
    )


def defer_or_run(
    context: Context, node: Node, shapes: Shapes, bind: Callable[[Node], Thunk], reads: Sequence[Tensor] | None = None
) -> Thunk:
    """Return the function that runs a node prepared with `defer_or_resize`; with dynamic outputs it resizes and binds at each
    run.

    Args:
        shapes: computes the outputs' shapes; the function that was given to `defer_or_resize`.
        bind: returns the thunk for the present shapes.
        reads: the numeric inputs whose values `shapes` and `bind` read; what the thunk reads when it runs does not count. If they
            are given, a small node is bound again only if a value of theirs, or a tensor's array, is not the last run's.
    """
    if node.prepared:
        return bind(node)
    if reads is None:

        def run() -> None:
            _resize(context, node, shapes)
            bind(node)()

        return run
    read, operands = list(reads), [tensor for tensor in (*node.inputs, *node.temporaries, *node.outputs) if tensor is not None]
    arrays: list[Array | None] = []
    values: list[bytes] = []
    bound: Thunk = _nothing

    def run_bound() -> None:
        nonlocal arrays, values, bound
        there = arrays and all(map(is_, [tensor._array for tensor in operands], arrays))
        if there and [tensor.data.tobytes() for tensor in read] == values:
            bound()
            return
        arrays, bound = [], _nothing  # which hold memory
        _resize(context, node, shapes)
        thunk = bind(node)
        if sum([tensor.nbytes for tensor in operands]) > _SMALL:
            thunk()
            return
        values = [tensor.data.tobytes() for tensor in read]  # now: a kernel may write over an input
        thunk()
        arrays, bound = [tensor._array for tensor in operands], thunk

    return run_bound


def _resize(context: Context, node: Node, shapes: Shapes) -> None:
    for output, shape in zip(node.outputs, shapes(node)):
        context.resize_tensor(output, shape)


def offer_in_place(node: Node) -> None:
    """Allow, in `prepare`, the first output to share the memory of an input of its shape (see `Node.in_place`).

    For elementwise kernels, which read each value before they overwrite it.
    """
    shape = node.outputs[0].shape
    node.in_place = [tensor for tensor in node.inputs if tensor.shape == shape]


def _nothing() -> None:
    pass
