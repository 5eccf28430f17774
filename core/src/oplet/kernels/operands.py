"""Checks of a node's operands: their number, types and shapes."""

from __future__ import annotations

from collections.abc import Sequence

from oplet.ops.context import Node, ensure, ensure_type
from oplet.ops.tensor import Tensor
from oplet.schema.enums import TensorType

__all__ = [
    "PLAIN_TYPES",
    "all_constant",
    "ensure_operands",
    "ensure_plain",
    "ensure_same_shape",
    "ensure_same_type",
    "ensure_vector",
]

#: Types whose values are not 1, 2, 4 or 8 bytes long; ops that only move values take all others.
_NOT_PLAIN = {
    TensorType.STRING, TensorType.RESOURCE, TensorType.VARIANT, TensorType.COMPLEX128,
    TensorType.INT4, TensorType.INT2, TensorType.UINT4,
}  # fmt: skip


#: The types whose values ops can move whatever they mean: those of 1, 2, 4 or 8 bytes.
PLAIN_TYPES = tuple(type for type in TensorType if type not in _NOT_PLAIN)


def all_constant(tensors: Sequence[Tensor | None]) -> bool:
    """Return whether every given tensor (None is skipped) is constant, so that a kernel may repack its values once."""
    return all(tensor is None or tensor.is_constant for tensor in tensors)


def ensure_operands(node: Node, inputs: int, outputs: int = 1, *, optional: int = 0) -> None:
    """Refuse the node unless it has `inputs` inputs, at most `optional` more, and `outputs` outputs.

    Raises:
        EnsureError: a number differs, or one of the first `inputs` inputs is omitted (-1).
    """
    given = node.inputs
    if not inputs <= len(given) <= inputs + optional:
        wanted = f"{inputs}" if not optional else f"{inputs} to {inputs + optional}"
        ensure(False, f"it has {len(given)} inputs and takes {wanted}.")
    if len(node.outputs) != outputs:
        ensure(False, f"it has {len(node.outputs)} outputs and gives {outputs}.")
    if None in given[:inputs]:
        ensure(False, f"input {given.index(None)} is left out (-1) and may not be.")  # type: ignore[arg-type]


def ensure_same_type(a: Tensor, b: Tensor) -> None:
    """Refuse the node unless both tensors have the same type.

    Raises:
        EnsureError: the types differ.
    """
    ensure(a.type == b.type, lambda: f"{a} and {b} must have the same type.")


def ensure_plain(tensor: Tensor, *, strings: bool = False) -> None:
    """Refuse the node unless the tensor's values are 1, 2, 4 or 8 bytes long.

    Args:
        strings: whether strings are accepted, too.

    Raises:
        EnsureError: the tensor is of another type.
    """
    ensure(
        tensor.type not in _NOT_PLAIN or (strings and tensor.type == TensorType.STRING),
        lambda: f"{tensor} is of type {tensor.type.name}, whose values this op does not move.",
    )


def ensure_same_shape(*tensors: Tensor) -> None:
    """Refuse the node unless all tensors have the same shape.

    Raises:
        EnsureError: two shapes differ.
    """
    if len({tensor.shape for tensor in tensors}) > 1:
        ensure(False, f"the operands must have the same shape: {', '.join(map(repr, tensors))}.")


def ensure_vector(tensor: Tensor, type: TensorType) -> None:
    """Refuse the node unless the tensor is of this type and has one dimension.

    Raises:
        EnsureError: the tensor is of another type or rank.
    """
    ensure_type(tensor, type)
    ensure(tensor.ndim == 1, lambda: f"{tensor} must have one dimension.")
