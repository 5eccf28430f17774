"""Nodes that a delegate library must not see as they are, as they have tensors that it cannot be given through the C API."""

from __future__ import annotations

from oplet import Node, Tensor, TensorType
from oplet_native_ops.values.types import TYPE_NUMBERS

__all__ = ["withheld"]

_PACKED = (TensorType.INT4, TensorType.INT2, TensorType.UINT4)
_OBJECTS = (TensorType.RESOURCE, TensorType.VARIANT)


def withheld(node: Node) -> str:
    """Return why a delegate library must see an unknown custom op in place of the node; "" if it may see the node itself.

    The reason is a tensor that LiteRT's C API cannot represent.
    """
    for tensor in (*node.inputs, *node.outputs, *node.intermediates):
        if tensor is not None and (why := _why(tensor)):
            return why
    return ""


def _why(tensor: Tensor) -> str:
    if tensor.type not in TYPE_NUMBERS:
        return f"{tensor} is of a type that LiteRT's C API does not have"
    if tensor.type in _OBJECTS:
        return f"{tensor} is an object of oplet's, which compiled delegates cannot be given"
    if tensor.type in _PACKED and not tensor.is_constant:
        return f"the values of {tensor} are packed in LiteRT and not here, so compiled delegates cannot be given them"
    if tensor.sparsity is not None:
        return f"{tensor} is stored sparsely, which compiled delegates are not told"
    if tensor.quantization is not None and tensor.quantization.block_size:
        return f"{tensor} is quantized by blocks, which compiled delegates are not told"
    return ""
