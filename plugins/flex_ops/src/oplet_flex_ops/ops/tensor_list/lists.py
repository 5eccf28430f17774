"""New lists, and lists as a whole.

EmptyTensorList, TensorListReserve and TensorListFromTensor: new lists.

TensorListLength, TensorListElementShape and TensorListResize: how many elements a list has, and of which shape.

TensorListSplit: cut a tensor along its first axis into a list of pieces.

TensorListConcatLists: concatenate two lists, for each pair of lists in two tensors.

TensorListConcat and TensorListConcatV2: elements concatenated along their first axis, and the length of each.

Elements that were not set are zeros. Their length is the one that all others share or, in TensorListConcatV2, given with the node.
"""

from __future__ import annotations

from itertools import accumulate

from oplet import Context, Node, Registration, TensorType, charge, ensure, ensure_type
from oplet.kernels.limits import kept_copy, listed, paced
from oplet.kernels.operands import ensure_same_shape
from oplet.kernels.options import Shape
from oplet_flex_ops.attributes import checked_attributes
from oplet_flex_ops.lists.nodes import as_list, ensure_number, ensure_shape_tensor, gives_list, gives_tensor, read_list
from oplet_flex_ops.lists.partial_shapes import is_defined, merged, read_partial_shape, shown, without_first
from oplet_flex_ops.lists.tensor_list import Element, TensorList, owned_rows


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


EMPTYTENSORLIST = Registration(prepare=prepare_sized, invoke=empty)
TENSORLISTRESERVE = Registration(prepare=prepare_sized, invoke=reserve)
TENSORLISTFROMTENSOR = Registration(prepare=prepare_from_tensor, invoke=from_tensor)


def prepare_length(context: Context, node: Node) -> None:
    """Check the node's input, a list."""
    checked_attributes(node, 1)
    ensure_type(node.outputs[0], TensorType.INT32)
    context.resize_tensor(node.outputs[0], ())


def length(context: Context, node: Node) -> None:
    node.outputs[0].data[()] = read_list(node).size


def prepare_shape(context: Context, node: Node) -> None:
    """Check the node's input, a list."""
    attributes = checked_attributes(node, 1)
    attributes.type("shape_type", TensorType.INT32, TensorType.INT64)
    attributes.ensure_type("shape_type", node.outputs[0])
    context.set_dynamic(node.outputs[0])


def element_shape(context: Context, node: Node) -> None:
    shape, output = read_list(node).shape, node.outputs[0]
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
    node.outputs[0].data[()] = read_list(node).resized(size)


TENSORLISTLENGTH = Registration(prepare=prepare_length, invoke=length)
TENSORLISTELEMENTSHAPE = Registration(prepare=prepare_shape, invoke=element_shape)
TENSORLISTRESIZE = Registration(prepare=prepare_resize, invoke=resize)


#: Bytes of a piece, besides its rows.
_PIECE = 112


def prepare_split(context: Context, node: Node) -> None:
    """Check a TensorListSplit node's inputs: a tensor, the shape of its pieces, their lengths."""
    checked_attributes(node, 3).ensure_type("element_dtype", node.inputs[0])
    ensure(node.inputs[0].ndim >= 1, lambda: f"{node.inputs[0]} is a single value, which cannot be cut.")
    ensure_shape_tensor(node.inputs[1])
    ensure_type(node.inputs[2], TensorType.INT64)
    ensure(node.inputs[2].ndim == 1, lambda: f"the lengths {node.inputs[2]} must be a vector.")
    gives_list(context, node.outputs[0])


def split(context: Context, node: Node) -> None:
    tensor, shape, lengths = node.inputs[0], read_partial_shape(node.inputs[1]), listed(node.inputs[2].data)
    ensure(shape is None or len(shape), "the pieces of a tensor have a first axis; the element shape is a scalar's.")
    merged(without_first(shape), tensor.shape[1:], "the rows of the pieces")
    ensure(min(lengths, default=0) >= 0, lambda: f"a piece of {min(lengths)} rows is asked for.")
    ensure(
        sum(lengths) == tensor.shape[0], lambda: f"the pieces have {sum(lengths)} rows together, {tensor} has {tensor.shape[0]}."
    )
    whole = kept_copy(tensor.data, besides=_PIECE * len(lengths))
    pieces: list[Element] = [whole[end - length : end] for end, length in paced(zip(accumulate(lengths), lengths))]
    node.outputs[0].data[()] = TensorList.of(pieces, tensor.type, shape)


TENSORLISTSPLIT = Registration(prepare=prepare_split, invoke=split)


#: Bytes of a reference.
_REFERENCE = 8


def prepare_concat_lists(context: Context, node: Node) -> None:
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


TENSORLISTCONCATLISTS = Registration(prepare=prepare_concat_lists, invoke=concat_lists)


def prepare(context: Context, node: Node) -> None:
    """Check a TensorListConcat node's inputs: a list; in version 2 also the element shape and the lengths of unset elements."""
    second = len(node.inputs) != 1
    attributes = checked_attributes(node, 3 if second else 1, 2)
    asked: Shape = None
    if second:
        ensure_shape_tensor(node.inputs[1])
        ensure_type(node.inputs[2], TensorType.INT64)
        ensure(node.inputs[2].ndim == 1, lambda: f"the lengths {node.inputs[2]} must be a vector.")
    elif "element_shape" in attributes.node_def.attributes:
        asked = attributes.shape("element_shape")
        ensure(
            asked is None or len(asked), "elements that are joined have a first axis; the attribute element_shape is a scalar's."
        )
        asked = asked if asked is None else (-1, *asked[1:])
    node.prepared = attributes.type("element_dtype"), asked
    gives_tensor(context, attributes, node.outputs[0])
    ensure_type(node.outputs[1], TensorType.INT64)
    context.set_dynamic(node.outputs[1])


def concat(context: Context, node: Node) -> None:
    type, asked = node.prepared
    found = read_list(node, type)
    given: list[int] = []
    if len(node.inputs) == 3:
        asked, given = read_partial_shape(node.inputs[1]), node.inputs[2].data.tolist()
        asked = merged(asked, found.shape, "the elements of the list")
        ensure(asked is None or len(asked), "elements that are joined have a first axis; those of this list are scalars.")
    elements = found.elements()
    # the elements tell no more than a list's shape that is known, and the first version does not read that
    row, usual = _row_and_length(asked, [] if is_defined(found.shape) else elements)
    lengths = [_length(number, element, usual, given) for number, element in enumerate(paced(elements))]
    _write(context, node, found, elements, row, lengths)


def _write(
    context: Context, node: Node, found: TensorList, elements: list[Element], row: tuple[int, ...], lengths: list[int]
) -> None:
    context.resize_tensor(node.outputs[1], (len(lengths),))
    node.outputs[1].data[...] = lengths
    context.resize_tensor(node.outputs[0], (sum(lengths), *row))
    joined, start = node.outputs[0].data, 0
    for element, length in paced(zip(elements, lengths), 64):
        joined[start : start + length] = found.zero if element is None else element
        start += length


def _row_and_length(asked: Shape, elements: list[Element]) -> tuple[tuple[int, ...], int]:
    """Return the elements' shape without the first axis, and the length of unset ones; -1 if unknown."""
    row, usual = without_first(asked), asked[0] if asked else -1
    lengths = set()
    for element in paced(elements):
        if element is not None:
            ensure(element.ndim, "elements that are joined have a first axis; an element of this list is a scalar.")
            row = merged(row, element.shape[1:], "the rows of the elements")
            if usual not in (-1, len(element)):
                ensure(False, f"an element has {len(element)} rows, the element shape says {usual}.")
            lengths.add(len(element))
    if row is None or not is_defined(row):
        ensure(False, f"the shape of the elements' rows is not known: it is {shown(row)}, and no element was set that tells it.")
    return row or (), lengths.pop() if usual == -1 and len(lengths) == 1 else usual


def _length(number: int, element: Element, usual: int, given: list[int]) -> int:
    if element is not None:
        return len(element)
    length = given[number] if number < len(given) else usual
    ensure(length >= 0, lambda: f"element {number} was not set, and the node does not say how long it is.")
    return length


TENSORLISTCONCAT = TENSORLISTCONCATV2 = Registration(prepare=prepare, invoke=concat)
