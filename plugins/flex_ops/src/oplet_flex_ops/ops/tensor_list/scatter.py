"""TensorListScatter, TensorListScatterV2, TensorListScatterIntoExistingList: write a tensor's rows at indices of a list.

Of several rows for one index the last one stays. The list is as long as the largest index needs, or as the node asks for.
"""

from __future__ import annotations

from oplet import Context, Node, Registration, ensure
from oplet.kernels.limits import listed, paced
from oplet_flex_ops.attributes import checked_attributes
from oplet_flex_ops.lists.nodes import ensure_index_vector, ensure_number, ensure_shape_tensor, gives_list, read_list
from oplet_flex_ops.lists.partial_shapes import merged, read_partial_shape
from oplet_flex_ops.lists.tensor_list import TensorList, owned_rows


def prepare(context: Context, node: Node) -> None:
    """Check a TensorListScatter node's inputs: a tensor, indices, the element shape, and in version 2 the number of elements."""
    second = len(node.inputs) != 3
    attributes = checked_attributes(node, 4 if second else 3)
    attributes.ensure_type("element_dtype", node.inputs[0])
    _check_rows(node, 0, 1)
    ensure_shape_tensor(node.inputs[2])
    if second:
        ensure_number(node.inputs[3])
    gives_list(context, node.outputs[0])


def scatter(context: Context, node: Node) -> None:
    tensor, shape = node.inputs[0], read_partial_shape(node.inputs[2])
    merged(shape, tensor.shape[1:], "the rows of the tensor")
    size = node.inputs[3].data.item() if len(node.inputs) == 4 else -1
    ensure(size >= -1, lambda: f"a list of {size} elements is asked for (num_elements).")
    largest = _largest(node, 1)
    ensure(size == -1 or largest < size, lambda: f"a row goes to index {largest} of a list of {size} elements.")
    _place(node, TensorList.unset(max(largest + 1, size), tensor.type, shape), 0, 1)


def prepare_into(context: Context, node: Node) -> None:
    """Check the node's inputs: a list, a tensor, indices."""
    checked_attributes(node, 3).ensure_type("element_dtype", node.inputs[1])
    _check_rows(node, 1, 2)
    gives_list(context, node.outputs[0])


def scatter_into(context: Context, node: Node) -> None:
    found, largest = read_list(node, node.inputs[1].type), _largest(node, 2)
    found.ensure_element_shape(node.inputs[1].shape[1:])
    _place(node, found if largest < found.size else found.resized(largest + 1), 1, 2)


def _check_rows(node: Node, rows: int, indices: int) -> None:
    tensor, at = node.inputs[rows], node.inputs[indices]
    ensure_index_vector(at)
    ensure(tensor.ndim >= 1 and tensor.shape[0] == at.shape[0], lambda: f"{tensor} must have a row for each index in {at}.")


def _largest(node: Node, indices: int) -> int:
    at = node.inputs[indices].data
    ensure(not at.size or at.min() >= 0, lambda: f"there is no index {at.min()}; indices begin at 0.")
    return int(at.max()) if at.size else -1


def _place(node: Node, found: TensorList, rows: int, indices: int) -> None:
    elements = found.elements()
    for index, row in paced(zip(listed(node.inputs[indices].data), owned_rows(node.inputs[rows].data))):
        elements[index] = row
    node.outputs[0].data[()] = TensorList.of(elements, found.type, found.shape, found.most)


TENSORLISTSCATTER = TENSORLISTSCATTERV2 = Registration(prepare=prepare, invoke=scatter)
TENSORLISTSCATTERINTOEXISTINGLIST = Registration(prepare=prepare_into, invoke=scatter_into)
