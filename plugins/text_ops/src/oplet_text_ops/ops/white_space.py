"""Tokenizers at white space, and where the script changes.

tftext:WhitespaceTokenizer: words between white space, as tflite-support has it.

With one output it is a matrix of words, padded with empty strings, with one more dimension than the texts. With one more output for each of
their dimensions, words come as a vector with row splits (int64), those of the outermost dimension first. A text ends at its first byte that
is not UTF-8, and at U+FFFD. White space is what Plan 9's library takes for it, to which neither U+000B nor U+000D belongs.

Numerics: tensorflow_lite_support/custom_ops/kernel/whitespace_tokenizer.cc, with libutf

TFText>WhitespaceTokenizeWithOffsetsV2: split strings at white space, with offsets.

Inputs are strings [n] and a string of bits, one for each code point, which are set for white space. Outputs are the words as strings, the
row splits [n + 1] of int64, and where each word begins and ends in its string, in bytes of int32. Where the white space that follows a word
has several bytes, the word ends before the last of these, as in TensorFlow Text.

Numerics: core/kernels/whitespace_tokenizer.cc of tensorflow/text.

UnicodeScriptTokenizeWithOffsets and WhitespaceTokenizeWithOffsets: words in rows of code points, with offsets.

Inputs are code points (int32) and the splits of their rows; outputs the code points of all words, where each word begins among them (and
their number), each word's first place and the one behind its last in its row (int64), and where each row's words begin among the words.
The former parts where the script changes, and leaves out white space unless the option `keep_whitespace` is set, which parts at it too;
the latter parts at white space.

Numerics: core/kernels/{unicode_script_tokenize,whitespace_tokenize}_kernel.cc of tensorflow/text
"""

from __future__ import annotations

import re

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.options import flag
from oplet.kernels.strings import StringMeter
from oplet_text_ops.attributes import options_of
from oplet_text_ops.models.words import WhiteSpace
from oplet_text_ops.nodes import ensure_row_splits, give, give_all, makes, parts, string_vector, table_of
from oplet_text_ops.texts.code_points import WHITE_SPACES, word_scripts_of
from oplet_text_ops.texts.utf8 import Joined

_WORD = re.compile("[^\t\n \xa0\u2000-\u200b\u2028\u2029\u3000\ufeff]+")
#: Bytes of a reference, and of scratch for each row of words.
_REFERENCE, _ROW = 8, 112
#: Bytes of scratch per byte of text.
_SCRATCH = 64
_SPACES = np.array([ord(space.decode()) for space in WHITE_SPACES])
#: Bytes of scratch per code point.
_POINT = 96


def prepare_words(context: Context, node: Node) -> None:
    ensure(
        len(node.inputs) == 1 and None not in node.inputs and len(node.outputs) >= 1,
        f"it has {len(node.inputs)} inputs and {len(node.outputs)} outputs; it takes texts and gives words.",
    )
    texts, _, *splits = *node.inputs, *node.outputs
    ensure_type(texts, TensorType.STRING)
    ensure(
        not splits or len(splits) == texts.ndim,
        lambda: f"there are {len(splits)} outputs of row splits; there must be none, or one for each dimension of {texts}.",
    )
    makes(context, node, TensorType.STRING, TensorType.INT64)


def bind_words(context: Context, node: Node) -> Thunk:
    texts, output = node.inputs[0], node.outputs[0]
    splits = node.outputs[1:]

    def run() -> None:
        meter = StringMeter()
        rows = []
        for text in texts.data.reshape(-1).tolist():
            meter.read(len(text))
            found = words_of(text)
            meter.add(_ROW + sum(map(len, found)), len(found))
            rows.append(found)
        if splits:
            give(context, output, [word for row in rows for word in row])
            size = 1
            for place, each in enumerate(splits[:-1]):
                size *= texts.shape[place]
                give(context, each, np.arange(size + 1) * texts.shape[place + 1])
            give(context, splits[-1], np.cumsum([0, *map(len, rows)]))
            return
        width = max(map(len, rows), default=0)
        meter.hold(_REFERENCE * width * len(rows))
        padded = [word for row in rows for word in (*row, *[b""] * (width - len(row)))]
        give(context, output, string_vector(padded).reshape(*texts.shape, width))

    return run


def words_of(text: bytes) -> list[bytes]:
    """Split a UTF-8 text at white space; return the words."""
    try:
        decoded = text.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        decoded = text[: error.start].decode("utf-8", "surrogatepass")
    return [word.encode("utf-8", "surrogatepass") for word in _WORD.findall(decoded.partition("\ufffd")[0])]


WORDS = Registration(prepare=prepare_words, bind=bind_words, pure=True, types=(TensorType.STRING,))


def prepare_offsets(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 4)
    texts, config = node.inputs
    ensure_vector(texts, TensorType.STRING)
    ensure_type(config, TensorType.STRING)
    ensure(config.size == 1, lambda: f"{config} must hold one string, the bits of the white space.")
    makes(context, node, TensorType.STRING, TensorType.INT64, TensorType.INT32)


def bind_offsets(context: Context, node: Node) -> Thunk:
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


WITH_OFFSETS = Registration(prepare=prepare_offsets, bind=bind_offsets, pure=True, types=(TensorType.STRING,))


def prepare_points(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 5)
    points, splits = node.inputs
    ensure_vector(points, TensorType.INT32)
    ensure_type(splits, TensorType.INT32, TensorType.INT64)
    makes(context, node, TensorType.INT32, splits.type, TensorType.INT64, TensorType.INT64, splits.type)
    options = options_of(node)
    by_script = node.op_name.endswith("UnicodeScriptTokenizeWithOffsets")
    node.prepared = by_script, by_script and "keep_whitespace" in options and flag(options, "keep_whitespace")


def bind_points(context: Context, node: Node) -> Thunk:
    points, splits = node.inputs
    by_script, keep = node.prepared

    def run() -> None:
        values = points.data
        charge(_POINT * values.size)
        rows = ensure_row_splits(splits, values.size)
        spaces = np.isin(values, _SPACES)
        kind = word_scripts_of(values) if by_script else spaces
        parted = kind[1:] != kind[:-1]
        if keep:
            parted |= spaces[1:] != spaces[:-1]
        give_all(context, node, *_words(values, rows, parted, None if keep else ~spaces))

    return run


def _words(values: Array, rows: Array, parted: Array, kept: Array | None) -> tuple[Array, ...]:
    """Return the outputs.

    Args:
        rows: row splits.
        parted: for each value but the first, whether another word may begin there.
        kept: which values belong to words; None for all.
    """
    begins = np.concatenate((np.ones(min(1, len(values)), bool), parted))
    begins[rows[rows < len(values)]] = True
    groups = np.cumsum(begins)
    places = np.arange(len(values)) if kept is None else np.flatnonzero(kept)
    group = groups[places]
    first = np.flatnonzero(np.diff(group, prepend=0))
    last = np.concatenate((first[1:] - 1, np.full(min(1, len(places)), len(places) - 1, np.int64)))
    row = np.searchsorted(rows, places[first], side="right") - 1
    counts = np.bincount(row, minlength=len(rows) - 1)
    return (
        values[places],
        np.concatenate((first, [len(places)])),
        places[first] - rows[row],
        places[last] + 1 - rows[row],
        np.concatenate(([0], np.cumsum(counts))),
    )


CODE_POINTS = Registration(
    prepare=prepare_points,
    bind=bind_points,
    pure=True,
    types=(TensorType.INT32,),
    differences="Row splits that do not end with the number of code points are refused.",
)
