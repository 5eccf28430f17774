"""MediaPipe's segmentation models give LiteRT's masks."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from tests.places import REAL

from oplet_testing import run_op

pytestmark = pytest.mark.skipif(not REAL.is_dir(), reason="the recorded models are not here")


def read(archive: str, name: str) -> bytes:
    with zipfile.ZipFile(REAL / archive) as file:
        return file.read(name)


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["mp_selfie_segmentation", "mp_selfie_segmentation_landscape"])
def test_the_mask_is_the_recorded_one(name: str) -> None:
    recorded = np.load(io.BytesIO(read("mediapipe.zip", f"{name}/io.npz")))
    [mask] = run_op(read("mediapipe.zip", f"{name}/model.tflite"), recorded["s0_in0"])
    # The mask is a logistic function far below 0: its logarithm is the logit, in which the order of additions shows in the last places.
    got, wanted = (np.log(np.maximum(values, 1e-30)) for values in (mask, recorded["s0_out0_xnn"]))
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("name", "size"), [("mp_selfie_segmentation", (256, 256)), ("mp_selfie_segmentation_landscape", (144, 256))]
)
def test_the_mask_of_a_person_is_litert_s(name: str, size: tuple[int, int], picture_of_a_person: Any) -> None:
    model, x = read("mediapipe.zip", f"{name}/model.tflite"), picture_of_a_person(*size)
    [mask], [theirs] = run_op(model, x), run_op(model, x, interpreter=LiteRT)
    assert mask.max() > 0.9  # not the recordings' noise, in which the model sees nobody
    assert mask.min() < 0.1
    np.testing.assert_allclose(mask, theirs, rtol=0, atol=1e-3)
