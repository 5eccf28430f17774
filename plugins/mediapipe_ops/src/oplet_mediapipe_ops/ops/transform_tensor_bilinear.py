"""TransformTensorBilinear: warps an image by a transformation matrix, sampled bilinearly.

The matrix maps the output's positions to the input's. In version 1 a position is a pixel's corner, in version 2 its
centre. What lies outside the image is zero.

Numerics: mediapipe/util/tflite/operations/transform_tensor_bilinear.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.options import integer, integers
from oplet_mediapipe_ops.nodes import ensure_matrix


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 1)
    (image, matrix), output = node.inputs, node.outputs[0]
    ensure_type(image, TensorType.FLOAT32)
    ensure_type(output, TensorType.FLOAT32)
    ensure(image.ndim == 4 and image.shape[0] == 1, f"{image} must be one image: [1, height, width, channels].")
    ensure_matrix(matrix)
    height, width = _output_size(node)
    context.resize_tensor(output, (1, height, width, image.shape[3]))
    node.prepared = context.add_temporary(node, (2, 2, height * width, image.shape[3]))


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
    corners = node.prepared.data
    # Everything holds x and y, one behind the other, and is computed for both at once.
    along = matrix[:8].reshape(2, 4)
    slopes = along[:, 0].reshape(2, 1, 1), along[:, 1].reshape(2, 1, 1)
    centre = 0.5 if node.version > 1 else 0.0
    shift = np.empty((2, 1, 1), np.float32)
    across, down = np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)[:, None]
    across_moved, down_moved = np.empty((2, 1, width), np.float32), np.empty((2, height, 1), np.float32)
    position = np.empty((2, height, width), np.float32)
    zero, last = np.float32(0), np.array([columns - 1, rows - 1], np.float32).reshape(2, 1, 1)
    not_before, not_behind = np.empty((2, 2, height, width), np.bool_)
    inside, outside = np.empty((2, height, width), np.bool_)
    # Of the pixels on both sides of a position: how far it is from the other one, and where they are, in x and in y.
    weights = np.empty((2, 2, height * width), np.float32)
    sides = np.empty((2, 2, height * width), np.intp)
    one, furthest = np.float32(1), np.array([[columns - 1], [rows - 1]], np.intp)
    flat, nowhere = position.reshape(2, -1), outside.reshape(-1)
    whole = np.empty_like(flat)
    (rest, share), (near, far) = weights, sides
    left_right, top_bottom = sides[None, :, 0], sides[:, None, 1]
    index = np.empty((2, 2, height * width), np.intp)
    flat_index, gathered = index.reshape(-1), corners.reshape(-1, channels)
    weights_x, weights_y = weights[None, :, 0, :, None], weights[:, 1, :, None]
    (left, right), (above, below) = (corners[:, 0], corners[:, 1]), (corners[0, 0], corners[1, 0])

    def run() -> None:
        for number, (a, b, _, offset) in enumerate(along.tolist()):
            shift[number] = offset + (a * centre + b * centre - centre)
        np.multiply(across, slopes[0], across_moved)
        np.multiply(down, slopes[1], down_moved)
        np.add(across_moved, down_moved, position)
        np.add(position, shift, position)
        np.greater_equal(position, zero, not_before)
        np.less_equal(position, last, not_behind)
        np.logical_and(not_before, not_behind, not_before)
        np.logical_and(not_before[0], not_before[1], inside)
        everywhere = inside.all()
        if not everywhere:
            np.logical_not(inside, outside)
            np.copyto(position, zero, where=outside)
        np.copyto(near, flat, casting="unsafe")  # positions are not negative, so this rounds down
        np.copyto(whole, near, casting="unsafe")
        np.subtract(flat, whole, share)
        np.subtract(one, share, rest)
        np.add(near, 1, far)
        np.minimum(far, furthest, out=far)
        np.multiply(sides[:, 1], columns, sides[:, 1])
        np.add(top_bottom, left_right, index)
        np.take(pixels, flat_index, 0, gathered, "clip")  # in range; this mode needs no copy
        np.multiply(corners, weights_x, corners)
        np.add(left, right, left)
        np.multiply(left, weights_y, left)
        np.add(above, below, result)
        if not everywhere:
            result[nowhere] = 0

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.FLOAT32,))
