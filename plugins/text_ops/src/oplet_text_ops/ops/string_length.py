"""StringLength: the length of strings in bytes or, where the option `unit` is 'UTF8_CHAR', in characters.

The input is strings of any shape, the output int32 of that shape. Characters are counted as TensorFlow counts them: all bytes but those from
0x80 to 0xBF.

Numerics: tensorflow/core/kernels/string_length_op.cc.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet_text_ops.attributes import options_of

_FOLLOWING = bytes(range(0x80, 0xC0))


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    ensure_type(node.inputs[0], TensorType.STRING)
    ensure_type(node.outputs[0], TensorType.INT32)
    unit = options_of(node).get("unit", "BYTE")
    ensure(unit in ("BYTE", "UTF8_CHAR"), lambda: f"the option 'unit' is {unit!r:.60}; it must be 'BYTE' or 'UTF8_CHAR'.")
    node.prepared = unit
    context.resize_tensor(node.outputs[0], node.inputs[0].shape)


def bind(context: Context, node: Node) -> Thunk:
    source, output, unit = node.inputs[0].data, node.outputs[0].data, node.prepared

    def run() -> None:
        texts = source.ravel().tolist()
        if unit == "UTF8_CHAR":
            texts = [text.translate(None, _FOLLOWING) for text in texts]
        output[...] = np.fromiter(map(len, texts), np.int32, len(texts)).reshape(output.shape)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.STRING,))
