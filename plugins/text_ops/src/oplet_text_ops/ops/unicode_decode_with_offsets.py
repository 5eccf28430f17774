"""UnicodeDecodeWithOffsets: code points of strings, and the byte offset of each.

As UnicodeDecode, with a third output: where each code point begins in its string, in bytes of int64.

Numerics: tensorflow/core/kernels/unicode_ops.cc.
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType
from oplet.kernels.arrays import Thunk
from oplet_text_ops.texts.decoding import bind_decoding, prepare_decoding


def prepare(context: Context, node: Node) -> None:
    prepare_decoding(context, node, (TensorType.INT32, TensorType.INT64))


def bind(context: Context, node: Node) -> Thunk:
    return bind_decoding(context, node)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.STRING,))
