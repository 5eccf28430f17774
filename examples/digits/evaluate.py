"""How many of the held-out digits each model of this folder gets right, run with oplet.

pip install oplet scikit-learn
python evaluate.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from oplet import Interpreter

HERE = Path(__file__).resolve().parent
SEED = 7  # the split that train.py makes


def accuracy(model: Path, images: np.ndarray, labels: np.ndarray) -> float:
    """Return the fraction of images, with values in 0..1, that the model classifies correctly."""
    interpreter = Interpreter(model_path=str(model))
    classify = interpreter.get_signature_runner()
    source = classify.get_input_details()["image"]
    if source["dtype"] is np.int8:
        scale, zero_point = source["quantization"]
        images = np.clip(np.round(images / scale) + zero_point, -128, 127).astype(np.int8)
    answers = [classify(image=image[np.newaxis])["probabilities"].argmax() for image in images]
    return float(np.mean(np.array(answers) == labels))


def main() -> None:
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[..., np.newaxis]
    _, images, _, labels = train_test_split(images, digits.target, test_size=0.2, random_state=SEED, stratify=digits.target)
    for model in sorted(HERE.glob("*.tflite")):
        print(f"{model.name}: {accuracy(model, images, labels):.3f} of {len(images)} digits right")


if __name__ == "__main__":
    main()
