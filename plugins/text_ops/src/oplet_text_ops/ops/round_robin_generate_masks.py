"""TFText>RoundRobinGenerateMasks: mask of the values that fit a length limit, taken in turn from the segments (texts of one
sequence).

Inputs: the length of the sequence (int32), the values of each of the `N` segments, and the row splits of each. Outputs: a Boolean for
each value.

Numerics: round_robin_trimmer.h of tensorflow/text.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet_text_ops.nodes import give
from oplet_text_ops.segments import prepare_segments, segment_sizes


def prepare(context: Context, node: Node) -> None:
    node.prepared = prepare_segments(context, node, outputs=1)
    for output in node.outputs:
        ensure_type(output, TensorType.BOOL)


def invoke(context: Context, node: Node) -> None:
    splits, sizes, kept = segment_sizes(node, node.prepared)
    for segment, output in enumerate(node.outputs):
        lengths = sizes[:, segment]
        places = np.arange(splits[segment][-1]) - np.repeat(splits[segment][:-1], lengths)
        give(context, output, places < np.repeat(kept[:, segment], lengths))


REGISTRATION = Registration(
    prepare=prepare,
    invoke=invoke,
    pure=True,
    differences="Row splits that do not end with the number of values, or belong to batches of different sizes, are refused.",
)
