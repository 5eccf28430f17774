"""Fusion of SLICE into CONCATENATION, for the pattern by which converters replace one row of a list.

How many rows each slice has is known only while the graph runs. The whole is prepared for the shape of what the slices are taken from; each
run looks whether it has that shape.
"""

from __future__ import annotations

from collections.abc import Sequence

from oplet import Context, Node, StalePlanError, Tensor, TensorType, ensure
from oplet.errors import PrepareError
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.axes import along, read_ints, resolve_axis
from oplet.kernels.operands import ensure_same_type
from oplet.records import Row
from oplet.schema.enums import BuiltinOperator
from oplet.schema.options import ConcatenationOptions
from oplet_builtin_ops.shaping.bounds import box

__all__ = ["JoinedSlices", "bind_joined", "prepare_joined", "slices_to_absorb"]


class JoinedSlices(Row):
    """The plan of a CONCATENATION that is fused with the SLICE nodes of its inputs.

    Attributes:
        axis: the axis along which the pieces are joined.
        source: the tensor that the slices are taken from, which has the shape of the whole.
        pieces: for each piece the tensor, or `begin` and `size` of a slice.
    """

    axis: int
    source: Tensor
    pieces: Sequence[Tensor | tuple[Tensor, Tensor]]


def slices_to_absorb(node: Node, makers: Sequence[Node]) -> Sequence[Node]:
    """Return the nodes to fuse with a CONCATENATION: the SLICE nodes of run-time shape, if all of them slice the same tensor."""
    found = [maker for maker in makers if maker.op is BuiltinOperator.SLICE and _is_dynamic(maker)]
    return found if len({id(maker.inputs[0]) for maker in found}) == 1 else ()


def _is_dynamic(node: Node) -> bool:
    if len(node.inputs) != 3 or any(tensor is None for tensor in node.inputs):
        return False
    _, begin, size = node.inputs
    declared = node.outputs[0].shape_signature
    if declared and -1 not in declared:  # SLICE trusts it
        return False
    return not size.is_constant or (not begin.is_constant and -1 in read_ints(size))


def prepare_joined(context: Context, node: Node) -> None:
    """Prepare a CONCATENATION with fused slices.

    Raises:
        EnsureError: the slices cannot be fused; the runtime then prepares the node without them.
    """
    makers = {slice_.outputs[0]: slice_ for slice_ in node.absorbed}
    source, output = node.absorbed[0].inputs[0], node.outputs[0]
    options = node.options(ConcatenationOptions)
    ensure(options.fused_activation_function == 0 and source.ndim > 0, "it is to be refused.")
    axis = resolve_axis(options.axis, source.ndim)
    pieces: list[Tensor | tuple[Tensor, Tensor]] = []
    is_known = True
    for tensor in node.inputs:
        ensure_same_type(tensor, output)
        alike = tensor.scale == output.scale and tensor.zero_point == output.zero_point
        ensure(alike, "it changes the scale, or is to be refused.")
        if tensor in makers:
            _, begin, size = makers[tensor].inputs
            ensure_same_type(source, tensor)
            for parameter in (begin, size):
                types = TensorType.INT32, TensorType.INT64
                ensure(parameter.type in types and parameter.shape == (source.ndim,), "the slice is to be refused.")
            pieces.append((begin, size))
            is_known = is_known and begin.is_constant and size.is_constant
        else:
            others = [length == wanted for length, wanted in zip(tensor.shape, source.shape)]
            fits = tensor.ndim == source.ndim and all(others[:axis] + others[axis + 1 :])
            ensure(fits, "it is to be refused.")
            pieces.append(tensor)
    ensure(not is_known, "the slices are known.")
    node.prepared = JoinedSlices(axis, source, pieces)
    context.resize_tensor(output, source.shape)


def bind_joined(node: Node) -> Thunk:
    """Return the function that runs CONCATENATION with fused slices."""
    axis, source, pieces = node.prepared
    output: Array = node.outputs[0].data
    length = source.shape[axis]

    def run() -> None:
        values = []
        for piece in pieces:
            if isinstance(piece, Tensor):
                values.append(piece.data)
                continue
            begin, size = piece
            try:
                parts = box(source, read_ints(begin), read_ints(size))
            except PrepareError:
                raise StalePlanError(node) from None
            values.append(source.data[parts])
            if any(has != dim for i, (has, dim) in enumerate(zip(values[-1].shape, source.shape)) if i != axis):
                raise StalePlanError(node)
        if sum(value.shape[axis] for value in values) != length:
            raise StalePlanError(node)
        start = 0
        for value in values:
            stop = start + value.shape[axis]
            output[along(axis, slice(start, stop))] = value
            start = stop

    return run
