"""tftext:WhitespaceTokenizer: words between white space, as tflite-support has it.

With one output it is a matrix of words, padded with empty strings, with one more dimension than the texts. With one more output for each of
their dimensions, words come as a vector with row splits (int64), those of the outermost dimension first. A text ends at its first byte that
is not UTF-8, and at U+FFFD. White space is what Plan 9's library takes for it, to which neither U+000B nor U+000D belongs.

Numerics: tensorflow_lite_support/custom_ops/kernel/whitespace_tokenizer.cc, with libutf
"""

from __future__ import annotations

import re

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.strings import StringMeter
from oplet_text_ops.nodes import give, string_vector

_WORD = re.compile("[^\t\n \xa0\u2000-\u200b\u2028\u2029\u3000\ufeff]+")
#: Bytes of a reference.
_REFERENCE = 8


def prepare(context: Context, node: Node) -> None:
    ensure(
        len(node.inputs) == 1 and None not in node.inputs and len(node.outputs) >= 1,
        f"it has {len(node.inputs)} inputs and {len(node.outputs)} outputs; it takes texts and gives words.",
    )
    texts, words, *splits = *node.inputs, *node.outputs
    ensure_type(texts, TensorType.STRING)
    ensure_type(words, TensorType.STRING)
    ensure(
        not splits or len(splits) == texts.ndim,
        lambda: f"there are {len(splits)} outputs of row splits; there must be none, or one for each dimension of {texts}.",
    )
    for output in splits:
        ensure_type(output, TensorType.INT64)
    for output in node.outputs:
        context.set_dynamic(output)


def bind(context: Context, node: Node) -> Thunk:
    texts, output = node.inputs[0], node.outputs[0]
    splits = node.outputs[1:]

    def run() -> None:
        meter = StringMeter()
        rows = []
        for text in texts.data.reshape(-1).tolist():
            meter.read(len(text))
            found = words_of(text)
            meter.add(sum(map(len, found)), len(found))
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


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.STRING,))
