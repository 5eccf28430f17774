"""SignalFilterBankLog: natural logarithms in fixed point, limited to int16.

The input is first shifted left by the option `input_correction_bits`; the logarithm is multiplied by `output_scale`. Inputs of
0 and 1 give 0.

Numerics: signal/src/filter_bank_log.cc and log.cc of tflite-micro, in unsigned arithmetic of 32 bits that wraps around.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.options import integer
from oplet_signal_ops.nodes import AT_ONCE

#: What log2(1 + x) - x is at x = 0, 1/128, ..., 1, with 16 bits behind the point.
_BULGE = np.round(65536 * (np.log2(1 + np.arange(129) / 128) - np.arange(129) / 128)).astype(np.int64)
_LN_2 = 45426
_HALF = 1 << 15


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 1)
    values, output = node.inputs[0], node.outputs[0]
    ensure_vector(values, TensorType.UINT32)
    ensure_type(output, TensorType.INT16)
    options = node.custom_map()
    node.prepared = (
        integer(options, "input_correction_bits", most=31),
        integer(options, "output_scale", least=1),
    )
    context.resize_tensor(output, values.shape)


def bind(context: Context, node: Node) -> Thunk:
    correction_bits, scale = node.prepared
    values, output = node.inputs[0].data, node.outputs[0].data

    def run() -> None:
        for start in range(0, len(values), AT_ONCE):
            checkpoint()
            corrected = np.left_shift(values[start : start + AT_ONCE], np.uint32(correction_bits)).astype(np.int64)
            np.maximum(corrected, 1, out=corrected)  # the logarithm of 1 is the 0 that stands for 0 too
            part = output[start : start + AT_ONCE]
            np.minimum(scaled_logarithms(corrected, scale), 0x7FFF, out=part, casting="unsafe")

    return run


def scaled_logarithms(values: Array, scale: int) -> Array:
    """Compute ln(values) * scale for int64 values from 1 to 2^32 - 1, modulo 2^32."""
    exponents = np.frexp(values.astype(np.float64))[1].astype(np.int64) - 1
    # The 16 bits behind the leading one, by whose first 7 the table is read.
    fractions = ((values - (1 << exponents)) << 16) >> exponents
    segments = fractions >> 9
    slopes = _BULGE[segments + 1] - _BULGE[segments]
    # Interpolating takes a shift by 9, not by 16; so little is added within a segment that it looks like a step.
    log2 = (exponents << 16) + fractions + _BULGE[segments] + (slopes * (fractions & 0x1FF) >> 16)
    ln = (_LN_2 * log2 + _HALF) >> 16
    result: Array = ((scale * ln + _HALF) & 0xFFFFFFFF) >> 16
    return result


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.UINT32,))
