"""Round-robin trimming: how many values of each segment (one of the texts that share a sequence) fit a common length limit.

Numerics: round_robin_trimmer.h of tensorflow/text.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, TensorType, ensure, ensure_type
from oplet.kernels.limits import paced
from oplet.kernels.options import integer
from oplet_text_ops.attributes import options_of
from oplet_text_ops.nodes import ensure_row_splits

__all__ = ["fitting", "prepare_segments", "segment_sizes"]

Ints = NDArray[np.int64]


def prepare_segments(context: Context, node: Node, outputs: int) -> int:
    """Check a trimming op's inputs: a length, and values and row splits per segment; return the number of segments.

    The node has `outputs` outputs for each segment; their shapes become dynamic.

    Raises:
        EnsureError: there are missing or too many operands, or one has a wrong type.
    """
    count = integer(options_of(node), "N", least=1)
    ensure(
        len(node.inputs) == 1 + 2 * count and None not in node.inputs and len(node.outputs) == outputs * count,
        lambda: (
            f"it has {len(node.inputs)} inputs and {len(node.outputs)} outputs; {count} segments need {1 + 2 * count} and"
            f" {outputs * count}."
        ),
    )
    ensure_type(node.inputs[0], TensorType.INT32)
    ensure(node.inputs[0].size == 1, lambda: f"{node.inputs[0]} must have one value, the length of the sequence.")
    for tensor in node.inputs[1:]:
        ensure(tensor.ndim == 1, f"{tensor} must be a vector.")
    for tensor in node.inputs[1 + count :]:
        ensure_type(tensor, TensorType.INT32, TensorType.INT64)
    for output in node.outputs:
        context.set_dynamic(output)
    return count


def segment_sizes(node: Node, count: int) -> tuple[list[Ints], Ints, Ints]:
    """Return the row splits of each segment, and per row and segment the number of values and how many of them to keep.

    Raises:
        EnsureError: row splits are damaged, or segments have different numbers of rows.
    """
    values, partitions = node.inputs[1 : 1 + count], node.inputs[1 + count :]
    splits = [ensure_row_splits(tensor, each.shape[0]) for tensor, each in zip(partitions, values)]
    rows = {len(each) - 1 for each in splits}
    ensure(len(rows) == 1, lambda: f"its segments have {sorted(rows)} rows; they must have as many.")
    sizes = np.stack([np.diff(each) for each in splits], axis=1)
    return splits, sizes, fitting(sizes, int(node.inputs[0].data.item()))


def fitting(sizes: Ints, length: int) -> Ints:
    """Return how many values of each segment to keep, per row, so that a row has at most `length` values.

    Segments shorter than an equal share are kept whole; the rest is shared equally among the others, and the first of them get
    one more if the division has a remainder.

    Args:
        sizes: the number of values, of shape (rows, segments).
        length: the most values of a row; below 0 it counts as 0.
    """
    rows, count = sizes.shape
    kept = np.zeros_like(sizes)
    left = np.full(rows, max(length, 0), np.int64)
    order = np.argsort(sizes, axis=1, kind="stable")
    each = np.arange(rows)
    going, filled = np.ones(rows, bool), np.zeros(rows, np.int64)
    for place in paced(range(count), 16):
        segment = order[:, place]
        size = sizes[each, segment]
        going &= size * (count - place) <= left
        kept[each[going], segment[going]] = size[going]
        left -= np.where(going, size, 0)
        filled += going
    share = left // np.maximum(count - filled, 1)
    for place in paced(range(count), 16):
        others = place >= filled
        kept[each[others], order[others, place]] = share[others]
        left -= np.where(others, share, 0)
    for column in paced(range(count), 16):
        more = (left > 0) & (kept[:, column] < sizes[:, column])
        kept[:, column] += more
        left -= more
    return kept
