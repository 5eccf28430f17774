"""SignalFilterBankSquareRoot: the square roots of uint64 energies, rounded to nearest, shifted right.

The second input says by how many bits to shift: those by which SignalFftAutoScale had scaled the signal up.

Numerics: signal/src/filter_bank_square_root.cc and square_root_*.cc of tflite-micro. Roots of values below 2^32 are not rounded
up beyond 16 bits (65535), roots of larger values not beyond 32 bits.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet_signal_ops.nodes import AT_ONCE


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 1)
    (energies, scale_bits), output = node.inputs, node.outputs[0]
    ensure_vector(energies, TensorType.UINT64)
    ensure_type(scale_bits, TensorType.INT32)
    ensure(scale_bits.ndim == 0, f"{scale_bits} must be a scalar.")
    ensure_type(output, TensorType.UINT32)
    context.resize_tensor(output, energies.shape)


def bind(context: Context, node: Node) -> Thunk:
    energies, scale_bits, output = node.inputs[0].data, node.inputs[1].data, node.outputs[0].data

    def run() -> None:
        bits = int(scale_bits)
        ensure(0 <= bits <= 31, f"the roots cannot be shifted right by {bits} bits ({node.inputs[1]}).")
        for start in range(0, len(energies), AT_ONCE):
            checkpoint()
            part = slice(start, start + AT_ONCE)
            np.right_shift(rounded_roots(energies[part]), bits, output[part], casting="unsafe")

    return run


def rounded_roots(values: Array) -> Array:
    """Return the square roots of uint64 values, rounded to nearest."""
    # The root of a double is one too large or too small where values have more than 53 bits.
    roots = np.minimum(np.sqrt(values.astype(np.float64)), 0xFFFFFFFF).astype(np.uint64)
    roots -= roots * roots > values
    rest = values - roots * roots
    larger = rest > 2 * roots
    roots += larger
    rest = values - roots * roots
    roots += (rest > roots) & (roots != np.where(values >> np.uint64(32), 0xFFFFFFFF, 0xFFFF))
    return roots


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.UINT64,))
