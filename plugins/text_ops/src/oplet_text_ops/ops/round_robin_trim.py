"""TFText>RoundRobinTrim: trim segments (the texts of one sequence) to a common length limit, taking values from them in turn.

Inputs: the length of the sequence (int32), the values of each of the `N` segments, and the row splits of each. Outputs: what is left of
the values, and the new row splits.

Numerics: round_robin_trimmer.h of tensorflow/text.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration
from oplet.kernels.operands import ensure_same_type
from oplet_text_ops.nodes import give
from oplet_text_ops.segments import prepare_segments, segment_sizes


def prepare(context: Context, node: Node) -> None:
    count = prepare_segments(context, node, outputs=2)
    for source, output in zip(node.inputs[1:], node.outputs):
        ensure_same_type(source, output)
    node.prepared = count


def invoke(context: Context, node: Node) -> None:
    count = node.prepared
    splits, _, kept = segment_sizes(node, count)
    for segment in range(count):
        lengths = kept[:, segment]
        ends = np.cumsum(lengths)
        places = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(splits[segment][:-1] - ends + lengths, lengths)
        give(context, node.outputs[segment], node.inputs[1 + segment].data[places])
        give(context, node.outputs[count + segment], np.concatenate(([0], ends)))


REGISTRATION = Registration(
    prepare=prepare,
    invoke=invoke,
    pure=True,
    differences="Row splits that do not end with the number of values, or belong to batches of different sizes, are refused.",
)
