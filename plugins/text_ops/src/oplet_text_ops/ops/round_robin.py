"""TFText>RoundRobinTrim and TFText>RoundRobinGenerateMasks: segments (the texts of one sequence) within a common length limit, values taken
from them in turn.

Inputs: the length of the sequence (int32), the values of each of the `N` segments, and the row splits of each. Outputs: what is left of the
values and the new row splits, or a Boolean for each value.

Numerics: round_robin_trimmer.h of tensorflow/text.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.limits import paced
from oplet.kernels.operands import ensure_same_type
from oplet.kernels.options import integer
from oplet_text_ops.attributes import options_of
from oplet_text_ops.nodes import ensure_row_splits, give

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


def prepare_trim(context: Context, node: Node) -> None:
    count = prepare_segments(context, node, outputs=2)
    for source, output in zip(node.inputs[1:], node.outputs):
        ensure_same_type(source, output)
    node.prepared = count


def run_trim(context: Context, node: Node) -> None:
    count = node.prepared
    splits, _, kept = segment_sizes(node, count)
    for segment in range(count):
        lengths = kept[:, segment]
        ends = np.cumsum(lengths)
        places = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(splits[segment][:-1] - ends + lengths, lengths)
        give(context, node.outputs[segment], node.inputs[1 + segment].data[places])
        give(context, node.outputs[count + segment], np.concatenate(([0], ends)))


TRIM = Registration(
    prepare=prepare_trim,
    invoke=run_trim,
    pure=True,
    differences="Row splits that do not end with the number of values, or belong to batches of different sizes, are refused.",
)


def prepare_masks(context: Context, node: Node) -> None:
    node.prepared = prepare_segments(context, node, outputs=1)
    for output in node.outputs:
        ensure_type(output, TensorType.BOOL)


def run_masks(context: Context, node: Node) -> None:
    splits, sizes, kept = segment_sizes(node, node.prepared)
    for segment, output in enumerate(node.outputs):
        lengths = sizes[:, segment]
        places = np.arange(splits[segment][-1]) - np.repeat(splits[segment][:-1], lengths)
        give(context, output, places < np.repeat(kept[:, segment], lengths))


MASKS = Registration(
    prepare=prepare_masks,
    invoke=run_masks,
    pure=True,
    differences="Row splits that do not end with the number of values, or belong to batches of different sizes, are refused.",
)
