"""Elements of lists, one or all.

TensorListGetItem and TensorListSetItem: one element of a list.

TensorListPushBack, TensorListPushBackBatch and TensorListPopBack: append or remove the last element.

TensorListStack and TensorListGather: stack elements along a new first axis.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.limits import listed, paced
from oplet_flex_ops.attributes import checked_attributes
from oplet_flex_ops.lists.nodes import (
    as_list,
    ensure_index_vector,
    ensure_number,
    ensure_shape_tensor,
    gives_list,
    gives_tensor,
    read_list,
    resize_to_element,
    stack_into,
)
from oplet_flex_ops.lists.partial_shapes import read_partial_shape
from oplet_flex_ops.lists.tensor_list import owned, owned_rows


def prepare_get(ensure_index: Callable[[Tensor], None], context: Context, node: Node) -> None:
    """Check the node's inputs: a list, an index or indices (by `ensure_index`), and the shape of unset elements."""
    attributes = checked_attributes(node, 3)
    node.prepared = attributes.type("element_dtype")
    ensure_index(node.inputs[1])
    ensure_shape_tensor(node.inputs[2])
    gives_tensor(context, attributes, node.outputs[0])


def get_item(context: Context, node: Node) -> None:
    found = read_list(node, node.prepared)
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
    found, index = read_list(node, value.type), node.inputs[1].data.item()
    found.ensure_element_shape(value.shape)
    if node.prepared and index >= found.size:
        found = found.resized(index + 1)
    node.outputs[0].data[()] = found.replaced(index, owned(value.data))


TENSORLISTGETITEM = Registration(prepare=partial(prepare_get, ensure_number), invoke=get_item)
TENSORLISTSETITEM = Registration(prepare=prepare_set, invoke=set_item)


def prepare_push(context: Context, node: Node) -> None:
    """Check the node's inputs: a list and an element."""
    checked_attributes(node, 2).ensure_type("element_dtype", node.inputs[1])
    gives_list(context, node.outputs[0])


def push(context: Context, node: Node) -> None:
    value = node.inputs[1]
    found = read_list(node, value.type)
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
    found = read_list(node, node.prepared)
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


TENSORLISTPUSHBACK = Registration(prepare=prepare_push, invoke=push)
TENSORLISTPOPBACK = Registration(prepare=prepare_pop, invoke=pop)
TENSORLISTPUSHBACKBATCH = Registration(prepare=prepare_push_batch, invoke=push_batch)


def prepare_stack(context: Context, node: Node) -> None:
    """Check the node's inputs: a list and the element shape."""
    attributes = checked_attributes(node, 2)
    node.prepared = attributes.type("element_dtype"), attributes.integer("num_elements", least=-1, default=-1)
    ensure_shape_tensor(node.inputs[1])
    gives_tensor(context, attributes, node.outputs[0])


def stack(context: Context, node: Node) -> None:
    type, size = node.prepared
    found = read_list(node, type)
    ensure(size in (-1, found.size), lambda: f"the list has {found.size} elements, the node stacks {size} (num_elements).")
    stack_into(context, found, found.elements(), read_partial_shape(node.inputs[1]), node.outputs[0])


def gather(context: Context, node: Node) -> None:
    found, indices = read_list(node, node.prepared), listed(node.inputs[1].data)
    for index in paced(indices):
        found.ensure_index(index)
    elements = found.elements()
    wanted = [elements[index] for index in paced(indices)]
    stack_into(context, found, wanted, read_partial_shape(node.inputs[2]), node.outputs[0])


TENSORLISTSTACK = Registration(prepare=prepare_stack, invoke=stack)
TENSORLISTGATHER = Registration(prepare=partial(prepare_get, ensure_index_vector), invoke=gather)
