"""CaseFoldUTF8: NFKC case folding, dropping default-ignorable code points.

The input is strings of any shape, the output strings of that shape. Bytes that are not UTF-8 stay.

Numerics: core/kernels/normalize_kernels.cc of tensorflow/text, with ICU 77 (Unicode 16).
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet_text_ops.batches import each_text
from oplet_text_ops.nodes import string_vector
from oplet_text_ops.texts.normalization import case_fold


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    ensure_type(node.inputs[0], TensorType.STRING)
    ensure_type(node.outputs[0], TensorType.STRING)
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data

    def run() -> None:
        output[...] = string_vector(each_text(case_fold, source.ravel().tolist())).reshape(output.shape)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.STRING,))
