"""TensorListGetItem and TensorListSetItem: one element of a list."""

from __future__ import annotations

from oplet import Context, Node
from oplet_flex_ops.attributes import checked_attributes
from oplet_flex_ops.lists.nodes import (
    ensure_number,
    ensure_shape_tensor,
    gives_list,
    gives_tensor,
    read_list,
    registration,
    resize_to_element,
)
from oplet_flex_ops.lists.tensor_list import owned


def prepare_get(context: Context, node: Node) -> None:
    """Check the node's inputs: a list, an index, and the shape of unset elements."""
    attributes = checked_attributes(node, 3)
    node.prepared = attributes.type("element_dtype")
    ensure_number(node.inputs[1])
    ensure_shape_tensor(node.inputs[2])
    gives_tensor(context, attributes, node.outputs[0])


def get_item(context: Context, node: Node) -> None:
    found = read_list(node, 0, node.prepared)
    element = found.element(node.inputs[1].data.item())
    resize_to_element(context, found, element, node.inputs[2], node.outputs[0], others=True)


def prepare_set(context: Context, node: Node) -> None:
    """Check the node's inputs: a list, an index, an element."""
    attributes = checked_attributes(node, 3)
    attributes.ensure_type("element_dtype", node.inputs[2])
    ensure_number(node.inputs[1])
    node.prepared = attributes.flag("resize_if_index_out_of_bounds", default=False)
    gives_list(context, node.outputs[0])


def set_item(context: Context, node: Node) -> None:
    value = node.inputs[2]
    found, index = read_list(node, 0, value.type), node.inputs[1].data.item()
    found.ensure_element_shape(value.shape)
    if node.prepared and index >= found.size:
        found = found.resized(index + 1)
    node.outputs[0].data[()] = found.replaced(index, owned(value.data))


TENSORLISTGETITEM = registration(prepare_get, get_item)
TENSORLISTSETITEM = registration(prepare_set, set_item)
