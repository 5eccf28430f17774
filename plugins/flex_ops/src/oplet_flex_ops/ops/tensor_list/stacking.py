"""TensorListStack and TensorListGather: stack elements along a new first axis."""

from __future__ import annotations

from oplet import Context, Node, ensure
from oplet.kernels.limits import listed, paced
from oplet_flex_ops.attributes import checked_attributes
from oplet_flex_ops.lists.nodes import (
    ensure_index_vector,
    ensure_shape_tensor,
    gives_tensor,
    read_list,
    registration,
    stack_into,
)
from oplet_flex_ops.lists.partial_shapes import read_partial_shape


def prepare_stack(context: Context, node: Node) -> None:
    """Check the node's inputs: a list and the element shape."""
    attributes = checked_attributes(node, 2)
    node.prepared = attributes.type("element_dtype"), attributes.integer("num_elements", least=-1, default=-1)
    ensure_shape_tensor(node.inputs[1])
    gives_tensor(context, attributes, node.outputs[0])


def stack(context: Context, node: Node) -> None:
    type, size = node.prepared
    found = read_list(node, 0, type)
    ensure(size in (-1, found.size), lambda: f"the list has {found.size} elements, the node stacks {size} (num_elements).")
    stack_into(context, found, found.elements(), read_partial_shape(node.inputs[1]), node.outputs[0])


def prepare_gather(context: Context, node: Node) -> None:
    """Check the node's inputs: a list, indices and the element shape."""
    attributes = checked_attributes(node, 3)
    node.prepared = attributes.type("element_dtype")
    ensure_index_vector(node.inputs[1])
    ensure_shape_tensor(node.inputs[2])
    gives_tensor(context, attributes, node.outputs[0])


def gather(context: Context, node: Node) -> None:
    found, indices = read_list(node, 0, node.prepared), listed(node.inputs[1].data)
    for index in paced(indices):
        found.ensure_index(index)
    elements = found.elements()
    wanted = [elements[index] for index in paced(indices)]
    stack_into(context, found, wanted, read_partial_shape(node.inputs[2]), node.outputs[0])


TENSORLISTSTACK = registration(prepare_stack, stack)
TENSORLISTGATHER = registration(prepare_gather, gather)
