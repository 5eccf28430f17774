"""TFText>FastWordpieceDetokenize: texts from token ids of a WordPiece vocabulary.

Inputs are token ids (int32), their row splits [n + 1] (int64) and the bytes of a FastWordpieceTokenizerConfig; the output is
strings [n].

Numerics: core/kernels/fast_wordpiece_tokenizer_kernel_template.h of tensorflow/text.
"""

from __future__ import annotations

import itertools
from array import array

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.strings import StringMeter
from oplet_text_ops.models.detokenizer import Detokenizer
from oplet_text_ops.nodes import ensure_row_splits, give, table_of


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3, 1)
    for tensor, type in zip(node.inputs, (TensorType.INT32, TensorType.INT64, TensorType.UINT8)):
        ensure_vector(tensor, type)
    ensure_type(node.outputs[0], TensorType.STRING)
    context.set_dynamic(node.outputs[0])


def bind(context: Context, node: Node) -> Thunk:
    numbers, splits, vocabulary = node.inputs

    def run() -> None:
        detokenizer = table_of(node, vocabulary, "detokenizer", Detokenizer)
        values = array("q", numbers.data.astype(np.int64).tobytes())
        rows = array("q", ensure_row_splits(splits, len(values)).tobytes())
        meter = StringMeter()
        texts = [detokenizer.text(values[start:end], meter) for start, end in itertools.pairwise(rows)]
        give(context, node.outputs[0], texts)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.INT32,))
