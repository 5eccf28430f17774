"""Convolution2DTransposeBias: a transposed convolution with a bias.

The output's size follows from the input's only up to a stride: SAME padding makes maps of 9 and of 10 into maps of 5.
The size that the model declares decides where it is one of those, as in XNNPACK; else the size is the one that
MediaPipe's own kernel takes.

Numerics: mediapipe/util/tflite/operations/transpose_conv_bias.cc, tflite/delegates/xnnpack/xnnpack_delegate.cc
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oplet import Context, Node, Registration, TensorType, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.windows import padding_before, windows_in
from oplet.schema.enums import Padding
from oplet_mediapipe_ops.structs import transpose_conv_params
from oplet_mediapipe_ops.windows import taps

#: Taps whose views are kept; those of more are made anew in each run.
_KEPT = 1 << 12


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 3, 1)
    source, weights, bias = node.inputs
    output = node.outputs[0]
    for tensor in (source, weights, bias, output):
        ensure_type(tensor, TensorType.FLOAT32)
    ensure(source.ndim == 4, f"{source} must have 4 dimensions.")
    ensure(weights.ndim == 4 and weights.size > 0, f"the filters {weights} must have 4 dimensions, none of them zero.")
    ensure(source.shape[3] == weights.shape[3], f"{source} and the filters {weights} must have the same last dimension.")
    ensure(bias.shape == weights.shape[:1], f"the bias {bias} must have one value for each of the filters {weights}.")
    padding, strides = transpose_conv_params(node)
    declared = output.shape_signature if len(output.shape_signature) == 4 else (0, 0, 0, 0)
    height, width = (
        _large(declared[axis], source.shape[axis], stride, weights.shape[axis], padding) for axis, stride in zip((1, 2), strides)
    )
    context.resize_tensor(output, (source.shape[0], height, width, weights.shape[0]))
    batch, rows, columns, _ = source.shape
    node.prepared = strides, context.add_temporary(node, (batch, rows, columns, weights.shape[0]))


def _large(declared: int, small: int, stride: int, window: int, padding: Padding) -> int:
    """Return the output size along one axis: the declared one if it fits, else the smallest."""
    if small == 0:
        return 0
    if declared > 0 and windows_in(declared, window, stride, padding) == small:
        return declared
    whole = stride * (small - 1) + window
    return whole - max(0, window - (small - 1) % stride - 1) if padding == Padding.SAME else whole


def bind(context: Context, node: Node) -> Thunk:
    strides, temporary = node.prepared
    source, weights, bias = node.inputs
    output, stamp = node.outputs[0].data, temporary.data
    filters, *_, depth = weights.shape
    down, across = (
        taps(small, large, stride, window, padding_before(small, large, window, stride))
        for small, large, stride, window in zip(source.shape[1:3], output.shape[1:3], strides, weights.shape[1:3])
    )
    pixels, stamps = source.data.reshape(-1, depth), stamp.reshape(-1, filters)
    by_tap = weights.data.transpose(1, 2, 3, 0)
    matrices: Array
    if weights.is_constant:
        matrices = node.cached("matrices", [weights], lambda: np.ascontiguousarray(by_tap), shared=True)
    else:
        matrices = np.empty(by_tap.shape, np.float32)
    offsets, constant = bias.data, weights.is_constant
    # Where windows do not overlap, each tap has outputs of its own.
    apart = all(stride >= window for stride, window in zip(strides, weights.shape[1:3]))
    met = [sum(len(range(*tap.large.indices(size))) for tap in found) for found, size in zip((down, across), output.shape[1:3])]
    whole = apart and met == list(output.shape[1:3])

    def steps() -> Iterator[tuple[Array, Array, Array]]:
        for y in down:
            for x in across:
                yield matrices[y.offset, x.offset], stamp[:, y.small, x.small], output[:, y.large, x.large]

    kept = list(steps()) if len(down) * len(across) <= _KEPT else None

    def run() -> None:
        if not constant:
            np.copyto(matrices, by_tap)
        if not whole:
            np.copyto(output, offsets)
        for matrix, part, place in steps() if kept is None else kept:
            checkpoint()
            np.matmul(pixels, matrix, stamps)
            np.add(part, offsets if apart else place, place)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.FLOAT32,))
