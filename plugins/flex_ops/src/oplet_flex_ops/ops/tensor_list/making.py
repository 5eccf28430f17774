"""EmptyTensorList, TensorListReserve and TensorListFromTensor: new lists."""

from __future__ import annotations

from oplet import Context, Node, ensure
from oplet_flex_ops.attributes import checked_attributes
from oplet_flex_ops.lists.nodes import ensure_number, ensure_shape_tensor, gives_list, registration
from oplet_flex_ops.lists.partial_shapes import merged, read_partial_shape
from oplet_flex_ops.lists.tensor_list import TensorList, owned_rows


def prepare_sized(context: Context, node: Node) -> None:
    """Check the node's inputs: an element shape and a number of elements."""
    node.prepared = checked_attributes(node, 2).type("element_dtype")
    ensure_shape_tensor(node.inputs[0])
    ensure_number(node.inputs[1])
    gives_list(context, node.outputs[0])


def empty(context: Context, node: Node) -> None:
    shape, most = read_partial_shape(node.inputs[0]), node.inputs[1].data.item()
    node.outputs[0].data[()] = TensorList.of([], node.prepared, shape, max(most, -1))


def reserve(context: Context, node: Node) -> None:
    shape, size = read_partial_shape(node.inputs[0]), node.inputs[1].data.item()
    ensure(size >= 0, lambda: f"a list of {size} elements is asked for.")
    node.outputs[0].data[()] = TensorList.unset(size, node.prepared, shape)


def prepare_from_tensor(context: Context, node: Node) -> None:
    """Check the node's inputs: a tensor and the shape of its rows."""
    attributes = checked_attributes(node, 2)
    attributes.ensure_type("element_dtype", node.inputs[0])
    ensure(node.inputs[0].ndim >= 1, lambda: f"{node.inputs[0]} is a single value; a list is made of a tensor's rows.")
    ensure_shape_tensor(node.inputs[1])
    gives_list(context, node.outputs[0])


def from_tensor(context: Context, node: Node) -> None:
    tensor, shape = node.inputs[0], read_partial_shape(node.inputs[1])
    merged(shape, tensor.shape[1:], "the rows of the tensor")
    node.outputs[0].data[()] = TensorList.of(owned_rows(tensor.data), tensor.type, shape)


EMPTYTENSORLIST = registration(prepare_sized, empty)
TENSORLISTRESERVE = registration(prepare_sized, reserve)
TENSORLISTFROMTENSOR = registration(prepare_from_tensor, from_tensor)
