"""TensorListConcat and TensorListConcatV2: elements concatenated along their first axis, and the length of each.

Elements that were not set are zeros. Their length is the one that all others share or, in TensorListConcatV2, given with the node.
"""

from __future__ import annotations

from oplet import Context, Node, TensorType, ensure, ensure_type
from oplet.kernels.limits import paced
from oplet_flex_ops.attributes import checked_attributes
from oplet_flex_ops.lists.nodes import ensure_shape_tensor, gives_tensor, read_list, registration
from oplet_flex_ops.lists.partial_shapes import is_defined, merged, read_partial_shape, shown, without_first
from oplet_flex_ops.lists.tensor_list import Element, TensorList
from oplet_flex_ops.nodedef import Shape


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
    found = read_list(node, 0, type)
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


TENSORLISTCONCAT = TENSORLISTCONCATV2 = registration(prepare, concat)
