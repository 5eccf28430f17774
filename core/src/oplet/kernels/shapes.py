"""What the ops that move data and change shapes share: operand checks, axes, shapes that arrive in tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numpy import may_share_memory
from numpy.typing import NDArray

from oplet import Context, Node, Tensor, TensorType, ensure
from oplet.errors import PrepareError

__all__ = [
    "PLAIN_TYPES",
    "Array",
    "Shape",
    "Thunk",
    "all_types_but",
    "along",
    "copier",
    "defer_or_resize",
    "defer_or_run",
    "ensure_operands",
    "ensure_plain",
    "ensure_same_quantization",
    "ensure_same_type",
    "has_placeholder",
    "offer_in_place",
    "read_int",
    "read_ints",
    "refused_in_the_run",
    "refusing",
    "resolve_axes",
    "resolve_axis",
    "take_type",
]

Array = NDArray[Any]
Shape = tuple[int, ...]
Thunk = Callable[[], None]
#: The shapes of a node's outputs, from the values that its inputs have now.
Shapes = Callable[[Node], Sequence[Shape]]

#: Types whose values are not 1, 2, 4 or 8 bytes long; ops that only move bytes take all others.
_NOT_PLAIN = {
    TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT, TensorType.COMPLEX128,
    TensorType.INT4, TensorType.INT2, TensorType.UINT4,
}  # fmt: skip


#: The types whose values kernels move without a look at them.
PLAIN_TYPES = tuple(type for type in TensorType if type not in _NOT_PLAIN)


def all_types_but(*refused: TensorType) -> tuple[TensorType, ...]:
    """The types that an op takes which only has to refuse some."""
    return tuple(type for type in TensorType if type not in refused)


def ensure_operands(node: Node, inputs: int, outputs: int = 1, *, optional: int = 0) -> None:
    """Refuse the node unless it has `inputs` inputs, at most `optional` more, and `outputs` outputs."""
    given = node.inputs
    if not inputs <= len(given) <= inputs + optional:
        wanted = f"{inputs}" if not optional else f"{inputs} to {inputs + optional}"
        ensure(False, f"it has {len(given)} inputs and takes {wanted}.")
    if len(node.outputs) != outputs:
        ensure(False, f"it has {len(node.outputs)} outputs and gives {outputs}.")
    if None in given[:inputs]:
        ensure(False, f"input {given.index(None)} is left out (-1) and may not be.")  # type: ignore[arg-type]


def ensure_same_type(a: Tensor, b: Tensor) -> None:
    """Refuse the node unless both tensors hold the same type."""
    ensure(a.type == b.type, lambda: f"{a} and {b} must have the same type.")


def ensure_plain(tensor: Tensor, *, strings: bool = False) -> None:
    """Refuse the node unless the tensor's values are 1, 2, 4 or 8 bytes long, or strings where the op takes them."""
    ensure(
        tensor.type not in _NOT_PLAIN or (strings and tensor.type == TensorType.STRING),
        lambda: f"{tensor} is of type {tensor.type.name}, whose values this op does not move.",
    )


def take_type(output: Tensor, source: Tensor) -> None:
    """Give the output the input's type, whatever the model declares; LiteRT does so for some ops."""
    output.type, output.dtype = source.type, source.dtype


def ensure_same_quantization(a: Tensor, b: Tensor) -> None:
    """Refuse the node unless both tensors have the same scale and zero point (LiteRT compares them exactly)."""
    ensure(
        a.scale == b.scale and a.zero_point == b.zero_point,
        lambda: (
            f"{a} has scale {a.scale:g} and zero point {a.zero_point}, {b} has {b.scale:g} and {b.zero_point}; "
            "this op does not rescale, so they must be equal."
        ),
    )


def resolve_axis(axis: int, rank: int, what: str = "axis") -> int:
    """The axis counted from the front; a negative one counts from the back.

    Raises:
        EnsureError: there is no such axis.
    """
    if not -rank <= axis < rank:
        ensure(False, f"{what} is {axis}, which a tensor of rank {rank} does not have.")
    return axis + rank if axis < 0 else axis


def resolve_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Several axes, ascending, each once; of a scalar there are none to resolve, whatever is asked for."""
    if rank == 0:
        return ()
    return tuple(sorted({resolve_axis(axis, rank) for axis in axes}))


def along(axis: int, *where: Any) -> tuple[Any, ...]:
    """The index that means `where` on one axis, and everything on those before it."""
    return (slice(None),) * axis + where


#: Sizes, axes or paddings that one tensor may hold: more than any node has dimensions or results.
_MOST_INTS = 1 << 16


def ensure_few(tensor: Tensor) -> None:
    """Refuse sizes, axes or paddings by the million before a list is made of them: no node has so many dimensions.

    Raises:
        KernelError: there are more than 65536.
    """
    ensure(
        tensor.size <= _MOST_INTS,
        lambda: f"{tensor} holds {tensor.size} values; it may hold {_MOST_INTS}, as they are sizes or axes.",
    )


def read_ints(tensor: Tensor) -> list[int]:
    """The values of an integer tensor that holds sizes, axes or paddings, flat, as Python's integers."""
    ensure_few(tensor)
    values: list[int] = tensor.data.ravel().tolist()
    return values


def read_int(tensor: Tensor) -> int:
    """The only value of an integer tensor."""
    ensure(tensor.size == 1, lambda: f"{tensor} must hold exactly one value, not {tensor.size}.")
    return read_ints(tensor)[0]


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


def refused_in_the_run(bind: Callable[[Context, Node], Thunk]) -> Callable[[Context, Node], Thunk]:
    """A kernel's `bind`, whose refusals wait for the run where the shapes that it saw may be placeholders."""

    def wait(context: Context, node: Node) -> Thunk:
        try:
            return bind(context, node)
        except PrepareError as error:
            if has_placeholder(node):
                return refusing(str(error))
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


def refusing(message: str) -> Thunk:
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


def copier(target: Array, source: Array) -> Thunk:
    """A thunk that copies one array, or view, into another of the same shape; it does nothing where the two are the same memory."""
    overlap = target.strides == source.strides and may_share_memory(target, source)
    if overlap and target.__array_interface__["data"] == source.__array_interface__["data"]:  # slow to ask for
        return _nothing

    def run() -> None:
        target[...] = source

    return run


def _nothing() -> None:
    pass
