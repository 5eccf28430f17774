"""StridedSlice: TensorFlow's op of that name, which converters keep for types that STRIDED_SLICE lacks.

`combine_segments` of TensorFlow Text leaves one that takes an int64 size out of an int32 shape; the values become those of the output's
type. Inputs: the tensor, and where the slice begins, ends and steps in each dimension. The options are the masks of TensorFlow: a
bit of `begin_mask` or `end_mask` for an end that is left open, of `ellipsis_mask`, of `new_axis_mask` for a dimension of size 1, and of
`shrink_axis_mask` for one index instead of a slice.

Numerics: core/util/strided_slice_op.cc of tensorflow.
"""

from __future__ import annotations

from types import EllipsisType

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.operands import ensure_operands, ensure_same_type
from oplet.kernels.options import integer
from oplet_text_ops.attributes import options_of
from oplet_text_ops.nodes import give

#: An index of numpy for each entry of the slice.
Index = slice | int | EllipsisType | None

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
_WHOLE = (TensorType.INT32, TensorType.INT64)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 4)
    source, *bounds = node.inputs
    output = node.outputs[0]
    options = options_of(node)
    masks = [integer(options, key, default=0) for key in _MASKS]
    for tensor in bounds:
        ensure_type(tensor, *_WHOLE)
        ensure(tensor.ndim == 1, f"{tensor} must be a vector.")
    ensure(len({tensor.shape for tensor in bounds}) == 1, "where the slice begins, ends and steps must be as many numbers.")
    if source.type not in _WHOLE or output.type not in _WHOLE:
        ensure_same_type(source, output)
    node.prepared = masks
    context.set_dynamic(output)


def invoke(context: Context, node: Node) -> None:
    source, *bounds = node.inputs
    indices = _indices(node.prepared, bounds, source)
    give(context, node.outputs[0], np.asarray(source.data[indices]).astype(node.outputs[0].dtype))


def _indices(masks: list[int], bounds: list[Tensor], source: Tensor) -> tuple[Index, ...]:
    """Return the numpy index of the slice."""
    begin_mask, end_mask, ellipsis_mask, new_mask, shrink_mask = masks
    entries = list(zip(*(tensor.data.tolist() for tensor in bounds)))
    ensure(bin(ellipsis_mask & ((1 << len(entries)) - 1)).count("1") <= 1, "its slice has more than one ellipsis.")
    ensure(len(entries) <= source.ndim + 32, lambda: f"{source} is sliced in {len(entries)} dimensions.")
    taken = sum(1 for place in range(len(entries)) if not (ellipsis_mask | new_mask) >> place & 1)
    ensure(taken <= source.ndim, lambda: f"{source} is sliced in {taken} dimensions.")
    made: list[Index] = []
    dimension = 0
    for place, (begin, end, step) in enumerate(entries):
        bit = 1 << place
        if ellipsis_mask & bit:
            made.append(...)
            dimension += source.ndim - taken
        elif new_mask & bit:
            made.append(None)
        else:
            size = source.shape[dimension]
            ensure(step != 0, f"the step in dimension {dimension} is 0.")
            if shrink_mask & bit:
                ensure(-size <= begin < size, f"{source} has no index {begin} in dimension {dimension}.")
                made.append(begin)
            else:
                made.append(slice(None if begin_mask & bit else begin, None if end_mask & bit else end, step))
            dimension += 1
    return tuple(made)


REGISTRATION = Registration(prepare=prepare, invoke=invoke, pure=True)
