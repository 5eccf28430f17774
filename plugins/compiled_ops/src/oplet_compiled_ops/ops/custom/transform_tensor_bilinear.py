"""TransformTensorBilinear, compiled: the part of an image that a matrix selects, in the numpy kernel's order of operations."""

from __future__ import annotations

from math import prod

import numpy as np

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet_compiled_ops.library.kernels import kernel
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each
from oplet_compiled_ops.threads.team import Step, ready, thunk
from oplet_mediapipe_ops.ops.transform_tensor_bilinear import REGISTRATION as BUILTIN

_ZERO, _ONE = np.float32(0), np.float32(1)
#: The overhead of a pixel, in values.
_PIXEL = 8


@kernel("void(f4[:,:,::1], f4[::1], f4[:,:,::1], i8, i8, f8)")
def SAMPLE(image, matrix, output, first, last, centre):  # type: ignore[no-untyped-def]
    """Sample an image bilinearly at the places to which a matrix maps the pixels of the output rows `first` to `last`; 0 outside of it.

    Args:
        image: (rows, columns, channels).
        matrix: a 4 x 4 matrix, flat, whose first two rows map (x, y, 0, 1) of the output to x and y in the image.
        output: (rows, columns, channels).
        first: the first row.
        last: the row after the last one.
        centre: the position of a pixel's sample point within the pixel, along both axes: 0 for its corner, 0.5 for its centre.
    """
    across, up, turned, down = matrix[0], matrix[1], matrix[4], matrix[5]
    right = np.float32(np.float64(matrix[3]) + (np.float64(across) * centre + np.float64(up) * centre - centre))
    lower = np.float32(np.float64(matrix[7]) + (np.float64(turned) * centre + np.float64(down) * centre - centre))
    rows, columns, channels = image.shape
    most_x, most_y = np.float32(columns - 1), np.float32(rows - 1)
    for i in range(first, last):
        for j in range(output.shape[1]):
            target = output[i, j]
            x = (np.float32(j) * across + np.float32(i) * up) + right
            y = (np.float32(j) * turned + np.float32(i) * down) + lower
            if not (x >= _ZERO and y >= _ZERO and x <= most_x and y <= most_y):  # NaN is outside
                for c in range(channels):
                    target[c] = _ZERO
                continue
            left, top = np.int64(x), np.int64(y)
            share_x, share_y = x - np.float32(left), y - np.float32(top)
            rest_x, rest_y = _ONE - share_x, _ONE - share_y
            right_of, below = min(left + 1, columns - 1), min(top + 1, rows - 1)
            a, b = image[top, left], image[top, right_of]
            d, e = image[below, left], image[below, right_of]
            for c in range(channels):
                upper = (a[c] * rest_x + b[c] * share_x) * rest_y
                target[c] = upper + (d[c] * rest_x + e[c] * share_x) * share_y


def plan(context: Context, node: Node) -> Bind:
    image, output = node.inputs[0], node.outputs[0]
    if not image.size or not output.size:
        decline("there is nothing to compute.")
    ready(SAMPLE)
    height = output.shape[1]
    ranges = cut(height, prod((*output.shape[:3], output.shape[3] + _PIXEL)) // WORTH_VALUES, context.num_threads)
    centre = 0.5 if node.version > 1 else 0.0

    def bind() -> Thunk:
        arrays = image.data[0], flat(node.inputs[1].data), output.data[0]
        return thunk([Step(SAMPLE, each(ranges, lambda some, _: (*arrays, *some, centre)))], context.num_threads)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32]] * 2))
