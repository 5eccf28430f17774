"""Shapes of outputs: set in `prepare` where they are known by then, else at run time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oplet.errors import PrepareError
from oplet.kernels.arrays import Shape, Thunk
from oplet.ops.context import Context, Node, ensure
from oplet.ops.tensor import Tensor

__all__ = ["defer_or_resize", "defer_or_run", "defer_refusals", "failing_thunk", "has_placeholder", "offer_in_place"]

#: A function that computes the shapes of a node's outputs from the present values of its inputs.
Shapes = Callable[[Node], Sequence[Shape]]


def defer_or_resize(context: Context, node: Node, sources: Sequence[Tensor], shapes: Shapes) -> None:
    """Set the outputs' shapes in `prepare` if all `sources` are constant; otherwise make the outputs dynamic.

    Until the application resizes its inputs, shapes may be placeholders (see `has_placeholder`). So `shapes`, and not the kernel's
    `prepare`, checks the shapes of `sources`; and where constant sources do not fit placeholder shapes of other inputs, the node is
    refused only at run time, if the shapes are the same by then.

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


def defer_refusals(bind: Callable[[Context, Node], Thunk]) -> Callable[[Context, Node], Thunk]:
    """Wrap a kernel's `bind`: where shapes may be placeholders, an error in it is raised at run time instead."""

    def wait(context: Context, node: Node) -> Thunk:
        try:
            return bind(context, node)
        except PrepareError as error:
            if has_placeholder(node):
                return failing_thunk(str(error))
            raise

    return wait


def defer_or_run(context: Context, node: Node, shapes: Shapes, bind: Callable[[Node], Thunk]) -> Thunk:
    """The thunk of a node prepared with `defer_or_resize`; with dynamic outputs it resizes and binds at each run.

    Args:
        shapes: as for `defer_or_resize`.
        bind: returns the thunk for the present shapes.
    """
    if node.prepared:
        return bind(node)

    def run() -> None:
        _resize(context, node, shapes)
        bind(node)()

    return run


def failing_thunk(message: str) -> Thunk:
    """A thunk that raises EnsureError with this message: for nodes that cannot run unless their inputs are resized."""

    def run() -> None:
        ensure(False, message)

    return run


def _resize(context: Context, node: Node, shapes: Shapes) -> None:
    for output, shape in zip(node.outputs, shapes(node)):
        context.resize_tensor(output, shape)


def offer_in_place(node: Node) -> None:
    """Allow, in `prepare`, the first output to share the memory of an input of its shape (see `Node.in_place`).

    For elementwise kernels, which read each value before they overwrite it.
    """
    shape = node.outputs[0].shape
    node.in_place = [tensor for tensor in node.inputs if tensor.shape == shape]
