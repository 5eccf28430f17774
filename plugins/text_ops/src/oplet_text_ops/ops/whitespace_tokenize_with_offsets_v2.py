"""TFText>WhitespaceTokenizeWithOffsetsV2: split strings at white space, with offsets.

Inputs are strings [n] and a string of bits, one for each code point, which are set for white space. Outputs are the words as strings, the
row splits [n + 1] of int64, and where each word begins and ends in its string, in bytes of int32. Where the white space that follows a word
has several bytes, the word ends before the last of these, as in TensorFlow Text.

Numerics: core/kernels/whitespace_tokenizer.cc of tensorflow/text.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.strings import StringMeter
from oplet_text_ops.batches import parts
from oplet_text_ops.models.words import WhiteSpace
from oplet_text_ops.nodes import give_all, table_of
from oplet_text_ops.texts.utf8 import Joined

#: Bytes of scratch per byte of text.
_SCRATCH = 64


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 4)
    texts, config = node.inputs
    ensure_vector(texts, TensorType.STRING)
    ensure_type(config, TensorType.STRING)
    ensure(config.size == 1, lambda: f"{config} must hold one string, the bits of the white space.")
    for output, type in zip(node.outputs, (TensorType.STRING, TensorType.INT64, TensorType.INT32, TensorType.INT32)):
        ensure_type(output, type)
        context.set_dynamic(output)


def bind(context: Context, node: Node) -> Thunk:
    texts, config = node.inputs

    def run() -> None:
        spaces = table_of(node, config, "white space", WhiteSpace)
        words: list[bytes] = []
        places, counts = [np.zeros(0, np.int64)], [np.zeros(1, np.int64)]
        meter = StringMeter()
        for part in parts(texts.data.tolist(), _SCRATCH):
            found = spaces.words(Joined(part), overlap=True)
            meter.add(sum(map(len, found.words)) + 2 * found.places.nbytes, len(found.words))
            words += found.words
            places.append(found.places)
            counts.append(np.diff(found.rows))
        starts = np.concatenate(places)
        sizes = np.fromiter(map(len, words), np.int64, len(words))
        give_all(context, node, words, np.cumsum(np.concatenate(counts)), starts, starts + sizes)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.STRING,))
