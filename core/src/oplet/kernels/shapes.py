"""Shapes of outputs: set in `prepare` where they are known by then, else when the node runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oplet.errors import PrepareError
from oplet.kernels.arrays import Shape, Thunk
from oplet.ops.context import Context, Node, ensure
from oplet.ops.tensor import Tensor

__all__ = ["defer_or_resize", "defer_or_run", "defer_refusals", "failing_thunk", "has_placeholder", "offer_in_place"]

#: The shapes of a node's outputs, from the values that its inputs have now.
Shapes = Callable[[Node], Sequence[Shape]]


def defer_or_resize(context: Context, node: Node, sources: Sequence[Tensor], shapes: Shapes) -> None:
    """Size the outputs in `prepare`: now if all `sources`, which `shapes` reads, are constant, else when invoked.

    Before that, a source's shape may be the placeholder of one that the application has still to set: what it must be is for
    `shapes` to check, not for the kernel's `prepare`. So may be the shapes of the other inputs: what does not fit them is
    refused when invoked, if they are still the same then.
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
    """Whether an input has a dimension of 1 where the model leaves it free: it may be resized before the node runs."""
    return any(
        tensor is not None
        and not tensor.is_constant
        and any(dim == 1 and declared == -1 for dim, declared in zip(tensor.shape, tensor.shape_signature))
        for tensor in node.inputs
    )


def defer_refusals(bind: Callable[[Context, Node], Thunk]) -> Callable[[Context, Node], Thunk]:
    """A kernel's `bind`, whose refusals wait for the run where the shapes that it saw may be placeholders."""

    def wait(context: Context, node: Node) -> Thunk:
        try:
            return bind(context, node)
        except PrepareError as error:
            if has_placeholder(node):
                return failing_thunk(str(error))
            raise

    return wait


def defer_or_run(context: Context, node: Node, shapes: Shapes, bind: Callable[[Node], Thunk]) -> Thunk:
    """The thunk to a `defer_or_resize`: bound once, or sized and bound anew at each invoke."""
    if node.prepared:
        return bind(node)

    def run() -> None:
        _resize(context, node, shapes)
        bind(node)()

    return run


def failing_thunk(message: str) -> Thunk:
    """The thunk of a node that cannot run with the shapes of now, which may be those of inputs that are still to be resized."""

    def run() -> None:
        ensure(False, message)

    return run


def _resize(context: Context, node: Node, shapes: Shapes) -> None:
    for output, shape in zip(node.outputs, shapes(node)):
        context.resize_tensor(output, shape)


def offer_in_place(node: Node) -> None:
    """Say, in `prepare`, that the output may be written over inputs of its shape: each value is read before it is replaced."""
    shape = node.outputs[0].shape
    node.in_place = [tensor for tensor in node.inputs if tensor.shape == shape]
