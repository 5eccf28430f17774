"""Train a small digit classifier and convert it: the two models and the pictures in this folder come from here.

The data are scikit-learn's 1797 handwritten digits of 8x8 pixels, so nothing is downloaded. Needs
`pip install tensorflow scikit-learn pillow`, takes a minute, and prints the accuracy of the trained network and of both
converted models on the digits that were held out.

    python train.py [--out FOLDER]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

SEED = 7
EPOCHS = 60
PICTURE_SIZE = 160
LABELS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def load_data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Images in 0..1 as [count, 8, 8, 1], and labels: those to train on, then those held out."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[..., np.newaxis]
    train_x, test_x, train_y, test_y = train_test_split(
        images, digits.target, test_size=0.2, random_state=SEED, stratify=digits.target
    )
    return train_x, train_y, test_x, test_y


def shifted(images: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Each image moved by up to one pixel, so that the network does not count on a digit's exact place."""
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    moves = random.integers(0, 3, size=(len(images), 2))
    return np.stack([image[y : y + 8, x : x + 8] for image, (y, x) in zip(padded, moves)])


def build() -> tf.keras.Model:
    """Convolution, depthwise separable convolution, two poolings, dense, softmax: about 8000 weights."""
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Input((8, 8, 1)),
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.DepthwiseConv2D(3, padding="same", activation="relu"),
            layers.Conv2D(32, 1, activation="relu"),
            layers.AveragePooling2D(2),
            layers.Flatten(),
            layers.Dropout(0.2),
            layers.Dense(48, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )


def train(model: tf.keras.Model, images: np.ndarray, labels: np.ndarray) -> None:
    """Adam with a learning rate that falls to zero."""
    random = np.random.default_rng(SEED)
    many = np.concatenate([images] + [shifted(images, random) for _ in range(3)])
    steps = EPOCHS * -(-len(many) // 64)
    rate = tf.keras.optimizers.schedules.CosineDecay(3e-3, steps)
    model.compile(tf.keras.optimizers.Adam(rate), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(many, np.tile(labels, 4), batch_size=64, epochs=EPOCHS, verbose=0)


def convert(model: tf.keras.Model, sample: np.ndarray | None) -> bytes:
    """Convert for one image at a time: to float32, or, with sample images to calibrate on, to int8 throughout."""
    one = tf.keras.Input((8, 8, 1), batch_size=1, name="image")
    converter = tf.lite.TFLiteConverter.from_keras_model(tf.keras.Model(one, {"probabilities": model(one)}))
    if sample is not None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([image[np.newaxis]] for image in sample)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.int8
    return converter.convert()


def classifier(content: bytes) -> Callable[[np.ndarray], int]:
    """Return a function that classifies an image with a converted model: it returns the digit."""
    interpreter = tf.lite.Interpreter(model_content=content)
    interpreter.allocate_tensors()
    source, result = interpreter.get_input_details()[0], interpreter.get_output_details()[0]

    def classify(image: np.ndarray) -> int:
        value = image[np.newaxis]
        if source["dtype"] is np.int8:
            scale, zero_point = source["quantization"]
            value = np.clip(np.round(value / scale) + zero_point, -128, 127).astype(np.int8)
        interpreter.set_tensor(source["index"], value)
        interpreter.invoke()
        return int(interpreter.get_tensor(result["index"]).argmax())

    return classify


def draw(image: np.ndarray) -> Image.Image:
    """Enlarge an 8 x 8 image to a picture that people can see."""
    pixels = np.round(image[:, :, 0] * 255).astype(np.uint8)
    return Image.fromarray(pixels).resize((PICTURE_SIZE, PICTURE_SIZE), Image.Resampling.BICUBIC)


def shrink(picture: Image.Image) -> np.ndarray:
    """Shrink a picture of any size to an image for the model: 8 x 8, values in 0..1."""
    pixels = np.asarray(picture.resize((8, 8), Image.Resampling.BOX), np.float32)
    return (pixels / 255)[..., np.newaxis]


def write_pictures(folder: Path, images: np.ndarray, labels: np.ndarray, models: list[Callable[[np.ndarray], int]]) -> None:
    """Write a picture of each digit: the first held-out one that all models classify correctly."""
    folder.mkdir(parents=True, exist_ok=True)
    for digit in range(10):
        pictures = (draw(image) for image in images[labels == digit])
        picture = next(p for p in pictures if all(model(shrink(p)) == digit for model in models))
        picture.save(folder / f"{digit}.png", optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the digit classifier and convert it.")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parent, help="where to write (default: here)")
    out = parser.parse_args().out
    tf.keras.utils.set_random_seed(SEED)
    tf.config.experimental.enable_op_determinism()

    train_x, train_y, test_x, test_y = load_data()
    model = build()
    train(model, train_x, train_y)
    print(f"trained on {len(train_x)} digits, {model.count_params()} weights")
    print(f"accuracy on {len(test_x)} others: {model.evaluate(test_x, test_y, verbose=0)[1]:.3f}")

    out.mkdir(parents=True, exist_ok=True)
    models = []
    for name, sample in (("digits_float32.tflite", None), ("digits_int8.tflite", train_x[:300])):
        content = convert(model, sample)
        (out / name).write_bytes(content)
        models.append(classifier(content))
        right = np.mean([models[-1](image) == label for image, label in zip(test_x, test_y)])
        print(f"{name}: {len(content)} bytes, accuracy {right:.3f}")
    write_pictures(out / "pictures", test_x, test_y, models)
    (out / "labels.txt").write_text("\n".join(LABELS) + "\n", "utf-8")


if __name__ == "__main__":
    main()
