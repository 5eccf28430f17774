"""Models with TensorLists: recurrent layers, TensorArrays in loops and conditions."""

from __future__ import annotations

import numpy as np
from plugins.flex_ops.tests.record.recording import record


def record_all() -> None:
    """Record the models of this module."""
    _layers()
    _arrays()
    _conditions()


def _layers() -> None:
    import tensorflow as tf

    random = np.random.default_rng(1)
    keras, layers = tf.keras, tf.keras.layers
    keras.utils.set_random_seed(0)
    for name, layer in {
        "lstm": layers.LSTM(6, return_sequences=True),
        "lstm_backwards": layers.LSTM(6, go_backwards=True),
        "gru": layers.GRU(5),
        "gru_both_directions": layers.Bidirectional(layers.GRU(5, return_sequences=True)),
        "lstm_both_directions": layers.Bidirectional(layers.LSTM(4), merge_mode="sum"),
        "simple_rnn_masked": keras.Sequential([layers.Masking(0.0), layers.SimpleRNN(4)]),
    }.items():
        calls = [{"x": random.normal(size=(batch, 7, 3)).astype(np.float32)} for batch in (1, 4)]
        calls[1]["x"][:2, 5:] = 0
        layer(calls[0]["x"])
        record(name, lambda x, layer=layer: layer(x), calls, free={"x": [None, 7, 3]}, keep=layer)
    stack = keras.Sequential([layers.LSTM(6, return_sequences=True), layers.Bidirectional(layers.GRU(5)), layers.Dense(3)])
    stack(np.zeros((1, 5, 3), np.float32))
    calls = [{"x": random.normal(size=(2, steps, 3)).astype(np.float32)} for steps in (5, 1, 9)]
    record("recurrent_any_length", lambda x: stack(x), calls, free={"x": [None, None, 3]}, keep=stack)


def _arrays() -> None:
    import tensorflow as tf

    def squares(x: tf.Tensor) -> dict[str, tf.Tensor]:
        array = tf.TensorArray(tf.float32, size=0, dynamic_size=True, clear_after_read=False)
        total = tf.constant(0.0)
        for i in tf.range(tf.shape(x)[0]):
            array = array.write(i, x[i] * x[i])
            total += tf.reduce_sum(array.read(i // 2))
        return {"squares": array.stack(), "size": array.size(), "total": total}

    calls = [{"x": np.arange(2 * n, dtype=np.float32).reshape(n, 2)} for n in (3, 5)]
    record("array_that_grows", tf.autograph.experimental.do_not_convert(tf.function(squares)), calls, free={"x": [None, 2]})

    def pieces(x: tf.Tensor, lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        array = tf.TensorArray(tf.int32, size=3, infer_shape=False, element_shape=[None, 2], clear_after_read=False)
        array = array.split(x, lengths)
        swapped = tf.TensorArray(tf.int32, size=2, infer_shape=False, element_shape=[None, 2])
        swapped = swapped.write(0, array.read(2)).write(1, array.read(0))
        return {"joined": swapped.concat(), "middle": array.read(1)}

    numbers = np.arange(12, dtype=np.int32).reshape(6, 2)
    calls = [{"x": numbers, "lengths": np.array(lengths, np.int32)} for lengths in ([1, 2, 3], [4, 0, 2])]
    record("array_of_pieces", tf.function(pieces), calls)

    def moved(x: tf.Tensor, indices: tf.Tensor) -> dict[str, tf.Tensor]:
        array = tf.TensorArray(tf.float32, size=4, element_shape=[2], clear_after_read=False)
        array = array.scatter(indices, x)
        return {"all": array.stack(), "two": array.gather([1, 3])}

    rows = np.arange(8, dtype=np.float32).reshape(4, 2)
    calls = [{"x": rows, "indices": np.array(order, np.int32)} for order in ([0, 1, 2, 3], [3, 1, 0, 2])]
    record("array_scattered_and_gathered", tf.function(moved), calls)

    def stack_of_strings(words: tf.Tensor) -> dict[str, tf.Tensor]:
        from tensorflow.python.ops import list_ops

        held = list_ops.empty_tensor_list([], tf.string, max_num_elements=tf.constant(10))
        for i in tf.range(tf.shape(words)[0]):
            held = list_ops.tensor_list_push_back(held, tf.strings.lower(words[i]))
        held, last = list_ops.tensor_list_pop_back(held, tf.string)
        other = list_ops.tensor_list_push_back(held, tf.strings.join([last, "!"]))
        return {
            "last": last,
            "held": list_ops.tensor_list_stack(held, tf.string),
            "other": list_ops.tensor_list_stack(other, tf.string),
            "length": list_ops.tensor_list_length(other),
        }

    calls = [{"words": np.array(words, object)} for words in ([b"a", b"bc"], [b"one", b"two", b"three\0"])]
    record("list_of_strings", tf.function(stack_of_strings), calls, free={"words": [None]})

    def resized(x: tf.Tensor, size: tf.Tensor) -> dict[str, tf.Tensor]:
        from tensorflow.python.ops import list_ops

        held = list_ops.tensor_list_from_tensor(x, [2])
        held = list_ops.tensor_list_resize(held, size)
        return {
            "stack": list_ops.tensor_list_stack(held, tf.float32, element_shape=[2]),
            "shape": list_ops.tensor_list_element_shape(held, tf.int32),
            "length": list_ops.tensor_list_length(held),
        }

    calls = [{"x": rows, "size": np.array(size, np.int32)} for size in (2, 6)]
    record("list_resized", tf.function(resized), calls)


def _conditions() -> None:
    import tensorflow as tf

    def chosen(x: tf.Tensor, doubled: tf.Tensor) -> dict[str, tf.Tensor]:
        array = tf.TensorArray(tf.float32, size=3, element_shape=[2], clear_after_read=False).unstack(x)
        if doubled:
            array = array.write(1, array.read(1) * 2)
        else:
            array = array.write(2, array.read(0))
        return {"stack": array.stack()}

    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    calls = [{"x": rows, "doubled": np.array(doubled)} for doubled in (True, False)]
    record("list_through_a_condition", tf.function(chosen), calls)

    def islands(x: tf.Tensor, words: tf.Tensor) -> dict[str, tf.Tensor]:
        array = tf.TensorArray(tf.float32, size=3, element_shape=[2]).unstack(x)
        total = tf.constant(0.0)
        for i in tf.range(3):
            total += tf.reduce_max(array.read(i))
        scaled = tf.nn.relu(x * total - 20.0)
        text = tf.strings.join([tf.strings.lower(words), tf.strings.as_string(tf.reduce_sum(scaled, 1), precision=2)], ":")
        return {"scaled": scaled, "text": text}

    words = np.array([b"ab", b"c", b""], object)
    record("two_islands", tf.function(islands), [{"x": rows, "words": words}, {"x": rows[::-1] * 2, "words": words[::-1]}])
