"""SignalEnergy: squared magnitudes of an int16 complex spectrum, from `start_index` up to before `end_index`.

The other frequencies get zeros. tflite-micro leaves there what was in the memory, although the op's documentation says zero.

Numerics: signal/src/energy.cc of tflite-micro.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands, ensure_vector
from oplet.kernels.options import integer


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 1, 1)
    spectrum, output = node.inputs[0], node.outputs[0]
    ensure_vector(spectrum, TensorType.INT16)
    ensure_type(output, TensorType.UINT32)
    ensure(spectrum.size % 2 == 0, f"{spectrum} must have pairs of values.")
    options = node.custom_map()
    frequencies = spectrum.size // 2
    start, end = (integer(options, key, most=frequencies) for key in ("start_index", "end_index"))
    context.resize_tensor(output, (frequencies,))
    node.prepared = start, max(start, end)


def bind(context: Context, node: Node) -> Thunk:
    start, end = node.prepared
    output = node.outputs[0].data
    real, imaginary = node.inputs[0].data.reshape(-1, 2)[start:end].T
    energy = output[start:end]

    def run() -> None:
        output[:start] = 0
        output[end:] = 0
        # The largest sum, 2^31, is one too many for int32 alone; both halves fit.
        np.add(np.square(real, dtype=np.int32), np.square(imaginary, dtype=np.int32), energy, dtype=np.uint32, casting="unsafe")

    return run


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=(TensorType.INT16,),
    differences="Frequencies outside the range get zeros; tflite-micro leaves them as the memory is.",
)
