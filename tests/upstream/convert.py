"""Models of today's converter, one for each kind that TensorFlow's tests of `tf.lite` run, with TensorFlow's own answers.

usage: python -m tests.upstream.convert FOLDER

In a process of its own: TensorFlow is large, and what it brings of TensorFlow Lite must not meet LiteRT's package. Each case leaves
NAME.tflite and NAME.npz: the feeds "in.SIGNATURE.INPUT", TensorFlow's answers "out.SIGNATURE.N" in the order of the outputs' names, and
"within", how far a quantized model may be from them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tests.upstream.converting import (
    CASES,
    INT16,
    Case,
    L,
    calibrated,
    case,
    convolution,
    dynamic,
    functions,
    halved,
    keep,
    layers,
    net,
    of,
    offset,
    recurrent,
    sparse,
    values,
    x,
)


@case
def floats() -> Case:
    scale, shift = tf.Variable(3.0), tf.Variable(2.0)
    return of(lambda x: scale * shift * x, x(1))


@case
def floats_behind_the_flatbuffer() -> Case:
    table = tf.constant(values(16, 8))
    return of(lambda x: tf.matmul(x, table), x(2, 16), change=offset)


@case
def a_scalar() -> Case:
    return of(lambda x: x * 2.0 + 1.0, x())


@case
def strings() -> Case:
    words = np.array([b"one", b"", b"three\0"], object)
    return of(lambda s: tf.reshape(tf.gather(s, [2, 0, 1]), [3, 1]), x(3, name="s", dtype=tf.string), feeds={"s": words})


@case
def no_inputs() -> Case:
    return of(lambda: tf.constant([[1.0, 2.0]]) + 1.0)


@case
def two_signatures() -> Case:
    module = tf.Module()
    module.table = tf.Variable(values(4, 4))
    module.add = tf.function(lambda x: x + module.table, input_signature=[x(4, 4)])
    module.product = tf.function(lambda x: tf.matmul(x, module.table), input_signature=[x(None, 4)])
    return functions(module, {"add": {"x": values(4, 4)}, "product": {"x": values(2, 4)}})


@case
def two_quantized_signatures() -> Case:
    module = tf.Module()
    module.table = tf.Variable(values(4, 4))
    module.add = tf.function(lambda x: x + module.table, input_signature=[x(4, 4)])
    module.product = tf.function(lambda x: tf.matmul(x, module.table), input_signature=[x(4, 4)])

    def change(converter: Any) -> None:
        def samples() -> Iterator[tuple[str, dict[str, np.ndarray]]]:
            for _ in range(10):
                yield "add", {"x": values(4, 4)}
                yield "product", {"x": values(4, 4)}

        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = samples

    return functions(module, {"add": {"x": values(4, 4)}, "product": {"x": values(4, 4)}}, change, 0.1)


@case
def several_outputs() -> Case:
    return of(lambda x, y: {"sum": x + y, "difference": x - y, "first": tf.identity(x)}, x(2, 3), x(2, 3, name="y"))


@case
def an_empty_tensor() -> Case:
    return of(lambda x: tf.reduce_sum(x, axis=[0]), x(None), feeds={"x": np.zeros(0, np.float32)})


@case
def an_intermediate_tensor_of_free_shape() -> Case:
    return of(lambda x: tf.reshape(x, tf.stack([tf.shape(x)[0] * 2, -1])) * 2.0, x(None, 4))


@case
def a_convolution_with_int8_inputs() -> Case:
    kernel = tf.constant(values(3, 3, 3, 16))
    return of(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME"), x(1, 5, 5, 3), change=calibrated((1, 5, 5, 3)), within=0.2)


@case
def a_convolution_of_int8() -> Case:
    return convolution(tf.int8)


@case
def a_convolution_of_uint8() -> Case:
    return convolution(tf.uint8)


@case
def a_convolution_of_int16() -> Case:
    return convolution(tf.int16, tf.lite.OpsSet[INT16])


@case
def a_convolution_by_one_scale() -> Case:
    kernel = tf.constant(values(3, 3, 3, 8))

    def change(converter: Any) -> None:
        calibrated((1, 5, 5, 3))(converter)
        converter._experimental_disable_per_channel = True

    return of(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME"), x(1, 5, 5, 3), change=change, within=0.2)


@case
def a_bias_that_overflows() -> Case:
    bias = tf.constant([1e9, 1.0])
    table = tf.constant([[1.0, 1e-5], [1.0, -1e-5]])
    return of(lambda x: tf.matmul(x, table) + bias, x(3, 2), change=calibrated((3, 2)), within=1e8)


@case
def dynamic_range_dense() -> Case:
    return net(layers(L.Dense(64), L.Dense(8), shape=(32,)), [values(2, 32)], dynamic, 0.1)


@case
def dynamic_range_by_one_scale() -> Case:
    def change(converter: Any) -> None:
        dynamic(converter)
        converter._experimental_disable_per_channel_quantization_for_dense_layers = True

    return net(layers(L.Dense(64), L.Dense(8), shape=(32,)), [values(2, 32)], change, 0.1)


@case
def dynamic_range_convolution() -> Case:
    return net(layers(L.Conv2D(16, 3, activation="relu"), L.Conv2D(8, 3), shape=(9, 9, 8)), [values(1, 9, 9, 8)], dynamic, 0.1)


@case
def half_weights() -> Case:
    return net(layers(L.Conv2D(16, 3), L.Flatten(), L.Dense(8), shape=(9, 9, 3)), [values(1, 9, 9, 3)], halved, 0.01)


@case
def a_quantized_gather() -> Case:
    return of(lambda x: tf.gather_nd(x, [[0], [2]]), x(3, 4), change=calibrated((3, 4)), within=0.02)


@case
def a_quantized_sum() -> Case:
    change = calibrated((1, 2, 3, 4), ops=tf.lite.OpsSet[INT16])
    small = {"x": values(1, 2, 3, 4) / 8}  # sums have the scale of what is summed
    return of(lambda x: tf.reduce_sum(x, axis=[1, 2]), x(1, 2, 3, 4), feeds=small, change=change, within=0.01)


@case
def embeddings() -> Case:
    table = tf.Variable(values(16, 8))
    rows = np.array([[1, 5, 0]], np.int32)
    return of(lambda i: tf.nn.embedding_lookup(table, i), x(1, 3, name="i", dtype=tf.int32), feeds={"i": rows})


@case
def a_table_of_words() -> Case:
    module = tf.Module()
    initial = tf.lookup.KeyValueTensorInitializer(tf.constant(["a", "b", "c"]), tf.constant([1, 2, 3], tf.int64))
    module.table = tf.lookup.StaticHashTable(initial, -1)
    module.run = tf.function(lambda s: module.table.lookup(s), input_signature=[x(3, name="s", dtype=tf.string)])
    return functions(module, {"run": {"s": np.array([b"c", b"nothing", b"a"], object)}})


@case
def a_variable() -> Case:
    module = tf.Module()
    module.count = tf.Variable([1.0, 2.0])

    def run(x: tf.Tensor) -> tf.Tensor:
        module.count.assign_add(x)
        return module.count.read_value() * 2.0

    module.run = tf.function(run, input_signature=[x(2)])

    def change(converter: Any) -> None:
        converter.experimental_enable_resource_variables = True

    return functions(module, {"run": {"x": values(2)}}, change)


@case
def a_condition() -> Case:
    weight = tf.constant(values(4, 4))

    def run(x: tf.Tensor, p: tf.Tensor) -> tf.Tensor:
        return tf.cond(p, lambda: tf.matmul(x, weight), lambda: x + weight)

    return of(run, x(4, 4), x(name="p", dtype=tf.bool), feeds={"p": np.array(True)})


@case
def a_loop() -> Case:
    def run(n: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
        return tf.while_loop(lambda i, _: i < n, lambda i, v: (i + 1, v * 1.5 + 1.0), [0, x])[1]

    return of(run, x(name="n", dtype=tf.int32), x(4), feeds={"n": np.array(5, np.int32)})


@case
def a_loop_that_collects() -> Case:
    def run(x: tf.Tensor) -> tf.Tensor:
        kept = tf.TensorArray(tf.float32, size=3, element_shape=[2])
        for i in tf.range(3):
            kept = kept.write(i, x[i] * tf.cast(i, tf.float32))
        return kept.stack()

    return of(run, x(3, 2))


@case
def a_static_rnn() -> Case:
    cell = tf.keras.layers.LSTMCell(5)
    cell.build((1, 3))

    def run(x: tf.Tensor) -> tf.Tensor:
        state = [tf.zeros([1, 5]), tf.zeros([1, 5])]
        for step in range(4):
            out, state = cell(x[:, step], state)
        return out

    return of(run, x(1, 4, 3))


@case
def an_lstm() -> Case:
    return recurrent(L.LSTM(5))


@case
def an_lstm_of_a_batch() -> Case:
    return recurrent(L.LSTM(5, return_sequences=True), 2)


@case
def an_lstm_with_half_weights() -> Case:
    return recurrent(L.LSTM(5), change=halved, within=0.01)


@case
def a_gru() -> Case:
    return recurrent(L.GRU(5))


@case
def a_simple_rnn() -> Case:
    return recurrent(L.SimpleRNN(5))


@case
def both_directions() -> Case:
    return recurrent(L.Bidirectional(L.LSTM(5)))


@case
def both_directions_in_sequence() -> Case:
    return recurrent(L.Bidirectional(L.LSTM(5, return_sequences=True)))


@case
def a_row_of_layers() -> Case:
    return net(layers(L.Dense(5, activation="relu"), L.Dense(2, activation="softmax"), shape=(3,)), [values(2, 3)])


@case
def several_inputs_and_outputs() -> Case:
    one, two = tf.keras.Input((3,), name="one"), tf.keras.Input((3,), name="two")
    joined = L.concatenate([L.Dense(4)(one), L.Dense(4)(two)])
    return net(tf.keras.Model([one, two], [L.Dense(2)(joined), L.Dense(3)(joined)]), [values(1, 3), values(1, 3)])


@case
def an_output_of_three_axes() -> Case:
    return net(layers(L.Dense(5), shape=(3, 4)), [values(2, 3, 4)])


@case
def a_transposed_convolution() -> Case:
    return net(layers(L.Conv2DTranspose(4, 3, activation="relu"), shape=(5, 5, 2)), [values(1, 5, 5, 2)])


@case
def a_transposed_convolution_of_int8() -> Case:
    model = layers(L.Conv2DTranspose(4, 3, activation="relu"), shape=(5, 5, 2), batch=1)
    return net(model, [values(1, 5, 5, 2)], calibrated((1, 5, 5, 2)), 0.1)


@case
def a_strided_slice() -> Case:
    return of(lambda x: x[1:3, ..., ::2], x(4, 2, 5))


@case
def what_folds() -> Case:
    return of(lambda x: x * (tf.constant(values(4)) + tf.constant(values(4))), x(2, 4))


@case
def products_of_free_shapes() -> Case:
    return of(lambda x, y: tf.matmul(x, y), x(None, 4), x(4, None, name="y"))


@case
def products_by_quantized_weights() -> Case:
    table = tf.constant(values(256, 256))
    return of(lambda x: tf.matmul(x, table), x(None, 256), change=dynamic, within=1.0)


@case
def products_of_int8() -> Case:
    table = tf.constant(values(16, 8))
    return of(lambda x: tf.matmul(x, table), x(None, 16), change=calibrated((3, 16)), within=0.2)


@case
def batches_of_products() -> Case:
    return of(lambda x, y: tf.matmul(x, y), x(None, 2, 4), x(None, 4, 3, name="y"))


@case
def batches_of_hybrid_products() -> Case:
    table = tf.constant(values(3, 256, 128))
    return of(lambda x: tf.matmul(x, table), x(3, 4, 256), change=dynamic, within=1.0)


@case
def sparse_weights() -> Case:
    return sparse((1, 1))


@case
def sparse_blocks() -> Case:
    return sparse((1, 4))


@case
def sparse_blocks_of_int8() -> Case:
    return sparse((1, 16), calibrated((1, 64)), 0.2)


@case
def boundary_values() -> Case:
    limits = np.array([np.finfo(np.float32).max, np.finfo(np.float32).min, np.finfo(np.float32).tiny, 0.0], np.float32)
    return of(
        lambda x: tf.minimum(tf.maximum(x, tf.constant(-3.4028235e38)), tf.constant(3.4028235e38)), x(4), feeds={"x": limits}
    )


@case
def preserved_assertions() -> Case:
    def run(x: tf.Tensor) -> tf.Tensor:
        tf.debugging.assert_equal(tf.shape(x)[0], 2)
        return x * 2.0

    return of(run, x(None, 2), feeds={"x": values(2, 2)})


if __name__ == "__main__":
    for name, make in CASES.items():
        tf.keras.utils.set_random_seed(5)  # weights are drawn by chance, and how much quantization takes depends on them
        keep(Path(sys.argv[1]), name, make())
