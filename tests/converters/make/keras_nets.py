"""Layers and applications of Keras, through TensorFlow's converter in each of its schemes."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from ..cases import Case, Step

__all__ = ["NETS", "SCHEMES", "convert", "models"]

SCHEMES = ("float", "dynamic", "float16", "int8", "int16x8", "uint8io", "int8io")

#: Schemes that the recurrent layers' loops and lookups can be converted in.
PLAIN = ("float", "dynamic", "float16")
SOME = ("float", "dynamic", "int8")


class Net(NamedTuple):
    """A Keras model's function: the shape of its input without the batch, what gives it, and its schemes.

    Whole numbers below `high` are its inputs where that is not 0; the converter lowers loops of recurrent layers only for a
    fixed `batch`.
    """

    shape: tuple[int, ...]
    make: Callable[[Any], Any]
    schemes: tuple[str, ...] = SCHEMES
    high: int = 0
    batch: int | None = None


def _separable(x: Any) -> Any:
    x = layers.SeparableConv2D(8, 3, padding="same", activation="relu6")(x)
    x = layers.DepthwiseConv2D(3, strides=2, padding="same")(x)
    x = layers.BatchNormalization()(x)
    return layers.Activation("hard_swish")(x)


def _residual(x: Any) -> Any:
    y = layers.Conv2D(4, 3, padding="same", activation="relu")(x)
    y = layers.Conv2D(3, 3, padding="same")(y)
    x = layers.Add()([x, y])
    x = layers.Concatenate()([x, layers.Activation("sigmoid")(y)])
    x = layers.GlobalAveragePooling2D()(layers.ReLU(6)(x))
    return layers.Dense(4, activation="softmax")(x)


def _squeeze(x: Any) -> Any:
    y = layers.Conv2D(16, 1, activation="swish")(x)
    s = layers.GlobalAveragePooling2D(keepdims=True)(y)
    s = layers.Conv2D(16, 1, activation="sigmoid")(layers.Conv2D(4, 1, activation="relu")(s))
    return layers.Conv2D(3, 1)(layers.Multiply()([y, s]))


def _attention(x: Any) -> Any:
    return layers.Attention()([x, layers.Dense(8)(x)])


def _transformer(x: Any) -> Any:
    y = layers.LayerNormalization()(x)
    x = x + layers.MultiHeadAttention(2, 4)(y, y)
    y = layers.Dense(16, activation="gelu")(layers.LayerNormalization()(x))
    return x + layers.Dense(x.shape[-1])(y)


def _upsampling(x: Any) -> Any:
    a = layers.UpSampling2D(2, interpolation="bilinear")(x)
    b = layers.UpSampling2D(2)(x)
    c = layers.Conv2DTranspose(3, 3, strides=2, padding="same")(x)
    return layers.Concatenate()([a, b, c])


def _pools(x: Any) -> Any:
    a = layers.MaxPooling2D(2)(x)
    b = layers.AveragePooling2D(3, strides=2, padding="same")(x)
    return layers.Maximum()([a, b]), layers.GlobalMaxPooling2D()(x)


def _activations(x: Any) -> Any:
    kinds = ("tanh", "sigmoid", "softplus", "elu", "selu", "gelu", "leaky_relu", "hard_sigmoid", "relu6", "exponential", "swish")
    return layers.Concatenate()([layers.Activation(kind)(x) for kind in kinds])


def _lookup(x: Any) -> Any:
    x = layers.Embedding(12, 6)(x)
    return layers.Dense(3)(layers.GlobalAveragePooling1D()(layers.Conv1D(8, 3, activation="relu", padding="causal")(x)))


def _merges(x: Any) -> Any:
    y = layers.Dense(6, activation="relu")(x)
    parts = [layers.Add, layers.Subtract, layers.Multiply, layers.Average, layers.Maximum, layers.Minimum]
    return layers.Concatenate()([part()([x, y]) for part in parts])


def _application(name: str, **options: Any) -> Callable[[Any], Any]:
    def make(x: Any) -> Any:
        side = x.shape[1]
        net = getattr(keras.applications, name)(input_shape=(side, side, 3), weights=None, classes=10, **options)
        return net(x)

    return make


NETS: dict[str, Net] = {
    "dense": Net((8,), lambda x: layers.Dense(4, activation="relu")(layers.Dense(16, activation="tanh")(x))),
    "wide_dense": Net(
        (128,), lambda x: layers.Dense(10)(layers.Dense(128, activation="relu")(x)), ("float", "dynamic", "int8", "int16x8")
    ),
    "conv": Net((9, 8, 3), lambda x: layers.Conv2D(4, 3, strides=2)(layers.Conv2D(32, 3, dilation_rate=2, activation="relu")(x))),
    "grouped": Net((8, 8, 4), lambda x: layers.Conv2D(8, 3, groups=2)(x), SOME),
    "separable": Net((8, 8, 3), _separable),
    "residual": Net((8, 8, 3), _residual),
    "squeeze": Net((6, 6, 3), _squeeze),
    "upsampling": Net((4, 5, 3), _upsampling),
    "pools": Net((8, 8, 3), _pools, ("float", "int8", "int16x8", "uint8io")),
    "activations": Net((3, 5), _activations, ("float", "float16", "int8", "int16x8")),
    "merges": Net((6,), _merges, ("float", "int8", "int16x8", "uint8io")),
    "attention": Net((5, 8), _attention, SOME),
    "transformer": Net((6, 8), _transformer, ("float", "dynamic", "float16", "int8", "int16x8")),
    "embedding": Net((7,), _lookup, PLAIN, 12),
    "conv1d": Net((12, 4), lambda x: layers.Conv1D(5, 3, strides=2, activation="relu")(x), SOME),
    "conv3d": Net((4, 5, 6, 2), lambda x: layers.Conv3D(3, 2)(x), ("float", "dynamic")),
    "conv_transpose": Net((4, 5, 3), lambda x: layers.Conv2DTranspose(4, 4, strides=3, padding="valid")(x)),
    "layer_norm": Net((5, 8), lambda x: layers.LayerNormalization()(x), SOME),
    "group_norm": Net((4, 4, 8), lambda x: layers.GroupNormalization(2)(x), ("float",)),
    "lstm": Net((6, 4), lambda x: layers.LSTM(5)(x), PLAIN, batch=1),
    "lstm_sequence": Net((6, 4), lambda x: layers.LSTM(40, return_sequences=True)(x), PLAIN, batch=1),
    "gru": Net((6, 4), lambda x: layers.GRU(5)(x), PLAIN, batch=1),
    "gru_unrolled": Net((4, 4), lambda x: layers.GRU(5, unroll=True)(x), SOME),
    "bidirectional": Net((6, 4), lambda x: layers.Bidirectional(layers.LSTM(5, return_sequences=True))(x), PLAIN, batch=1),
    "simple_rnn": Net((6, 4), lambda x: layers.SimpleRNN(5)(x), PLAIN, batch=1),
    "conv_lstm": Net((3, 5, 5, 2), lambda x: layers.ConvLSTM2D(3, 3)(x), ("float",), batch=1),
    "time_distributed": Net((3, 6, 6, 2), lambda x: layers.TimeDistributed(layers.Conv2D(3, 3))(x), SOME),
    "shapes": Net(
        (4, 6, 2),
        lambda x: layers.Reshape((8, 4))(
            layers.Permute((2, 1, 3))(layers.ZeroPadding2D(((1, 1), (0, 0)))(layers.Cropping2D(1)(x)))
        ),
        SOME,
    ),
    "repeat_dot": Net((6,), lambda x: layers.Dot(1)([layers.RepeatVector(3)(x), layers.RepeatVector(3)(x)]), ("float",)),
    "mobilenet": Net((32, 32, 3), _application("MobileNet", alpha=0.25), ("dynamic", "int8", "int16x8")),
    "mobilenet_v2": Net((32, 32, 3), _application("MobileNetV2", alpha=0.1), ("float", "dynamic", "int8", "uint8io")),
    "mobilenet_v3": Net(
        (32, 32, 3), _application("MobileNetV3Small", alpha=0.25, minimalistic=True), ("float", "dynamic", "int8")
    ),
}


def _converter(model: Any, scheme: str, samples: list[np.ndarray[Any, Any]]) -> Any:
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    ops = tf.lite.OpsSet
    if scheme != "float":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if scheme == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if scheme in ("int8", "int16x8", "uint8io", "int8io"):
        converter.representative_dataset = lambda: ([sample] for sample in samples)
        kind = (
            ops.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8 if scheme == "int16x8" else ops.TFLITE_BUILTINS_INT8
        )
        converter.target_spec.supported_ops = [kind, ops.TFLITE_BUILTINS]
    if scheme in ("uint8io", "int8io"):
        converter.inference_input_type = converter.inference_output_type = tf.uint8 if scheme == "uint8io" else tf.int8
    return converter


def _spread(model: Any, generator: np.random.Generator) -> None:
    """Give biases and statistics values that a trained net might have."""
    for weight in model.weights:
        if len(weight.shape) == 1:
            noise = generator.standard_normal(weight.shape).astype(np.float32)
            centre = 1 if any(part in weight.path for part in ("gamma", "variance")) else 0
            weight.assign(centre + 0.1 * (np.abs(noise) if "variance" in weight.path else noise))


def convert(name: str, net: Net, scheme: str) -> Case:
    """The net in one scheme, with two inputs, and another batch after them where nothing is quantized statically."""
    number = zlib.crc32(name.rsplit("-", 1)[0].encode())
    keras.utils.set_random_seed(number % (1 << 31))
    generator = np.random.default_rng(number)
    entry = keras.Input(net.shape, net.batch, dtype="int32" if net.high else "float32")
    model = keras.Model(entry, net.make(entry))
    _spread(model, generator)

    def draw(batch: int) -> np.ndarray[Any, Any]:
        if net.high:
            return generator.integers(0, net.high, (batch, *net.shape)).astype(np.int32)
        return generator.standard_normal((batch, *net.shape)).astype(np.float32)

    samples = [draw(1) for _ in range(8)]
    content = _converter(model, scheme, samples).convert()
    interpreter = tf.lite.Interpreter(model_content=content)
    [entry_name] = interpreter.get_signature_list()["serving_default"]["inputs"]
    detail = interpreter.get_signature_runner("serving_default").get_input_details()[entry_name]
    feeds = samples[:2] if net.batch else [*samples[:2], draw(3)]
    steps = []
    for feed in feeds:
        outputs = model(feed)
        own = [np.asarray(value) for value in (outputs if isinstance(outputs, (list, tuple)) else [outputs])]
        if detail["dtype"] in (np.uint8, np.int8) and not net.high:
            scale, zero = detail["quantization"]
            limits = np.iinfo(detail["dtype"])
            feed = np.clip(np.round(feed / scale) + zero, limits.min, limits.max).astype(detail["dtype"])
        answers = {"own": {"output_0": own[0]}} if scheme == "float" and len(own) == 1 else {}
        steps.append(Step({entry_name: feed}, answers, "serving_default"))
    return Case(name, f"Keras {scheme}", content, steps)


def models() -> Iterator[tuple[str, Callable[[], Case]]]:
    """Each net in each of its schemes."""
    for short, net in NETS.items():
        for scheme in net.schemes:
            name = f"keras-{short}-{scheme}"
            yield name, partial(convert, name, net, scheme)
