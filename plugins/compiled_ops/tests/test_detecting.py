"""Compiled detections answer as the numpy kernel does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers
from plugins.compiled_ops.tests.compiled import is_compiled

from oplet_testing import Spec, one_op_model


def detection(count: int, classes: int, background: int, anchors: Any, **changes: Any) -> bytes:
    options = {
        "max_detections": 7,
        "max_classes_per_detection": 1,
        "detections_per_class": 3,
        "use_regular_nms": False,
        "nms_score_threshold": 0.2,
        "nms_iou_threshold": 0.3,
        "num_classes": classes,
        "y_scale": 10.0,
        "x_scale": 10.0,
        "h_scale": 5.0,
        "w_scale": 5.0,
    }
    inputs = [Spec("float32", [1, count, 4]), Spec("float32", [1, count, classes + background]), anchors]
    content = bytes(flexbuffers.Dumps({**options, **changes}))
    return one_op_model("TFLite_Detection_PostProcess", inputs, [Spec("float32", [1])] * 4, custom_options=content)


@pytest.mark.sweep
@pytest.mark.parametrize("odd", ["", "ties", "zeros", "negative", "nan", "all nan", "infinite"])
@pytest.mark.parametrize("background", [0, 1])
@pytest.mark.parametrize(
    "changes", [{}, {"use_regular_nms": True}, {"nms_score_threshold": 1e-8, "max_detections": 90}, {"nms_score_threshold": -9.0}]
)
def test_detections_agree(changes: dict[str, Any], background: int, odd: str, agree: Callable[..., None]) -> None:
    random = np.random.default_rng(5)
    count, classes = 80, 5
    anchors = np.concatenate([random.uniform(0, 1, (count, 2)), random.uniform(0.2, 0.6, (count, 2))], axis=1)
    boxes = random.normal(size=(1, count, 4)).astype(np.float32)
    scores = (random.permutation(count * (classes + background)).reshape(1, count, -1) / 500).astype(np.float32)
    if odd == "ties":
        scores = np.round(scores * 6) / np.float32(6)
    elif odd == "zeros":
        scores *= np.where(random.random(scores.shape) < 0.8, np.float32(-0.0), np.float32(1))
    elif odd == "negative":
        scores = -scores
    elif odd == "nan":
        scores[random.random(scores.shape) < 0.3] = np.nan
        scores[random.random(scores.shape) < 0.3] = -np.float32(np.nan)
    elif odd == "all nan":
        scores[0, ::2] = np.nan
    elif odd == "infinite":
        scores[0, 1::3] = -np.inf
    model = detection(count, classes, background, anchors.astype(np.float32), **changes)
    assert is_compiled(model)
    agree(model, [boxes, scores])


def test_detections_of_several_classes_are_left_to_numpy() -> None:
    assert not is_compiled(detection(4, 3, 1, np.ones((4, 4), np.float32), max_classes_per_detection=2))
