"""What the cases of `convert` are made of: values, functions and nets for TensorFlow's converter, and its settings."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

Case = tuple[bytes, dict[str, dict[str, np.ndarray]], dict[str, list[np.ndarray]], float]

CASES: dict[str, Callable[[], Case]] = {}
_values = np.random.default_rng(5)


def case(function: Callable[[], Case]) -> Callable[[], Case]:
    """Enter the function under its name."""
    CASES[function.__name__] = function
    return function


def values(*shape: int) -> np.ndarray:
    """Values between -1 and 1, float32."""
    return _values.uniform(-1, 1, shape).astype(np.float32)


def answer(function: Callable[..., Any], feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What TensorFlow computes, outputs in the order of their names."""
    given = function(**{name: tf.constant(value) for name, value in feeds.items()})
    if isinstance(given, dict):
        return [given[name].numpy() for name in sorted(given)]
    return [part.numpy() for part in (given if isinstance(given, (list, tuple)) else [given])]


def functions(
    module: tf.Module,
    feeds: dict[str, dict[str, np.ndarray]],
    change: Callable[[Any], None] = lambda _: None,
    within: float = 1e-5,
) -> Case:
    """The case of a module's functions, each a signature."""
    signatures = {name: getattr(module, name).get_concrete_function() for name in feeds}
    with tempfile.TemporaryDirectory() as folder:
        if len(feeds) == 1:
            converter = tf.lite.TFLiteConverter.from_concrete_functions(list(signatures.values()), module)
        else:
            tf.saved_model.save(module, folder, signatures=signatures)
            converter = tf.lite.TFLiteConverter.from_saved_model(folder)
        change(converter)
        model = converter.convert()
    keys = list(feeds) if len(feeds) > 1 else ["serving_default"]
    answers = {key: answer(getattr(module, name), feeds[name]) for key, name in zip(keys, feeds)}
    return model, dict(zip(keys, feeds.values())), answers, within


def of(function: Callable[..., Any], *specs: tf.TensorSpec, **rest: Any) -> Case:
    """The case of one function, fed with random values of its specs' shapes, free dimensions of 3."""
    module = tf.Module()
    module.run = tf.function(function, input_signature=list(specs))
    names = [spec.name for spec in specs]
    feeds = {n: values(*[3 if d is None else d for d in s.shape]) for n, s in zip(names, specs) if s.dtype == tf.float32}
    feeds |= rest.pop("feeds", {})
    return functions(module, {"run": feeds}, **rest)


def net(model: Any, feeds: list[np.ndarray], change: Callable[[Any], None] = lambda _: None, within: float = 1e-5) -> Case:
    """The case of a Keras model."""
    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    change(converter)
    given = model(feeds if len(feeds) > 1 else feeds[0])
    outputs = [part.numpy() for part in (given if isinstance(given, (list, tuple)) else [given])]
    names = [tensor.name for tensor in model.inputs]
    return converter.convert(), {"serving_default": dict(zip(names, feeds))}, {"serving_default": outputs}, within


def x(*shape: int | None, name: str = "x", dtype: Any = tf.float32) -> tf.TensorSpec:
    """The spec of an input."""
    return tf.TensorSpec(shape, dtype, name)


def calibrated(*shapes: Sequence[int], to: Any = None, ops: Any = None) -> Callable[[Any], None]:
    """Has the converter quantize everything, with inputs and outputs of the type `to`."""

    def samples() -> Iterator[list[np.ndarray]]:
        for _ in range(20):
            yield [values(*shape) for shape in shapes]

    def change(converter: Any) -> None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = samples
        converter.target_spec.supported_ops = [ops or tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        if to is not None:
            converter.inference_input_type = converter.inference_output_type = to

    return change


def dynamic(converter: Any) -> None:
    """Has the converter quantize weights."""
    converter.optimizations = [tf.lite.Optimize.DEFAULT]


def halved(converter: Any) -> None:
    """Has the converter store weights as float16."""
    dynamic(converter)
    converter.target_spec.supported_types = [tf.float16]


def offset(converter: Any) -> None:
    """Has the converter put the constants behind the FlatBuffer."""
    converter._experimental_use_buffer_offset = True


def layers(*parts: Any, shape: Sequence[int | None], batch: int | None = None) -> Any:
    """A Keras model of layers in a row."""
    inside = tf.keras.Input(shape=shape, batch_size=batch, name="x")
    return tf.keras.Model(inside, [out := inside] and _through(parts, out))


def _through(parts: Sequence[Any], tensor: Any) -> Any:
    for part in parts:
        tensor = part(tensor)
    return tensor


INT16 = "EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8"
L = tf.keras.layers


def convolution(to: Any, ops: Any = None) -> Case:
    """A convolution, all of it of integers."""
    kernel = tf.constant(values(3, 3, 3, 16))
    change = calibrated((1, 5, 5, 3), to=to, ops=ops)
    return of(lambda x: tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME")), x(1, 5, 5, 3), change=change, within=0.2)


def recurrent(layer: Any, batch: int | None = 1, **rest: Any) -> Case:
    """A net of one recurrent layer."""
    return net(layers(layer, shape=(4, 3), batch=batch), [values(batch or 1, 4, 3)], **rest)


def sparse(block: Sequence[int], change: Callable[[Any], None] = lambda _: None, within: float = 1e-5) -> Case:
    """A product by weights of which most blocks are zero."""
    table = np.zeros((64, 64), np.float32)
    blocks = np.add.outer(np.arange(64) // block[0], np.arange(64) // block[1]) % 7 == 0
    table[blocks] = values(int(blocks.sum()))

    def both(converter: Any) -> None:
        change(converter)
        converter.optimizations = [tf.lite.Optimize.EXPERIMENTAL_SPARSITY, *converter.optimizations]

    constant = tf.constant(table.T)
    return of(lambda x: tf.matmul(x, constant), x(1, 64), change=both, within=within)


def keep(folder: Path, name: str, made: Case) -> None:
    """Write a case's model, feeds and answers."""
    model, feeds, answers, within = made
    (folder / f"{name}.tflite").write_bytes(model)
    arrays: dict[str, Any] = {"within": np.array(within)}
    arrays |= {f"in.{key}.{n}": np.array(v) for key, given in feeds.items() for n, v in given.items()}
    arrays |= {f"out.{key}.{i}": np.array(v) for key, given in answers.items() for i, v in enumerate(given)}
    np.savez(folder / f"{name}.npz", **arrays)
