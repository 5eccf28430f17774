"""Make a model with an operator that the format does not have: y = atan(x + offset).

TensorFlow knows Atan, the .tflite format does not: the converter refuses the model until it is told to let custom ops
through, and then writes the op by name. Whoever runs the model has to bring the kernel; `oplet-atan-op` does.
Needs `pip install tensorflow`.

    python train.py [--out FILE]
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

X = [-8.0, 0.5, 2.0, 2.2, 201.0]
Y = [-1.4288993, 0.98279375, 1.2490457, 1.2679114, 1.5658458]
STEPS = 100
#: High, because the loss is almost flat: its second derivative by the offset is about 0.2.
LEARNING_RATE = 4.0


class AtanModel(tf.Module):
    """y = atan(x + offset), with an offset to be learnt."""

    def __init__(self) -> None:
        super().__init__()
        self.offset = tf.Variable(0.0, name="offset")

    @tf.function(input_signature=[tf.TensorSpec([len(X)], tf.float32, name="x")])
    def predict(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": tf.math.atan(x + self.offset)}


def train(model: AtanModel) -> None:
    """Gradient descent on the summed squared error of the five points."""
    x, y = tf.constant(X), tf.constant(Y)
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model.predict(x)["y"] - y))
        model.offset.assign_sub(LEARNING_RATE * tape.gradient(loss, model.offset))


def converter_of(model: AtanModel) -> tf.lite.TFLiteConverter:
    return tf.lite.TFLiteConverter.from_concrete_functions([model.predict.get_concrete_function()], model)


def refusal(model: AtanModel) -> str:
    """Return the converter's error message for Atan when custom ops are not allowed."""
    try:
        converter_of(model).convert()
    except Exception as error:  # TensorFlow's ConverterError, which has no public name
        reasons = [line.rpartition("error: ")[2] for line in str(error).splitlines() if "error: 'tf.Atan'" in line]
        return reasons[0] if reasons else str(error)
    raise RuntimeError("The converter took Atan as a built-in operator; this example needs one that it does not have.")


def convert(model: AtanModel) -> bytes:
    converter = converter_of(model)
    converter.allow_custom_ops = True
    return converter.convert()


def main() -> None:
    parser = argparse.ArgumentParser(description="Train y = atan(x + offset) and convert it.")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().with_name("atan.tflite"), help="the file to write")
    out = parser.parse_args().out

    model = AtanModel()
    train(model)
    print(f"trained: offset = {model.offset.numpy():.7f}")
    print(f"without allow_custom_ops the converter refuses: {refusal(model)}")
    content = convert(model)
    out.write_bytes(content)
    print(f"with allow_custom_ops: {out.name}, {len(content)} bytes")


if __name__ == "__main__":
    main()
