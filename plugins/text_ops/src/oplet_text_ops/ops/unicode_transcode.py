"""UnicodeTranscode: convert strings to another encoding, replacing or dropping invalid characters.

The input is strings of any shape, the output strings of that shape. Options: `input_encoding`, `output_encoding`, `errors` ('strict',
'replace' or 'ignore'), `replacement_char`, `replace_control_characters` (those up to U+001F).

Numerics: tensorflow/core/kernels/unicode_ops.cc.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, charge, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.strings import STRING
from oplet_text_ops.attributes import options_of
from oplet_text_ops.nodes import string_vector
from oplet_text_ops.texts.decoding import decode_all
from oplet_text_ops.texts.encodings import decoder, encoder, read_errors


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    ensure_type(node.inputs[0], TensorType.STRING)
    ensure_type(node.outputs[0], TensorType.STRING)
    options = options_of(node)
    node.prepared = (
        decoder(options.get("input_encoding")),
        encoder(options.get("output_encoding")),
        read_errors(node, controls=True),
    )
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)


def bind(context: Context, node: Node) -> Thunk:
    read, write, errors = node.prepared
    source, output = node.inputs[0].data, node.outputs[0].data

    def run() -> None:
        charge(2 * STRING * source.size)
        found = decode_all(source.ravel().tolist(), read, errors)
        splits = np.concatenate([[0], np.cumsum(found.counts)])
        output[...] = string_vector(write(found.points, splits)).reshape(output.shape)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.STRING,))
