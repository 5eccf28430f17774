"""FastWordpieceTokenizeWithOffsets and TFText>FastWordpieceDetokenize: tokens of texts (or words) by a WordPiece vocabulary, and back.

The tokenizer's inputs are strings [n] and the bytes of a FastWordpieceTokenizerConfig; its outputs the pieces as strings, their numbers in the
vocabulary, the row splits [n + 1], and where each piece begins and ends in its string, in bytes; all int64 but for the strings. The detokenizer's
inputs are token ids (int32), their row splits [n + 1] (int64) and the config; its output is strings [n].

Numerics: core/kernels/fast_wordpiece_tokenizer_kernel_template.h of tensorflow/text.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Sequence
from functools import partial

import numpy as np

from oplet import Context, Node, Registration, TensorType
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.strings import StringMeter
from oplet_text_ops.models.longest_match import cut_all
from oplet_text_ops.models.pieces import Columns, Detokenizer, WordCache, joined_columns
from oplet_text_ops.models.wordpiece import WordpieceModel
from oplet_text_ops.models.words import WhiteSpace
from oplet_text_ops.nodes import ensure_row_splits, give, give_all, makes, parts, table_of
from oplet_text_ops.texts.code_points import white_space_bits
from oplet_text_ops.texts.utf8 import Joined

#: Bytes of a token in all columns.

#: Bytes of scratch per byte of text.
_SCRATCH = 96
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


def prepare_tokenize(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 5)
    texts, vocabulary = node.inputs
    ensure_vector(texts, TensorType.STRING)
    ensure_vector(vocabulary, TensorType.UINT8)
    makes(context, node, TensorType.STRING, TensorType.INT64)


def bind_tokenize(context: Context, node: Node) -> Thunk:
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


TOKENIZE = Registration(prepare=prepare_tokenize, bind=bind_tokenize, pure=True, types=(TensorType.STRING,))


def prepare_detokenize(context: Context, node: Node) -> None:
    ensure_operands(node, 3, 1)
    for tensor, type in zip(node.inputs, (TensorType.INT32, TensorType.INT64, TensorType.UINT8)):
        ensure_vector(tensor, type)
    makes(context, node, TensorType.STRING)


def bind_detokenize(context: Context, node: Node) -> Thunk:
    numbers, splits, vocabulary = node.inputs

    def run() -> None:
        detokenizer = table_of(node, vocabulary, "detokenizer", Detokenizer)
        values = array("q", numbers.data.astype(np.int64).tobytes())
        rows = array("q", ensure_row_splits(splits, len(values)).tobytes())
        meter = StringMeter()
        texts = [detokenizer.text(values[start:end], meter) for start, end in itertools.pairwise(rows)]
        give(context, node.outputs[0], texts)

    return run


DETOKENIZE = Registration(prepare=prepare_detokenize, bind=bind_detokenize, pure=True, types=(TensorType.INT32,))
