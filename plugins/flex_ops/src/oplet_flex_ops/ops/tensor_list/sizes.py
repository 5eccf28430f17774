"""TensorListLength, TensorListElementShape and TensorListResize: how many elements a list has, and of which shape."""

from __future__ import annotations

from oplet import Context, Node, TensorType, ensure, ensure_type
from oplet_flex_ops.attributes import checked_attributes
from oplet_flex_ops.lists.nodes import ensure_number, gives_list, read_list, registration


def prepare_length(context: Context, node: Node) -> None:
    """Check the node's input, a list."""
    checked_attributes(node, 1)
    ensure_type(node.outputs[0], TensorType.INT32)
    context.resize_tensor(node.outputs[0], ())


def length(context: Context, node: Node) -> None:
    node.outputs[0].data[()] = read_list(node, 0).size


def prepare_shape(context: Context, node: Node) -> None:
    """Check the node's input, a list."""
    attributes = checked_attributes(node, 1)
    attributes.type("shape_type", TensorType.INT32, TensorType.INT64)
    attributes.ensure_type("shape_type", node.outputs[0])
    context.set_dynamic(node.outputs[0])


def element_shape(context: Context, node: Node) -> None:
    shape, output = read_list(node, 0).shape, node.outputs[0]
    context.resize_tensor(output, () if shape is None else (len(shape),))
    output.data[...] = -1 if shape is None else shape


def prepare_resize(context: Context, node: Node) -> None:
    """Check the node's inputs: a list and its new size."""
    checked_attributes(node, 2)
    ensure_number(node.inputs[1])
    gives_list(context, node.outputs[0])


def resize(context: Context, node: Node) -> None:
    size = node.inputs[1].data.item()
    ensure(size >= 0, lambda: f"a list of {size} elements is asked for.")
    node.outputs[0].data[()] = read_list(node, 0).resized(size)


TENSORLISTLENGTH = registration(prepare_length, length)
TENSORLISTELEMENTSHAPE = registration(prepare_shape, element_shape)
TENSORLISTRESIZE = registration(prepare_resize, resize)
