"""RIGHT_SHIFT: arithmetic right shift; the amount is clamped to the type's bits.

Numerics: tflite/kernels/right_shift.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration
from oplet.kernels.arrays import Thunk
from oplet.kernels.fixed_point import clip
from oplet_builtin_ops.elementwise.pairwise import prepare_pairwise
from oplet_builtin_ops.types import INTEGERS


def prepare(context: Context, node: Node) -> None:
    prepare_pairwise(context, node, *INTEGERS)
    b = node.inputs[1]
    context.add_temporary(node, b.shape, b.type)


def bind(context: Context, node: Node) -> Thunk:
    values, amounts = (tensor.data for tensor in node.inputs)
    output, bounded = node.outputs[0].data, node.temporaries[0].data
    none, all_but_one = np.array(0, amounts.dtype), np.array(8 * amounts.itemsize - 1, amounts.dtype)

    def run() -> None:
        clip(amounts, none, all_but_one, bounded)
        np.right_shift(values, bounded, output)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=INTEGERS)
