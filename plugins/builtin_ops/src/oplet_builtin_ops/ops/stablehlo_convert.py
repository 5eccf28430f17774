"""STABLEHLO_CONVERT: values as another type.

Floats become integers by truncation. Where StableHLO leaves the result open, it is XLA's: floats out of range become the nearest
integer of the type, NaN becomes 0; integers keep their low bits.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.elementwise.stablehlo_elementwise import quietly
from oplet_builtin_ops.stablehlo import COMPLEX, FLOATS, INTEGERS, VALUES, ensure_not_quantized, ensure_values


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1)
    source, output = node.inputs[0], node.outputs[0]
    ensure_values(source, output)
    ensure_not_quantized(source, output)
    context.resize_tensor(output, source.shape)


def _assign(target: Array, source: Array) -> None:
    target[...] = source


def _saturate(target: Array, source: Array) -> None:
    limits = np.iinfo(target.dtype)
    whole = np.asarray(np.trunc(source.astype(np.float64)))
    whole[np.isnan(whole)] = 0
    # The largest int64 is no float64, so that values beyond it are set afterwards.
    target[...] = np.clip(whole, limits.min, limits.max)
    target[whole >= float(limits.max)] = limits.max


def bind(context: Context, node: Node) -> Thunk:
    source, output = node.inputs[0], node.outputs[0]
    values = source.data
    if source.type in COMPLEX and output.type not in COMPLEX:
        values = values.real
    if source.type in FLOATS + COMPLEX and output.type in INTEGERS:
        return quietly(_saturate, output.data, values)
    return quietly(_assign, output.data, values)


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=VALUES)
