"""TransformLandmarks, compiled: points transformed by a matrix."""

from __future__ import annotations

from oplet import Context, Node, NodeLimits, TensorType, decline
from oplet_compiled_ops.library.kernels import kernel
from oplet_compiled_ops.library.memory import flat
from oplet_compiled_ops.overriding import Bind, Thunk, override
from oplet_compiled_ops.threads.splitting import WORTH_VALUES, cut, each
from oplet_compiled_ops.threads.team import Step, ready, thunk
from oplet_mediapipe_ops.ops.transform_landmarks import REGISTRATION as BUILTIN


@kernel("void(f4[:,::1], f4[::1], f4[:,::1], f4, i8, i8)")
def MOVE(points, matrix, moved, scale, first, last):  # type: ignore[no-untyped-def]
    """Transform points by the first two rows of a 4 x 4 matrix, whose translation is first multiplied by `scale`.

    Args:
        points: (points, 2 or more): x and y of each are transformed, what follows is copied.
        matrix: the matrix, flat.
        moved: receives the transformed points.
        scale: the factor of the translation.
        first: the first point.
        last: the point after the last one.
    """
    right, lower = matrix[3] * scale, matrix[7] * scale
    for row in range(first, last):
        x, y = points[row, 0], points[row, 1]
        moved[row, 0] = x * matrix[0] + y * matrix[1] + right
        moved[row, 1] = x * matrix[4] + y * matrix[5] + lower
        for i in range(2, points.shape[1]):
            moved[row, i] = points[row, i]


def plan(context: Context, node: Node) -> Bind:
    dimensions, scale = node.prepared
    points, output = node.inputs[0], node.outputs[0]
    if not points.size:
        decline("there is nothing to compute.")
    ready(MOVE)
    count = points.size // dimensions
    ranges = cut(count, points.size // WORTH_VALUES, context.num_threads)

    def bind() -> Thunk:
        rows = (tensor.data.reshape(count, dimensions) for tensor in (points, output))
        arrays = next(rows), flat(node.inputs[1].data), next(rows)
        return thunk([Step(MOVE, each(ranges, lambda some, _: (*arrays, scale, *some)))], context.num_threads)

    return bind


REGISTRATION = override(BUILTIN, plan, NodeLimits(inputs=[[TensorType.FLOAT32]] * 2))
