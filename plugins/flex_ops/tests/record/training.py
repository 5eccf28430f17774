"""A model that trains on the device: signatures that take a step, infer, hand out the weights and take them back.

It is recorded beside the others, in `trained/`, as it has several signatures: `digits.tflite`, and in `digits.npz` the calls in order,
with the name of the signature of each.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

#: The recording, without its suffixes.
TRAINED = Path(__file__).parents[1] / "trained" / "digits"
#: Steps of training.
STEPS = 6


def pictures(seed: int) -> tuple[Any, Any]:
    """Eight noisy pictures of bars, of shape (8, 8, 8, 1), and the directions of the bars, from 0 to 2."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 3, 8)
    made = 0.3 * random.normal(size=(8, 8, 8, 1))
    for picture, label in zip(made, labels):
        place = random.integers(1, 7)
        if label == 0:
            picture[place] += 1
        elif label == 1:
            picture[:, place] += 1
        else:
            picture[range(8), range(8)] += 1
    return made.astype(np.float32), labels.astype(np.int32)


def record_all() -> None:
    """Record the model and its calls."""
    import tensorflow as tf

    random = np.random.default_rng(0)

    class Digits(tf.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()

            def weights(*shape: int) -> tf.Variable:
                return tf.Variable((random.normal(size=shape) * 0.3).astype(np.float32))

            self.kept = [weights(3, 3, 1, 4), weights(4), weights(3, 3, 4, 1), weights(64, 3), weights(3)]
            self.momenta = [tf.Variable(tf.zeros_like(each)) for each in self.kept]

        def logits(self, x: tf.Tensor) -> tf.Tensor:
            first, bias, depth, dense, last = self.kept
            y = tf.nn.elu(tf.nn.bias_add(tf.nn.conv2d(x, first, 1, "SAME"), bias))
            y = tf.nn.relu6(tf.nn.depthwise_conv2d(y, depth, [1, 1, 1, 1], "SAME") + y)
            y = 0.5 * tf.nn.max_pool2d(y, 2, 2, "VALID") + 0.5 * tf.nn.avg_pool2d(y, 2, 2, "VALID")
            return tf.matmul(tf.reshape(y, [-1, 64]), dense) + last

        @tf.function(input_signature=[tf.TensorSpec([8, 8, 8, 1]), tf.TensorSpec([8], tf.int32)])
        def train(self, x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
            with tf.GradientTape() as tape:
                entropies = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=self.logits(x))
                loss = tf.reduce_mean(entropies)
            for variable, momentum, gradient in zip(self.kept, self.momenta, tape.gradient(loss, self.kept)):
                momentum.assign(0.8 * momentum + gradient)
                variable.assign_sub(0.1 * momentum)
            return {"loss": loss}

        @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 1])])
        def infer(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
            return {"classes": tf.nn.softmax(self.logits(x))}

        @tf.function(input_signature=[])
        def save(self) -> dict[str, tf.Tensor]:
            return {f"weights_{number}": tf.identity(each) for number, each in enumerate(self.kept)}

        @tf.function(input_signature=[tf.TensorSpec(shape) for shape in ([3, 3, 1, 4], [4], [3, 3, 4, 1], [64, 3], [3])])
        def restore(self, a: tf.Tensor, b: tf.Tensor, c: tf.Tensor, d: tf.Tensor, e: tf.Tensor) -> dict[str, tf.Tensor]:
            for variable, momentum, value in zip(self.kept, self.momenta, (a, b, c, d, e)):
                variable.assign(value)
                momentum.assign(tf.zeros_like(momentum))
            return {"done": tf.constant(True)}

    model = Digits()
    keys = ("train", "infer", "save", "restore")
    with tempfile.TemporaryDirectory() as folder:
        functions = {key: getattr(model, key).get_concrete_function() for key in keys}
        tf.saved_model.save(model, folder, signatures=functions)
        converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
        converter.experimental_enable_resource_variables = True
        data = converter.convert()
    before = {key: value.numpy() for key, value in model.save().items()}
    arrays: dict[str, Any] = {f"before/{key}": value for key, value in before.items()}
    test, _ = pictures(100)
    for step in range(STEPS):
        x, y = pictures(step)
        arrays[f"loss/{step}"] = model.train(x, y)["loss"].numpy()
        arrays[f"classes/{step}"] = model.infer(test)["classes"].numpy()
    arrays |= {f"after/{key}": value.numpy() for key, value in model.save().items()}
    TRAINED.parent.mkdir(exist_ok=True)
    TRAINED.with_suffix(".tflite").write_bytes(data)
    np.savez_compressed(TRAINED.with_suffix(".npz"), **arrays)
