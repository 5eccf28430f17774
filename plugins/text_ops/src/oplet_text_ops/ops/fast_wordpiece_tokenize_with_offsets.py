"""FastWordpieceTokenizeWithOffsets: tokenize texts (or words) by a WordPiece vocabulary, with offsets.

Inputs are strings [n] and the bytes of a FastWordpieceTokenizerConfig. Outputs are the pieces as strings, their numbers in the
vocabulary, the row splits [n + 1], and where each piece begins and ends in its string, in bytes; all int64 but for the strings.

Numerics: core/kernels/fast_wordpiece_tokenizer_kernel_template.h of tensorflow/text.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.strings import StringMeter
from oplet_text_ops.batches import parts
from oplet_text_ops.models.longest_match import cut_all
from oplet_text_ops.models.pieces import Columns, WordCache, joined_columns
from oplet_text_ops.models.wordpiece import WordpieceModel
from oplet_text_ops.models.words import WhiteSpace
from oplet_text_ops.nodes import give_all, table_of
from oplet_text_ops.texts.code_points import white_space_bits
from oplet_text_ops.texts.utf8 import Joined

#: Bytes of scratch per byte of text.
_SCRATCH = 96
#: Bytes of a token in all columns.
_COLUMNS = 32


class Tokenizer:
    """A WordPiece vocabulary with its cache of tokenized words.

    Args:
        buffer: the FlatBuffer of the config.
    """

    def __init__(self, buffer: bytes) -> None:
        self._model = WordpieceModel(buffer)
        self._words = WordCache(partial(cut_all, self._model))
        self._spaces = WhiteSpace(white_space_bits())

    def tokenize(self, texts: Sequence[bytes]) -> Columns:
        """Tokenize the texts; return their tokens as arrays."""
        if self._model.end_to_end and not self._model.across_spaces:
            return self._words.tokens(*self._spaces.words(Joined(texts)))
        count = len(texts)
        return self._words.tokens(texts, np.zeros(count, np.int64), np.arange(count + 1))


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 5)
    texts, vocabulary = node.inputs
    ensure_vector(texts, TensorType.STRING)
    ensure_vector(vocabulary, TensorType.UINT8)
    ensure_type(node.outputs[0], TensorType.STRING)
    for output in node.outputs[1:]:
        ensure_type(output, TensorType.INT64)
    for output in node.outputs:
        context.set_dynamic(output)


def bind(context: Context, node: Node) -> Thunk:
    texts, vocabulary = node.inputs

    def run() -> None:
        tokenizer = table_of(node, vocabulary, "tokenizer", Tokenizer)
        meter, found = StringMeter(), []
        for part in parts(texts.data.tolist(), _SCRATCH):
            found.append(tokenizer.tokenize(part))
            meter.add(2 * _COLUMNS * len(found[-1].texts), 0)  # once more when they are joined
        pieces, numbers, starts, ends, splits = joined_columns(found)
        give_all(context, node, pieces, numbers, splits, starts, ends)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.STRING,))
