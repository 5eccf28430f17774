"""TFText>ByteSplitWithOffsets: split strings into single bytes.

The input is strings [n]. Outputs are all bytes as uint8, the row splits [n + 1] of int64, and where each byte begins and ends in its
string, as int32.

Numerics: core/kernels/byte_splitter.cc of tensorflow/text.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet_text_ops.nodes import give_all

#: Bytes of scratch per byte of text.
_SCRATCH = 24


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 4)
    ensure_vector(node.inputs[0], TensorType.STRING)
    for output, type in zip(node.outputs, (TensorType.UINT8, TensorType.INT64, TensorType.INT32, TensorType.INT32)):
        ensure_type(output, type)
        context.set_dynamic(output)


def bind(context: Context, node: Node) -> Thunk:
    source = node.inputs[0]

    def run() -> None:
        texts = source.data.tolist()
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        splits = np.concatenate([[0], np.cumsum(sizes)])
        charge(_SCRATCH * int(splits[-1]))
        starts = np.arange(splits[-1]) - np.repeat(splits[:-1], sizes)
        give_all(context, node, np.frombuffer(b"".join(texts), np.uint8), splits, starts, starts + 1)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.STRING,))
