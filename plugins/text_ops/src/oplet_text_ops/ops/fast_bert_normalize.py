"""FastBertNormalize: replace each code point by a table in the model: lower case, no accents, no control characters.

Inputs are strings [n] and the bytes of a FastBertNormalizerModel. Outputs are the strings [n], offsets and their row splits
[n + 1], of int64.

Offsets are given if the option `get_offsets` is set: for each byte of a normalized string and for its end, the byte
offset of its source in the original string.

Numerics: core/kernels/fast_bert_normalizer.h of tensorflow/text.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.options import flag
from oplet.kernels.strings import StringMeter
from oplet_text_ops.attributes import options_of
from oplet_text_ops.models.bert_normalizer import BertNormalizer
from oplet_text_ops.nodes import give, makes, parts, table_of

#: Bytes of scratch per byte of text.
_SCRATCH = 128


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 3)
    texts, model = node.inputs
    ensure_vector(texts, TensorType.STRING)
    ensure_vector(model, TensorType.UINT8)
    options = options_of(node)
    node.prepared = "get_offsets" in options and flag(options, "get_offsets")
    makes(context, node, TensorType.STRING, TensorType.INT64)


def bind(context: Context, node: Node) -> Thunk:
    (texts, model), offsets = node.inputs, node.prepared

    def run() -> None:
        normalizer = table_of(node, model, "normalizer", BertNormalizer)
        made: list[bytes] = []
        meter = StringMeter()
        places, counts = [np.zeros(0, np.int64)], [np.zeros(1, np.int64)]
        for part in parts(texts.data.tolist(), _SCRATCH):
            found = normalizer.normalize(part, offsets)
            meter.add(sum(map(len, found.texts)) + 2 * found.offsets.nbytes, len(found.texts))
            made += found.texts
            places.append(found.offsets)
            counts.append(found.counts)
        splits = np.cumsum(np.concatenate(counts))
        give(context, node.outputs[0], made)
        give(context, node.outputs[1], np.concatenate(places))
        give(context, node.outputs[2], splits if offsets else np.zeros_like(splits))

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.STRING,))
