"""TensorListSplit: cut a tensor along its first axis into a list of pieces."""

from __future__ import annotations

from itertools import accumulate

from oplet import Context, Node, TensorType, ensure, ensure_type
from oplet.kernels.limits import kept_copy, listed, paced
from oplet_flex_ops.attributes import checked_attributes
from oplet_flex_ops.lists.nodes import ensure_shape_tensor, gives_list, registration
from oplet_flex_ops.lists.partial_shapes import merged, read_partial_shape, without_first
from oplet_flex_ops.lists.tensor_list import Element, TensorList

#: Bytes of a piece, besides its rows.
_PIECE = 112


def prepare(context: Context, node: Node) -> None:
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


TENSORLISTSPLIT = registration(prepare, split)
