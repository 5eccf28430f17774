"""tflite-micro's audio preprocessor, whole: what feeds keyword spotting."""

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np
import pytest
from tests.places import REAL

from oplet import Interpreter
from oplet_testing import invoke_steps

MODELS = REAL / "unrunnable.zip"


def model(kind: str) -> bytes:
    if not MODELS.exists():
        pytest.skip("the models lie outside the project and are not here")
    with zipfile.ZipFile(MODELS) as archive:
        return archive.read(f"tflm_models__tflm_audio_preprocessor_{kind}/model.tflite")


def frames(count: int) -> list[np.ndarray[Any, Any]]:
    """A chirp with noise, in frames of 30 ms at 16 kHz, as int16."""
    random = np.random.default_rng(0)
    time = np.arange(480 * count) / 16000
    sound = 9000 * np.sin(2 * np.pi * (200 + 1500 * time) * time) + random.normal(0, 700, time.size)
    return list(sound.astype(np.int16).reshape(count, 1, 480))


def features(content: bytes, sound: list[np.ndarray[Any, Any]]) -> list[np.ndarray[Any, Any]]:
    return [found for [found] in invoke_steps(Interpreter(model_content=content), [[frame] for frame in sound])]


def test_the_int8_preprocessor_gives_tflite_micro_s_integers() -> None:
    runtime = pytest.importorskip("tflite_micro", reason="tflite-micro is what the integers are compared with").runtime
    content, sound = model("int8"), frames(12)
    micro = runtime.Interpreter.from_bytes(content)
    for frame, ours in zip(sound, features(content, sound)):
        micro.set_input(frame, 0)
        micro.invoke()
        np.testing.assert_array_equal(ours, micro.get_output(0))


def test_the_float_preprocessor_runs_and_follows_the_int8_one() -> None:
    sound = frames(12)
    whole, quantized = features(model("float"), sound), features(model("int8"), sound)
    for exact, rounded in zip(whole, quantized):
        assert np.isfinite(exact).all()
        assert np.corrcoef(exact.ravel(), rounded.ravel().astype(float))[0, 1] > 0.99
