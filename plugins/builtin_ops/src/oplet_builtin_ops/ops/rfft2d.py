"""RFFT2D: the Fourier transform of real matrices, truncated or padded with zeros to the transform's lengths.

LiteRT computes in double precision. What is real for every input, the sum and the highest frequencies, has the imaginary part -0.0 there, so
that the angle of a negative one is -pi. Numerics: tflite/kernels/rfft2d.cc, which takes lengths that are powers of two alone; with others
the transform is TensorFlow's (its audio examples have windows of 80), which gives +0.0 there.
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Shape, Thunk
from oplet.kernels.axes import read_ints
from oplet.kernels.operands import ensure_operands
from oplet.kernels.shapes import defer_or_resize, defer_or_run


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2)
    source, lengths = node.inputs
    ensure_type(source, TensorType.FLOAT32)
    ensure_type(lengths, TensorType.INT32)
    ensure(source.ndim >= 2, f"{source} must have at least 2 dimensions.")
    ensure(lengths.shape == (2,), f"the lengths {lengths} must have shape [2].")
    context.set_type(node.outputs[0], TensorType.COMPLEX64)
    defer_or_resize(context, node, [lengths], _shapes)


def bind(context: Context, node: Node) -> Thunk:
    return defer_or_run(context, node, _shapes, _bind, node.inputs[1:])


def _shapes(node: Node) -> list[Shape]:
    height, width = read_ints(node.inputs[1])
    for length in (height, width):
        ensure(length > 0, f"the transform's length {length} is not above 0.")
    return [(*node.inputs[0].shape[:-2], height, width // 2 + 1)]


def _bind(node: Node) -> Thunk:
    source, output = node.inputs[0].data, node.outputs[0].data
    lengths = height, width = read_ints(node.inputs[1])
    used = source[..., :height, :width]
    as_litert = all(length & (length - 1) == 0 for length in lengths)
    real = output[..., :: max(height // 2, 1), :: max(width // 2, 1)].imag if as_litert else None

    def run() -> None:
        output[...] = np.fft.rfft2(used.astype(np.float64), lengths)
        if real is not None:
            real.fill(-0.0)

    def clear() -> None:
        output.fill(0)

    return run if used.size else clear


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=(TensorType.FLOAT32,),
    differences="any length here, powers of two in LiteRT; transforms of width 1 are right here, and LiteRT leaves a part of them out",
)
