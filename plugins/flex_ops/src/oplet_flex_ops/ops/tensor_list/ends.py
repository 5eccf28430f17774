"""TensorListPushBack, TensorListPushBackBatch and TensorListPopBack: append or remove the last element."""

from __future__ import annotations

from oplet import Context, Node, TensorType, ensure, ensure_type
from oplet.kernels.limits import paced
from oplet_flex_ops.attributes import checked_attributes
from oplet_flex_ops.lists.nodes import (
    as_list,
    ensure_shape_tensor,
    gives_list,
    gives_tensor,
    read_list,
    registration,
    resize_to_element,
)
from oplet_flex_ops.lists.tensor_list import owned, owned_rows


def prepare_push(context: Context, node: Node) -> None:
    """Check the node's inputs: a list and an element."""
    checked_attributes(node, 2).ensure_type("element_dtype", node.inputs[1])
    gives_list(context, node.outputs[0])


def push(context: Context, node: Node) -> None:
    value = node.inputs[1]
    found = read_list(node, 0, value.type)
    found.ensure_element_shape(value.shape)
    node.outputs[0].data[()] = found.appended(owned(value.data))


def prepare_pop(context: Context, node: Node) -> None:
    """Check the node's inputs: a list, and the shape of an unset element."""
    attributes = checked_attributes(node, 2, 2)
    node.prepared = attributes.type("element_dtype")
    ensure_shape_tensor(node.inputs[1])
    gives_list(context, node.outputs[0])
    gives_tensor(context, attributes, node.outputs[1])


def pop(context: Context, node: Node) -> None:
    found = read_list(node, 0, node.prepared)
    ensure(found.size, "the last element of an empty list is asked for.")
    element = found.element(found.size - 1)
    resize_to_element(context, found, element, node.inputs[1], node.outputs[1], others=False)
    node.outputs[0].data[()] = found.shortened()


def prepare_push_batch(context: Context, node: Node) -> None:
    """Check the node's inputs: a vector of lists, and a tensor with one row per list."""
    checked_attributes(node, 2).ensure_type("element_dtype", node.inputs[1])
    lists, rows = node.inputs
    for tensor in (lists, node.outputs[0]):
        ensure_type(tensor, TensorType.VARIANT)
    ensure(lists.ndim == 1 and rows.ndim >= 1, lambda: f"{lists} must be a vector of lists, and {rows} have a row for each.")
    ensure(rows.shape[0] == lists.shape[0], lambda: f"{rows} must have a row for each of the lists in {lists}.")
    context.resize_tensor(node.outputs[0], lists.shape)


def push_batch(context: Context, node: Node) -> None:
    lists, rows = node.inputs
    pushed = []
    for value, row in paced(zip(lists.data.tolist(), owned_rows(rows.data)), 64):
        found = as_list(value, lists, rows.type)
        found.ensure_element_shape(row.shape)
        pushed.append(found.appended(row))
    for number, made in enumerate(pushed):
        node.outputs[0].data[number] = made


TENSORLISTPUSHBACK = registration(prepare_push, push)
TENSORLISTPOPBACK = registration(prepare_pop, pop)
TENSORLISTPUSHBACKBATCH = registration(prepare_push_batch, push_batch)
