"""Operators on images give what TensorFlow gives, and refuse what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from plugins.flex_ops.tests.sweeps import Case, difference, dtype_of

from oplet import TensorType as T

rng = np.random.default_rng(11)


def picture(*shape: int, type: T = T.FLOAT32) -> Any:
    kind = dtype_of(type)
    return (rng.random(shape) * (200 if kind.kind in "iu" else 1)).astype(kind)


def ints(*given: int) -> Any:
    return np.array(given, np.int32)


def floats(*given: float) -> Any:
    return np.array(given, np.float32)


def resizing() -> Iterator[Case]:
    sizes = [((5, 7), (9, 4)), ((5, 7), (5, 7)), ((1, 6), (4, 1)), ((8, 8), (3, 17)), ((3, 3), (0, 3)), ((0, 3), (2, 2))]
    for type in (T.FLOAT32, T.UINT8, T.FLOAT16):
        for size, out in sizes:
            x = picture(2, *size, 3, type=type)
            for align, half in ((False, False), (True, False), (False, True), (True, True)):
                given = {"T": type, "align_corners": align, "half_pixel_centers": half}
                for op in ("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"):
                    yield Case(op, [x, ints(*out)], given)
                if not half:
                    yield Case("ResizeArea", [x, ints(*out)], {"T": type, "align_corners": align})


def scaling() -> Iterator[Case]:
    kernels = ("lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic")
    for kernel in kernels:
        for antialias in (False, True):
            for scale, shift in (
                ((2.0, 0.5), (0.0, 0.0)),
                ((0.3, 1.7), (1.5, -2.25)),
                ((1.0, 1.0), (40.0, 0.0)),
                ((-1.0, 1.0), (0.0, 0.0)),
            ):
                inputs = [picture(2, 8, 9, 3), ints(7, 10), floats(*scale), floats(*shift)]
                yield Case("ScaleAndTranslate", inputs, {"T": T.FLOAT32, "kernel_type": kernel, "antialias": antialias})


def crops() -> Iterator[Case]:
    boxes = np.concatenate([rng.random((4, 4)), [[-0.5, 0.2, 0.7, 1.4], [0.9, 0.8, 0.1, 0.1]]]).astype(np.float32)
    for type in (T.FLOAT32, T.UINT8, T.FLOAT64):
        for method in ("bilinear", "nearest"):
            for out in ((3, 5), (1, 1), (9, 2), (0, 2)):
                for numbers in ([0, 1, 1, 0, 1, 0], [0, 1, 2, 0, 0, 0]):
                    inputs = [picture(2, 6, 7, 3, type=type), boxes, ints(*numbers), ints(*out)]
                    yield Case("CropAndResize", inputs, {"T": type, "method": method, "extrapolation_value": -3.5})
    yield Case("CropAndResize", [picture(1, 2, 2, 1), np.zeros((0, 4), np.float32), ints(), ints(2, 2)], {"T": T.FLOAT32})
    for version in ("", "V2"):
        for centered in (False, True):
            for normalized in (False, True):
                for offsets in ([[0, 0], [0.3, -0.4]], [[1, 1], [-1, 0.7]], [[2, 3], [-3, 9]], [[20, 3], [0, -30]]):
                    given = {"centered": centered, "normalized": normalized, "uniform_noise": False, "noise": "zero"}
                    inputs = [picture(2, 8, 9, 3), ints(3, 4), np.array(offsets, np.float32)]
                    yield Case(f"ExtractGlimpse{version}", inputs, given)


def patches() -> Iterator[Case]:
    for type in (T.FLOAT32, T.UINT8, T.COMPLEX64):
        for sizes, strides, rates in (
            ((2, 3), (1, 2), (1, 1)),
            ((3, 3), (2, 2), (2, 1)),
            ((1, 1), (3, 1), (1, 1)),
            ((9, 9), (1, 1), (1, 1)),
        ):
            for padding in ("SAME", "VALID"):
                given = {
                    "T": type,
                    "ksizes": [1, *sizes, 1],
                    "strides": [1, *strides, 1],
                    "rates": [1, *rates, 1],
                    "padding": padding,
                }
                yield Case("ExtractImagePatches", [picture(2, 7, 8, 3, type=type)], given)
    for sizes, strides in (((2, 3, 1), (1, 2, 1)), ((3, 3, 3), (2, 2, 2)), ((9, 1, 1), (1, 1, 1))):
        for padding in ("SAME", "VALID"):
            given = {"T": T.FLOAT32, "ksizes": [1, *sizes, 1], "strides": [1, *strides, 1], "padding": padding}
            yield Case("ExtractVolumePatches", [picture(2, 5, 6, 7, 2)], given)


def colours() -> Iterator[Case]:
    for type in (T.FLOAT32, T.FLOAT64):
        for shape in ((2, 9, 8, 3), (5, 3), (3,), (4, 2), (0, 3)):
            yield Case("RGBToHSV", [picture(*shape, type=type)], {"T": type})
            yield Case("HSVToRGB", [picture(*shape, type=type)], {"T": type})
    grey = np.array([[0, 0, 0], [1, 1, 1], [0.5, 0.5, 0.5], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]], np.float32)
    yield Case("RGBToHSV", [grey], {"T": T.FLOAT32})
    for factor in (0.0, 0.5, 2.0, -1.0):
        for shape in ((2, 5, 6, 3), (4, 5, 2), (2, 3)):
            yield Case("AdjustContrastv2", [picture(*shape), np.float32(factor)], {"T": T.FLOAT32})
        for op in ("AdjustHue", "AdjustSaturation"):
            for x in (picture(2, 5, 6, 3), grey[None], picture(4, 4, 2)):
                yield Case(op, [x, np.float32(factor)], {"T": T.FLOAT32})
    for delta in (0.25, 0.99, -0.3, 1.7):
        yield Case("AdjustHue", [picture(2, 9, 6, 3), np.float32(delta)], {"T": T.FLOAT32})


def transforms() -> Iterator[Case]:
    for type in (T.FLOAT32, T.UINT8, T.FLOAT64):
        for interpolation in ("NEAREST", "BILINEAR"):
            for mode in ("CONSTANT", "REFLECT", "WRAP", "NEAREST"):
                for size in ((6, 7), (9, 4), (0, 3)):
                    affine = np.concatenate([rng.normal(size=(2, 6)) * [1, 0.4, 3, 0.4, 1, 3], np.zeros((2, 2))], 1)
                    affine[1, 6:] = 0.013, -0.021
                    matrices = affine.astype(np.float32)
                    given = {"dtype": type, "interpolation": interpolation, "fill_mode": mode}
                    x = picture(2, 6, 7, 2, type=type)
                    yield Case("ImageProjectiveTransformV2", [x, matrices, ints(*size)], given)
                    yield Case("ImageProjectiveTransformV3", [x, matrices[:1], ints(*size), np.float32(5)], given)


def drawings() -> Iterator[Case]:
    boxes = (rng.random((2, 12, 4)) * 1.6 - 0.3).astype(np.float32)
    for depth in (1, 3, 4, 2):
        yield Case("DrawBoundingBoxes", [picture(2, 12, 15, depth), boxes], {"T": T.FLOAT32})
        for colours in (rng.random((3, depth)), np.zeros((0, depth)), np.zeros((0, 0))):
            inputs = [picture(2, 12, 15, depth), boxes, colours.astype(np.float32)]
            yield Case("DrawBoundingBoxesV2", inputs, {"T": T.FLOAT32})


def boxes_of(count: int) -> Any:
    corners = rng.random((count, 2))
    return np.concatenate([corners, corners + rng.random((count, 2)) * 0.5], 1).astype(np.float32)


def suppression() -> Iterator[Case]:
    for count in (30, 1, 0):
        boxes = boxes_of(count)
        boxes[::5] = boxes[::5, [2, 3, 0, 1]]
        scores = (rng.integers(0, 12, count) / 12).astype(np.float32)
        for most in (0, 5, 100, -1):
            for limit in (0.0, 0.3, 0.5, 1.0, 1.5):
                size, threshold = ints(most)[0], np.float32(limit)
                given = {"T": T.FLOAT32, "T_threshold": T.FLOAT32}
                yield Case("NonMaxSuppression", [boxes, scores, size], {"iou_threshold": limit})
                yield Case("NonMaxSuppressionV2", [boxes, scores, size, threshold], given)
                for least in (-np.inf, 0.2):
                    inputs = [boxes, scores, size, threshold, np.float32(least)]
                    yield Case("NonMaxSuppressionV3", inputs, given)
                    for pad in (False, True):
                        yield Case("NonMaxSuppressionV4", inputs, {**given, "pad_to_max_output_size": pad}, 2)
                        for sigma in (0.0, 0.5):
                            more = {"T": T.FLOAT32, "pad_to_max_output_size": pad}
                            yield Case("NonMaxSuppressionV5", [*inputs, np.float32(sigma)], more, 3)
    shared = rng.random((12, 12)).astype(np.float32)
    for most in (3, 20):
        inputs = [shared, rng.random(12).astype(np.float32), ints(most)[0], np.float32(0.6), np.float32(0.1)]
        yield Case("NonMaxSuppressionWithOverlaps", inputs, {})
    for classes, shared_boxes in ((1, True), (3, True), (3, False)):
        for per_class, total in ((4, 10), (100, 5), (3, 50), (0, 5)):
            for pad in (False, True):
                boxes = np.stack([np.stack([boxes_of(20) for _ in range(1 if shared_boxes else classes)], 1) for _ in range(2)])
                scores = rng.random((2, 20, classes)).astype(np.float32)
                inputs = [boxes * 1.2, scores, ints(per_class)[0], ints(total)[0], np.float32(0.4), np.float32(0.2)]
                for clip in (False, True):
                    yield Case("CombinedNonMaxSuppression", inputs, {"pad_per_class": pad, "clip_boxes": clip}, 4)


SWEEPS = [resizing, scaling, crops, patches, colours, transforms, drawings, suppression]


@pytest.mark.sweep
@pytest.mark.parametrize("cases", SWEEPS)
def test_they_agree_with_tensorflow(cases: Callable[[], Iterator[Case]]) -> None:
    assert max(difference(case) for case in cases()) < 1e-5
