"""STRIDED_SLICE: begin, end and stride along each dimension."""

from __future__ import annotations

from oplet import Node
from oplet.schema.options import StridedSliceOptions
from oplet_openvino_delegate.graph import GraphBuilder
from oplet_openvino_delegate.moving import cut, integers, refuses_rescaling
from oplet_openvino_delegate.translators import MOVED, Translator


def refuses(node: Node) -> str:
    """Return why the delegate leaves the STRIDED_SLICE node to other kernels; "" if it translates it."""
    options = node.options(StridedSliceOptions)
    if options.offset or options.ellipsis_mask or options.new_axis_mask:
        return "it has an offset, an ellipsis or a new axis"
    data, begins, ends, strides = node.inputs
    if not len(integers(begins)) == len(integers(ends)) == len(integers(strides)) <= data.ndim:
        return f"its {len(integers(begins))} beginnings, {len(integers(ends))} ends and strides do not fit {data}"
    if 0 in integers(strides):
        return "one of its strides is 0"
    if any(not 0 <= parts[0] < size for parts, size in zip(_parts(node), data.shape)):
        return f"nothing is left of {data}"
    return refuses_rescaling(node)


def _parts(node: Node) -> list[tuple[int, int, int]]:
    """Return (begin, end, stride) of each dimension, as for Python slices."""
    options, data = node.options(StridedSliceOptions), node.inputs[0]
    parts = []
    for axis, (begin, end, stride) in enumerate(zip(*(integers(tensor) for tensor in node.inputs[1:]))):
        bit = 1 << axis
        if options.shrink_axis_mask & bit:
            start = begin % data.shape[axis] if -data.shape[axis] <= begin < data.shape[axis] else -1
            parts.append((start, start + 1, 1))
            continue
        first = None if options.begin_mask & bit else begin
        last = None if options.end_mask & bit else end
        parts.append(slice(first, last, stride).indices(data.shape[axis]))
    return parts + [(0, size, 1) for size in data.shape[len(parts) :]]


def translate(graph: GraphBuilder, node: Node) -> None:
    """Add the OpenVINO nodes that compute the STRIDED_SLICE node to the graph."""
    cut(graph, node.inputs[0], node.outputs[0], [slice(*part) for part in _parts(node)])


TRANSLATOR = Translator(8, translate, refuses, inputs=(4, 4), types=MOVED, constants=(1, 2, 3), layer_of_8_bits=True)
