"""TransformLandmarks: transforms points of two or three coordinates by a matrix; a third coordinate is unchanged.

Version 1 takes [1, height, width, channels] with several points side by side in the channels and scales the matrix's
shift; version 2 takes [1, points, 2 or 3].

Numerics: mediapipe/util/tflite/operations/transform_landmarks.cc
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Thunk
from oplet.kernels.operands import ensure_operands
from oplet.kernels.options import integer, number
from oplet_mediapipe_ops.nodes import ensure_matrix


def prepare(context: Context, node: Node) -> None:
    ensure_operands(node, 2, 1)
    (points, matrix), output = node.inputs, node.outputs[0]
    ensure_type(points, TensorType.FLOAT32)
    ensure_type(output, TensorType.FLOAT32)
    rank = 4 if node.version == 1 else 3
    ensure(points.ndim == rank and points.shape[0] == 1, f"{points} must have {rank} dimensions, the first of them 1.")
    ensure_matrix(matrix)
    dimensions, scale = points.shape[-1], 1.0
    if node.version == 1:
        options = node.custom_map()
        dimensions = integer(options, "dimensions", least=2, default=3)
        scale = number(options, "scale", default=1.0)
        ensure(scale != 0, "the option 'scale' must not be 0.")
    ensure(dimensions in (2, 3), f"{points} holds points of {dimensions} coordinates; {node.op_name} moves points of 2 or 3.")
    ensure(points.shape[-1] % dimensions == 0, f"{points} does not hold whole points of {dimensions} coordinates.")
    context.resize_tensor(output, points.shape)
    node.prepared = dimensions, scale


def bind(context: Context, node: Node) -> Thunk:
    dimensions, scale = node.prepared
    points, moved = (array.reshape(-1, dimensions) for array in (node.inputs[0].data, node.outputs[0].data))
    rows = node.inputs[1].data.reshape(4, 4)[:2]
    turn, shift = rows[:, :2].T, rows[:, 3]
    flat, moved_flat = points[:, :2], moved[:, :2]
    depth, moved_depth = points[:, 2:], moved[:, 2:]

    def run() -> None:
        np.matmul(flat, turn, moved_flat)
        np.add(moved_flat, shift * scale, moved_flat)
        np.copyto(moved_depth, depth)

    return run


REGISTRATION = Registration(prepare=prepare, bind=bind, pure=True, types=(TensorType.FLOAT32,))
