"""RaggedGather: rows of a ragged tensor, selected by index.

Inputs: the row splits of each ragged dimension, the outermost first, the values, and the indices of rows in a tensor of any
shape. Outputs: the row splits and the values of the picked rows; there are as many row splits as were given, and one more for
each dimension of the indices but the first. It is TensorFlow's op, which no LiteRT has; TensorFlow Text's models need it.

Numerics: core/kernels/ragged_gather_op.cc of tensorflow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Registration, Tensor, TensorType, charge, ensure, ensure_type
from oplet.kernels.operands import ensure_same_type
from oplet_text_ops.nodes import give

Ints = NDArray[np.int64]


def prepare(context: Context, node: Node) -> None:
    ensure(
        len(node.inputs) >= 3 and None not in node.inputs,
        lambda: f"it has {len(node.inputs)} inputs and takes row splits, values and numbers of rows.",
    )
    *splits, values, indices = node.inputs
    ensure_type(indices, TensorType.INT32, TensorType.INT64)
    for each in splits:
        ensure_type(each, TensorType.INT32, TensorType.INT64)
        ensure(each.ndim == 1, f"{each} must be a vector of row splits.")
    ensure(values.ndim >= 1, lambda: f"{values} must have at least one dimension.")
    wanted = len(splits) + indices.ndim - 1
    ensure(len(node.outputs) == wanted + 1, lambda: f"it has {len(node.outputs)} outputs and gives {wanted + 1}.")
    for output in node.outputs[:-1]:
        ensure_type(output, splits[0].type)
    ensure_same_type(values, node.outputs[-1])
    for output in node.outputs:
        context.set_dynamic(output)


def invoke(context: Context, node: Node) -> None:
    *partitions, values, indices = node.inputs
    below = [tensor.size - 1 for tensor in partitions[1:]] + [values.shape[0]]
    splits = [_checked(tensor, count) for tensor, count in zip(partitions, below)]
    rows = len(splits[0]) - 1
    picked = indices.data.reshape(-1).astype(np.int64)
    wrong = np.flatnonzero((picked < 0) | (picked >= rows))
    ensure(not len(wrong), lambda: f"{indices} asks for row {picked[wrong[0]]} of {rows}.")
    made: list[Ints] = []
    for dimension in range(indices.ndim - 1):  # rows of the same length, by the shape of the numbers
        above, length = int(np.prod(indices.shape[: dimension + 1])), indices.shape[dimension + 1]
        made.append(np.arange(above + 1) * length)
    for each in splits:
        lengths = np.diff(each)[picked]
        ends = np.cumsum(lengths)
        made.append(np.concatenate(([0], ends)))
        total = int(ends[-1]) if len(ends) else 0
        charge(3 * 8 * total)
        picked = np.arange(total) + np.repeat(each[picked] - ends + lengths, lengths)
    # A scalar picks one row: its own splits around it are left out.
    for output, found in zip(node.outputs, made[len(made) - len(node.outputs) + 1 :]):
        give(context, output, found)
    give(context, node.outputs[-1], values.data[picked])


def _checked(tensor: Tensor, most: int) -> Ints:
    """Check and return row splits that never decrease and stay within `most`."""
    splits = tensor.data.astype(np.int64)
    ensure(
        len(splits) > 0 and splits[0] >= 0 and splits[-1] <= most and not (splits[1:] < splits[:-1]).any(),
        lambda: f"{tensor} must have row splits that never fall and lie within 0 and {most}, the number of what they part.",
    )
    return splits


REGISTRATION = Registration(prepare=prepare, invoke=invoke, pure=True)
