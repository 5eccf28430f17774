"""FULLY_CONNECTED: the input's rows multiplied with the rows of the weights.

Float, quantized (uint8, int8, int16), hybrid (float activations; weights of 8, 4 or 2 bits, with one scale, one per row or one per
block of a row), sparse weights, and weights shuffled into 4x16 blocks. Numerics: tflite/kernels/fully_connected.cc,
tflite/kernels/internal/reference/fully_connected.h and integer_ops/fully_connected.h
"""

from __future__ import annotations

from oplet import Context, Node, Registration
from oplet.kernels.arrays import Thunk
from oplet_builtin_ops.arithmetic.single_precision import takes_halves
from oplet_builtin_ops.layers import remark
from oplet_builtin_ops.layers.checked_rows import TYPES, check_rows


def prepare(context: Context, node: Node) -> None:
    node.prepared = rows = check_rows(context, node)
    rows.plan(context)


def bind(context: Context, node: Node) -> Thunk:
    if not node.outputs[0].size:
        return lambda: None
    thunk: Thunk = node.prepared.thunk()
    return thunk


# XNNPACK, which alone runs half-precision layers with quantized weights, computes each row's zero point from its values.
REGISTRATION = takes_halves(
    Registration(prepare=prepare, bind=bind, pure=True, sparse=frozenset({1}), types=tuple(TYPES), remark=remark),
    0,
    1,
    mixed=True,
    options={"asymmetric_quantize_inputs": True},
)
