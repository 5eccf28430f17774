"""UnicodeScript: the Unicode script of each code point, numbered as in ICU.

The input is code points of int32 and of any shape, the output int32 of that shape; -1 for what is no code point.

Numerics: tensorflow/core/kernels/unicode_script_op.cc; the numbers are those of TensorFlow's ICU.
"""

from __future__ import annotations

from oplet import Context, Node, Registration, TensorType, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet_text_ops.texts.code_points import scripts_of


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    ensure_type(node.inputs[0], TensorType.INT32)
    ensure_type(node.outputs[0], TensorType.INT32)
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)


def bind(context: Context, node: Node) -> Thunk:
    points, output = node.inputs[0].data, node.outputs[0].data

    def run() -> None:
        output[...] = scripts_of(points)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.INT32,))
