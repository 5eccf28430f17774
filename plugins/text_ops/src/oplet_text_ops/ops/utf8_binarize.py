"""TFText>Utf8Binarize: bits of each string's first `word_length` code points, `bits_per_char` each, lowest bit first.

What is not UTF-8 is `replacement_char`, once for each part that Unicode's recommendation replaces. Input: a vector of strings. Output:
float32, a row of zeros and ones for each.

Numerics: utf8_binarize.cc of tensorflow/text, and ICU's U8_NEXT.
"""

from __future__ import annotations

import codecs

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure, ensure_type
from oplet.kernels.limits import listed, paced
from oplet.kernels.operands import ensure_operands
from oplet.kernels.options import integer
from oplet_text_ops.attributes import options_of

#: What stands for bytes that are no UTF-8 until it is replaced: a surrogate, which no UTF-8 has.
_MARK = 0xD800

codecs.register_error(
    "oplet-text-mark", lambda error: (chr(_MARK), error.end) if isinstance(error, UnicodeDecodeError) else ("", 0)
)


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    ensure_type(node.inputs[0], TensorType.STRING)
    ensure_type(node.outputs[0], TensorType.FLOAT32)
    ensure(node.inputs[0].ndim == 1, lambda: f"{node.inputs[0]} must be a vector.")
    options = options_of(node)
    length, bits = (integer(options, key) for key in ("word_length", "bits_per_char"))
    replacement = integer(options, "replacement_char", least=-(2**31))
    ensure(length * bits < 2**31, lambda: f"{length} code points of {bits} bits are more than a row can have.")
    node.prepared = length, bits, replacement
    context.resize_tensor(node.outputs[0], (node.inputs[0].shape[0], length * bits))


def invoke(context: Context, node: Node) -> None:
    length, bits, replacement = node.prepared
    output = node.outputs[0].data.reshape(-1, length, bits)
    strings = listed(node.inputs[0].data)
    # A code point has four bytes or fewer.
    texts = [string[: 4 * length].decode("utf-8", "oplet-text-mark")[:length] for string in paced(strings, 4096)]
    charge(8 * sum(map(len, texts)))
    points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
    points[points == _MARK] = replacement
    counts = np.fromiter(map(len, texts), np.int64, len(texts))
    rows = np.repeat(np.arange(len(texts)), counts)
    columns = np.arange(len(points)) - np.repeat(np.cumsum(counts) - counts, counts)
    output[...] = 0
    for bit in paced(range(bits), 1):
        output[rows, columns, bit] = points >> min(bit, 31) & 1


REGISTRATION = Registration(prepare=prepare, invoke=invoke, pure=True, types=(TensorType.STRING,))
