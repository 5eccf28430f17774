"""The custom operators of MediaPipe's models, in numpy.

Their modules, in `oplet_mediapipe_ops.ops`, are imported when a model needs them.
"""

from __future__ import annotations

from oplet import MutableOpResolver, Node, Work, WorkTable, hookimpl

#: Precedence: after compiled kernels of the same operators, which take these for what they decline.
OPLET_TIER = "builtin"

_OPS = "oplet_mediapipe_ops.ops"

#: Name, first and last version, and the module of each operator; where a module has several, "module:NAME".
OPS: tuple[tuple[str, int, int, str], ...] = (
    ("Convolution2DTransposeBias", 1, 1, "convolution_2d_transpose_bias"),
    ("Landmarks2TransformMatrix", 1, 1, "landmarks_2_transform_matrix_v1"),
    ("Landmarks2TransformMatrix", 2, 2, "landmarks_2_transform_matrix_v2"),
    ("LiteRtMaxUnpooling2D", 1, 1, "pooling:LITERT_MAX_UNPOOLING"),
    ("MaxPoolingWithArgmax2D", 1, 1, "pooling:MAX_POOLING"),
    ("MaxUnpooling2D", 1, 1, "pooling:MAX_UNPOOLING"),
    ("TransformLandmarks", 1, 2, "transform_landmarks"),
    # Version 1 of TransformTensorBilinear is called TransformTensor in the models that have it.
    ("TransformTensor", 1, 1, "transform_tensor_bilinear"),
    ("TransformTensorBilinear", 1, 2, "transform_tensor_bilinear"),
)


@hookimpl
def register_ops(resolver: MutableOpResolver) -> None:
    """Register the operators with the resolver, under their custom-op names in models."""
    for name, first, last, module in OPS:
        resolver.add_custom(name, f"{_OPS}.{module}" + ("" if ":" in module else ":REGISTRATION"), first, last)


@hookimpl
def register_work(table: WorkTable) -> None:
    """Register the functions that count the operators' work for profiles."""
    table.add("Convolution2DTransposeBias", _transposed_convolution)
    table.add("MaxPoolingWithArgmax2D", lambda node: Work(operations=node.inputs[0].size))
    table.add(["LiteRtMaxUnpooling2D", "MaxUnpooling2D"], lambda node: Work())


def _transposed_convolution(node: Node) -> Work:
    """Count a transposed convolution's work: every input value is multiplied with its channel's weights."""
    source, weights = node.inputs[:2]
    filters, rows, columns, _ = weights.shape
    return Work(macs=source.size * filters * rows * columns)
