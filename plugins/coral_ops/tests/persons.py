"""What a net would say of some persons: maps of scores and offsets, exact ones, ones with noise and nonsense."""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet_testing import one_op_model
from oplet_testing.one_op import Spec

__all__ = ["EDGES", "decoder", "maps_of", "nonsense", "person", "quantized"]

Array = np.ndarray[Any, Any]
NAMES = (
    "nose", "left eye", "right eye", "left ear", "right ear", "left shoulder", "right shoulder", "left elbow", "right elbow", "left wrist",
    "right wrist", "left hip", "right hip", "left knee", "right knee", "left ankle", "right ankle",
)  # fmt: skip
#: Joints, from the nose outwards, as libcoral lists them.
EDGES = [
    (NAMES.index(parent), NAMES.index(child))
    for parent, child in (
        ("nose", "left eye"), ("left eye", "left ear"), ("nose", "right eye"), ("right eye", "right ear"), ("nose", "left shoulder"),
        ("left shoulder", "left elbow"), ("left elbow", "left wrist"), ("left shoulder", "left hip"), ("left hip", "left knee"),
        ("left knee", "left ankle"), ("nose", "right shoulder"), ("right shoulder", "right elbow"), ("right elbow", "right wrist"),
        ("right shoulder", "right hip"), ("right hip", "right knee"), ("right knee", "right ankle"),
    )
]  # fmt: skip
STRIDE = 16


def person(y: float, x: float, size: float) -> Array:
    """Keypoints, in pixels, of somebody who stands."""
    places = [
        (0, 0), (-0.1, -0.1), (-0.1, 0.1), (0, -0.2), (0, 0.2), (0.5, -0.4), (0.5, 0.4), (1.1, -0.6), (1.1, 0.6), (1.6, -0.5), (1.6, 0.5),
        (1.7, -0.3), (1.7, 0.3), (2.6, -0.3), (2.6, 0.3), (3.4, -0.3), (3.4, 0.3),
    ]  # fmt: skip
    return np.array([y, x], np.float32) + size * np.array(places, np.float32)


def maps_of(persons: list[Array], height: int, width: int, *, far: bool = False, noise: float = 0, seed: int = 0) -> list[Array]:
    """Scores, near and middle offsets (and far ones) of these persons, in pixels: each point follows the person next to it."""
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[:height, :width].astype(np.float32) * STRIDE
    distances = np.array(
        [[np.hypot(rows - y, columns - x) for y, x in keypoints] for keypoints in persons]
    )  # person, keypoint, y, x
    scores = np.moveaxis(6 - distances.min(0) / 8, 0, -1)
    near, middle = np.zeros((2, 17, height, width)), np.zeros((4, 16, height, width))
    for keypoint in range(17):
        nearest = distances[:, keypoint].argmin(0)
        at = np.array([each[keypoint] for each in persons])[nearest]
        near[:, keypoint] = at[..., 0] - rows, at[..., 1] - columns
    for edge, (parent, child) in enumerate(EDGES):
        for first, (begin, end) in ((0, (parent, child)), (2, (child, parent))):
            nearest = distances[:, begin].argmin(0)
            at = np.array([each[end] for each in persons])[nearest]
            middle[first : first + 2, edge] = at[..., 0] - rows, at[..., 1] - columns
    whose = np.array([np.hypot(rows - each[:, 0].mean(), columns - each[:, 1].mean()) for each in persons]).argmin(0)
    long = np.array([[[each[k, axis] for each in persons] for k in range(17)] for axis in (0, 1)])[..., whose]
    long -= np.array([rows, columns])[:, None]
    found = [scores, *(np.moveaxis(each.reshape(-1, height, width), 0, -1) for each in (near, middle, long))]
    return [(each + noise * random.normal(size=each.shape)).astype(np.float32)[None] for each in found[: 4 if far else 3]]


def nonsense(height: int, width: int, *, far: bool = False, seed: int = 0) -> list[Array]:
    """Maps of a net that was never trained: many candidates, many equal scores, and values that are no numbers."""
    random = np.random.default_rng(seed)
    found = [random.integers(-9, 3, (1, height, width, 17)).astype(np.float32)]
    for channels in (34, 64, 34)[: 3 if far else 2]:
        found.append((random.normal(size=(1, height, width, channels)) * 60).astype(np.float32))
    for each in found[1:]:
        each.flat[random.integers(0, each.size, 40)] = random.choice([np.inf, -np.inf, np.nan, 1e38], 40)
    return found


def quantized(maps: list[Array]) -> tuple[list[Array], list[tuple[float, int]]]:
    """The maps as uint8, with their scales and zero points."""
    found, scales = [], []
    for each in maps:
        low, high = (each.min(), each.max()) if each.size else (0, 1)
        scale = float(max(1e-3, (high - low) / 255))
        zero = int(np.clip(np.round(-low / scale), 0, 255))
        found.append(np.clip(np.round(each / scale) + zero, 0, 255).astype(np.uint8))
        scales.append((scale, zero))
    return found, scales


def decoder(maps: list[Array], scales: list[tuple[float, int]] | None = None, **options: Any) -> bytes:
    """A model of one decoder for these maps."""
    given = {"max_detections": 10, "score_threshold": 0.5, "stride": STRIDE, "nms_radius": 20.0, **options}
    given = {key: value for key, value in given.items() if value is not None}
    inputs = [Spec(each.dtype, each.shape, *(() if scales is None else scales[number])) for number, each in enumerate(maps)]
    shapes = [(1, 1, 17, 2), (1, 1, 17), (1, 1), (1,), (1, 1, 33, 33)][: len(maps) + 1]
    return one_op_model("PosenetDecoderOp", inputs, [Spec("float32", shape) for shape in shapes], custom_options=given)
