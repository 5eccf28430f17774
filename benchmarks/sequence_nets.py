"""Small nets over sequences, made with tensorflow: each function returns the content of a `.tflite` file.

    python -m benchmarks.sequence_nets FOLDER

writes those that FOLDER lacks. Weights are random, with a seed: what is measured is time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["NETS", "write"]

#: The length of the sequences, and the numbers of each of their elements.
_LENGTH, _FEATURES = 20, 16


def _converted(model: Any) -> bytes:
    import tensorflow as tf

    class Frozen(tf.Module):  # type: ignore[misc]
        """The model, held so that its variables become constants."""

        def __init__(self) -> None:
            self.model = model

        @tf.function(input_signature=[tf.TensorSpec((1, *model.input_shape[1:]), tf.float32)])  # type: ignore[untyped-decorator]
        def run(self, x: Any) -> Any:
            return self.model(x, training=False)

    holder = Frozen()
    return _of_function(holder.run, holder)


def _of_function(run: Any, holder: Any = None) -> bytes:
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    function = convert_variables_to_constants_v2(run.get_concrete_function(), lower_control_flow=False)
    content: bytes = tf.lite.TFLiteConverter.from_concrete_functions([function], holder).convert()
    return content


def _keras() -> Any:
    import keras

    keras.utils.set_random_seed(0)
    return keras


def _recurrent(make: Callable[[Any], Any]) -> bytes:
    keras = _keras()
    layers = keras.layers
    made = make(layers)
    between = made if isinstance(made, list) else [made]
    return _converted(keras.Sequential([keras.Input((_LENGTH, _FEATURES)), *between, layers.Dense(4)]))


def _tcn() -> bytes:
    keras = _keras()
    layers = keras.layers
    x = given = keras.Input((64, _FEATURES))
    for dilation in (1, 2, 4, 8):
        y = layers.Conv1D(16, 3, padding="causal", dilation_rate=dilation, activation="relu")(x)
        y = layers.Conv1D(16, 3, padding="causal", dilation_rate=dilation, activation="relu")(y)
        x = layers.Add()([x, y])
    x = layers.GlobalMaxPooling1D()(x)
    return _converted(keras.Model(given, layers.Dense(4)(x)))


def _encoder() -> bytes:
    keras = _keras()
    layers = keras.layers
    x = given = keras.Input((32, 32))
    for _ in range(2):
        y = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.MultiHeadAttention(4, 8)(y, y)])
        y = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.Dense(32)(layers.Dense(64, activation="gelu")(y))])
    x = layers.GlobalAveragePooling1D()(x)
    return _converted(keras.Model(given, layers.Dense(4)(x)))


def _mixer() -> bytes:
    keras = _keras()
    layers = keras.layers
    x = given = keras.Input((16, 32))
    for _ in range(3):
        y = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        y = layers.Dense(16)(layers.Dense(32, activation="gelu")(y))
        x = layers.Add()([x, layers.Permute((2, 1))(y)])
        y = layers.LayerNormalization()(x)
        x = layers.Add()([x, layers.Dense(32)(layers.Dense(64, activation="gelu")(y))])
    x = layers.GlobalAveragePooling1D()(x)
    return _converted(keras.Model(given, layers.Dense(4)(x)))


def _scan() -> bytes:
    """A loop that takes a row of a constant size from a place that is known only while it runs, and collects in a window."""
    import tensorflow as tf

    weights = tf.random.stateless_normal((_FEATURES, _FEATURES), [0, 1]) * 0.2

    @tf.function(input_signature=[tf.TensorSpec((_LENGTH, _FEATURES), tf.float32)])  # type: ignore[untyped-decorator]
    def run(rows: Any) -> Any:
        def step(number: Any, state: Any, best: Any) -> Any:
            row = tf.slice(rows, [number, 0], [1, _FEATURES])
            state = tf.tanh(tf.matmul(state, weights) + row)
            found = tf.slice(state, [0, number % 4], [1, 1])
            return number + 1, state, tf.maximum(best, found)

        zeros = tf.zeros((1, _FEATURES))
        return tf.while_loop(lambda number, *_: number < _LENGTH, step, (0, zeros, tf.zeros((1, 1))))[1:]

    return _of_function(run)


#: By name the function that makes a net.
NETS: dict[str, Callable[[], bytes]] = {
    "lstm": lambda: _recurrent(lambda layers: layers.LSTM(32)),
    "gru": lambda: _recurrent(lambda layers: layers.GRU(32)),
    "bilstm": lambda: _recurrent(lambda layers: layers.Bidirectional(layers.LSTM(16))),
    "bigru": lambda: _recurrent(lambda layers: layers.Bidirectional(layers.GRU(16))),
    "lstm_sequence": lambda: _recurrent(lambda layers: layers.LSTM(32, return_sequences=True)),
    "gru_stack": lambda: _recurrent(lambda layers: [layers.GRU(32, return_sequences=True), layers.GRU(32)]),
    "lstm_unrolled": lambda: _recurrent(lambda layers: layers.LSTM(32, unroll=True)),
    "gru_unrolled": lambda: _recurrent(lambda layers: layers.GRU(32, unroll=True)),
    "tcn": _tcn,
    "text_encoder": _encoder,
    "mlp_mixer": _mixer,
    "scan": _scan,
}


def write(folder: Path) -> None:
    """Write the nets that a folder lacks into it, as `NAME.tflite`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in NETS.items():
        path = folder / f"{name}.tflite"
        if not path.exists():
            path.write_bytes(make())


if __name__ == "__main__":
    write(Path(sys.argv[1]))
