"""PosenetDecoderOp: the poses in the outputs of PoseNet, and with a fourth input the masks of persons of BodyPix.

Outputs are float32: keypoints (y and x, in pixels), their scores, the poses' scores, the number of poses, and the masks. What is beyond
that number is 0.

Numerics: coral/pose_estimation/posenet_decoder_op.cc of libcoral
"""

from __future__ import annotations

import numpy as np

from oplet import Context, Node, Registration, Tensor, TensorType, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.options import integer, number
from oplet_coral_ops.masks import write_masks
from oplet_coral_ops.poses import EDGES, KEYPOINTS, Maps, Settings, find_poses

_TYPES = (TensorType.UINT8, TensorType.FLOAT32)
_CHANNELS = (KEYPOINTS, 2 * KEYPOINTS, 4 * len(EDGES), 2 * KEYPOINTS)


def prepare(context: Context, node: Node) -> None:
    ensure(
        (len(node.inputs), len(node.outputs)) in ((3, 4), (4, 5)),
        "it must have 3 inputs and 4 outputs, or 4 inputs and 5 outputs, which are masks.",
    )
    sources: list[Tensor] = []
    for position, channels in enumerate(_CHANNELS[: len(node.inputs)]):
        source = node.inputs[position]
        ensure(source is not None, f"input {position} is left out (-1) and may not be.")
        ensure_type(source, *_TYPES)
        wanted = f"the shape 1 x height x width x {channels}"
        if position in (1, 2):
            wanted += f", and the height and width of {sources[0]}"
        fits = source.ndim == 4 and (source.shape[0], source.shape[3]) == (1, channels)
        ensure(fits and (position in (0, 3) or source.shape[1:3] == sources[0].shape[1:3]), f"{source} must have {wanted}.")
        sources.append(source)
    options = node.custom_map()
    most, stride = integer(options, "max_detections"), integer(options, "stride", least=1)
    with np.errstate(over="ignore"):
        radius = np.float32(number(options, "nms_radius")) / np.float32(stride)
        node.prepared = Settings(most, np.float32(number(options, "score_threshold")), stride, radius)
    shapes = [(1, most, KEYPOINTS, 2), (1, most, KEYPOINTS), (1, most), (1,)]
    if len(sources) == 4:
        shapes.append((1, most, *sources[3].shape[1:3]))
    for output, shape in zip(node.outputs, shapes):
        context.set_type(output, TensorType.FLOAT32)
        context.resize_tensor(output, shape)
    for source in sources:
        context.add_temporary(node, source.shape)
    context.add_temporary(node, (2, *sources[0].shape[1:]), TensorType.BOOL)


def bind(context: Context, node: Node) -> Thunk:
    settings: Settings = node.prepared
    sources = [tensor for tensor in node.inputs if tensor is not None]
    *floats, mask = (tensor.data for tensor in node.temporaries)
    points, keypoint_scores, scores, count, *masks = (tensor.data for tensor in node.outputs)
    nearer = np.float32(1 / settings.stride)  # offsets come in pixels
    scales = [np.float32(1), nearer, nearer, nearer]

    def run() -> None:
        with np.errstate(all="ignore"):
            for source, values, scale in zip(sources, floats, scales):
                _dequantize(source, values, scale)
            maps = Maps(*(values[0] for values in floats[:3]))
            poses = find_poses(maps, settings, mask) if maps.scores.size else []
            for output in (points, keypoint_scores, scores):
                output.fill(0)
            for place, pose in enumerate(poses):
                points[0, place] = pose.points * np.float32(settings.stride)
                keypoint_scores[0, place], scores[0, place] = pose.scores, pose.score
            count[0] = len(poses)
            if masks:
                write_masks(floats[3][0], points[0, : len(poses)], settings.stride, masks[0][0])

    return run


def _dequantize(source: Tensor, values: Array, scale: np.float32) -> None:
    """Write the values in float32, times `scale`."""
    np.copyto(values, source.data)
    if source.type == TensorType.UINT8:
        np.subtract(values, np.float32(source.zero_point), values)
        scale = np.float32(source.scale) * scale
    np.multiply(values, scale, values)


REGISTRATION = Registration(
    prepare=prepare,
    bind=bind,
    pure=True,
    types=_TYPES,
    differences="What is beyond the number of poses is 0; Coral's own kernel leaves it unwritten.",
)
