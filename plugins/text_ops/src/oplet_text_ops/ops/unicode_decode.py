"""UnicodeDecode: code points of strings.

The input is strings, counted as n whatever their shape. Outputs are the row splits [n + 1] and the code points as int32. Options:
`input_encoding`, `errors` ('strict', 'replace' or 'ignore'), `replacement_char`, `replace_control_characters` (those up to U+001F).

Numerics: tensorflow/core/kernels/unicode_ops.cc.
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType
from oplet.kernels.arrays import Thunk
from oplet_text_ops.texts.decoding import bind_decoding, prepare_decoding


def prepare(context: Context, node: Node) -> None:
    prepare_decoding(context, node, (TensorType.INT32,))


def bind(context: Context, node: Node) -> Thunk:
    return bind_decoding(context, node)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.STRING,))
