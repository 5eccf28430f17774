"""TensorListConcatLists: concatenate two lists, for each pair of lists in two tensors."""

from __future__ import annotations

from oplet import Context, Node, TensorType, charge, ensure, ensure_type
from oplet.kernels.limits import listed, paced
from oplet.kernels.operands import ensure_same_shape
from oplet_flex_ops.attributes import checked_attributes
from oplet_flex_ops.lists.nodes import as_list, registration
from oplet_flex_ops.lists.partial_shapes import shown
from oplet_flex_ops.lists.tensor_list import TensorList

#: Bytes of a reference.
_REFERENCE = 8


def prepare(context: Context, node: Node) -> None:
    """Check a TensorListConcatLists node's inputs: two tensors of lists."""
    node.prepared = checked_attributes(node, 2).type("element_dtype")
    for tensor in (*node.inputs, node.outputs[0]):
        ensure_type(tensor, TensorType.VARIANT)
    ensure_same_shape(*node.inputs)
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)


def concat_lists(context: Context, node: Node) -> None:
    first, second = node.inputs
    joined = []
    for a, b in paced(zip(listed(first.data), listed(second.data)), 16):
        head, tail = as_list(a, first, node.prepared), as_list(b, second, node.prepared)
        if head.shape != tail.shape:
            ensure(False, f"lists of elements of shape {shown(head.shape)} and of shape {shown(tail.shape)} cannot be joined.")
        charge(3 * _REFERENCE * (head.size + tail.size))
        joined.append(TensorList.of(head.elements() + tail.elements(), head.type, head.shape, head.most))
    output = node.outputs[0].data.reshape(-1)
    for position, made in enumerate(joined):
        output[position] = made


TENSORLISTCONCATLISTS = registration(prepare, concat_lists)
