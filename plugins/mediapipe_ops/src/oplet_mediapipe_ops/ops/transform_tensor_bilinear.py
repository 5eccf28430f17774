"""TransformTensorBilinear: the part of an image that a transformation matrix cuts out, sampled bilinearly.

The matrix maps the output's positions to the input's. In version 1 a position is a pixel's corner, in version 2 its
centre. What lies outside the image is zero.

Numerics: mediapipe/util/tflite/operations/transform_tensor_bilinear.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet_mediapipe_ops.attributes import integer, integers
from oplet_mediapipe_ops.nodes import Array, Thunk, ensure_matrix, ensure_operands


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 1)
    (image, matrix), output = node.inputs, node.outputs[0]
    ensure_type(image, TensorType.FLOAT32)
    ensure_type(output, TensorType.FLOAT32)
    ensure(image.ndim == 4 and image.shape[0] == 1, f"{image} must be one image: [1, height, width, channels].")
    ensure_matrix(matrix)
    height, width = _output_size(node)
    context.resize_tensor(output, (1, height, width, image.shape[3]))
    node.prepared = [context.add_temporary(node, (height * width, image.shape[3])) for _ in range(2)]


def _output_size(node: Node) -> tuple[int, int]:
    options = node.custom_map()
    if node.version > 1:
        return integer(options, "output_height", least=1), integer(options, "output_width", least=1)
    mode = options.get("mode", "bilinear")
    ensure(mode == "bilinear", f"the option 'mode' is {mode!r:.60}; the only one is 'bilinear'.")
    height, width = integers(options, "output_size", least=1, count=2)
    return height, width


def bind(context: Context, node: Node) -> Thunk:
    image, matrix, output = node.inputs[0].data, node.inputs[1].data.reshape(16), node.outputs[0].data
    if not image.size:
        return lambda: output.fill(0)
    (_, rows, columns, channels), (_, height, width, _) = image.shape, output.shape
    pixels, result = image.reshape(-1, channels), output.reshape(-1, channels)
    first, second = (tensor.data for tensor in node.prepared)
    centred = node.version > 1
    across, down = np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)[:, None]
    x, y = np.empty((2, height, width), np.float32)
    inside, within = np.empty((2, height, width), np.bool_)
    outside = np.empty((height, width), np.bool_)
    left, top, right, bottom, index = np.empty((5, height * width), np.intp)

    def locate(position: Array, row: Array, last: int) -> None:
        """Compute one coordinate for every pixel of the output; find out which lie inside the image."""
        a, b, _, shift = row.tolist()
        if centred:
            shift = float(np.float32(shift + (a * 0.5 + b * 0.5 - 0.5)))
        np.add(across * a, down * b, position)
        np.add(position, shift, position)
        for compare, bound in ((np.greater_equal, 0), (np.less_equal, last)):
            compare(position, bound, within)
            np.logical_and(inside, within, inside)

    def split(position: Array, near: Array, far: Array, last: int) -> Array:
        """Pixels on both sides of the position; returns, as a column, how far it is from the first."""
        np.copyto(position, 0, where=outside)
        flat = position.reshape(-1)
        np.copyto(near, flat, casting="unsafe")  # positions are not negative, so this rounds down
        np.subtract(flat, near, flat, casting="unsafe")
        np.add(near, 1, far)
        np.minimum(far, last, out=far)
        return flat[:, None]

    def blend(line: Array, into: Array, other: Array, share: Array, rest: Array) -> None:
        """Mix the pixels left and right of the position, in the line of pixels above it or below it."""
        for side, weight, target in ((left, rest, into), (right, share, other)):
            np.add(line, side, index)
            np.take(pixels, index, 0, target, "clip")  # in range; this mode needs no copy
            np.multiply(target, weight, target)
        np.add(into, other, into)

    def run() -> None:
        inside.fill(True)
        locate(x, matrix[0:4], columns - 1)
        locate(y, matrix[4:8], rows - 1)
        np.logical_not(inside, outside)
        to_right = split(x, left, right, columns - 1)
        to_bottom = split(y, top, bottom, rows - 1)
        np.multiply(top, columns, top)
        np.multiply(bottom, columns, bottom)
        rest = 1 - to_right
        blend(top, result, second, to_right, rest)
        blend(bottom, first, second, to_right, rest)
        np.multiply(result, 1 - to_bottom, result)
        np.multiply(first, to_bottom, first)
        np.add(result, first, result)
        if not inside.all():
            result[outside.reshape(-1)] = 0

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.FLOAT32,))
