"""Models that work on sparse and ragged tensors, sequences, and arrays of unusual types."""

from __future__ import annotations

import functools

import numpy as np
from plugins.flex_ops.tests.record import recording

#: Some of the operators are not on the converter's list, which leaves them as custom operators of their own names.
record = functools.partial(recording.record, converter={"allow_custom_ops": True})
rng = np.random.default_rng(8)


def _numbers(*shape: int) -> np.ndarray:
    return rng.normal(size=shape).astype(np.float32)


def record_all() -> None:
    """Record the models of this module."""
    _record_sparse()
    _record_ragged()
    _record_sequences()
    _record_arrays()


def _record_sparse() -> None:
    import tensorflow as tf

    sparse = tf.sparse

    def products(x: tf.Tensor, y: tf.Tensor) -> dict[str, tf.Tensor]:
        a = sparse.from_dense(tf.where(x > 0.3, x, 0.0))
        return {
            "product": sparse.sparse_dense_matmul(a, y),
            "adjoint": sparse.sparse_dense_matmul(a, x, adjoint_a=True),
            "sum": sparse.reduce_sum(a, 1),
            "max": sparse.reduce_max(a, 0, keepdims=True),
            "softmax": sparse.softmax(a).values,
            "scaled": (a * x).values,
            "dense": sparse.to_dense(sparse.add(a, a)),
        }

    record("sparse_products", products, [{"x": _numbers(5, 6), "y": _numbers(6, 3)}, {"x": _numbers(5, 6), "y": _numbers(6, 3)}])

    def moved(x: tf.Tensor) -> dict[str, tf.Tensor]:
        a = sparse.from_dense(x)
        joined = sparse.concat(1, [a, a])
        filled, empty = sparse.fill_empty_rows(sparse.slice(a, [1, 0], [3, 4]), -1)
        halves = sparse.split(sp_input=joined, num_split=2, axis=1)
        return {
            "joined": joined.indices, "filled": filled.values, "empty": empty, "half": halves[1].values,
            "flat": sparse.reshape(a, [-1]).indices, "turned": sparse.transpose(a).indices,
            "counts": sparse.bincount(tf.maximum(x, 0), axis=-1).values,
        }  # fmt: skip

    record("sparse_moved", moved, [{"x": rng.integers(0, 3, (5, 6))}, {"x": rng.integers(-2, 2, (5, 6))}])

    table = _numbers(10, 4)

    def embedded(ids: tf.Tensor, rows: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "sum": sparse.segment_sum(table, ids, rows),
            "mean": sparse.segment_mean(table, ids, rows, num_segments=6),
            "root": sparse.segment_sqrt_n(table, ids, rows),
        }

    record(
        "embeddings_of_bags",
        embedded,
        [{"ids": np.array([1, 9, 3, 3], np.int32), "rows": np.array([0, 0, 2, 3], np.int32)}],
        free={"ids": [None], "rows": [None]},
    )


def _record_ragged() -> None:
    import tensorflow as tf

    def rows(x: tf.Tensor, lengths: tf.Tensor, picks: tf.Tensor) -> dict[str, tf.Tensor]:
        ragged = tf.RaggedTensor.from_row_lengths(x, lengths)
        chosen = tf.gather(ragged, picks)
        numbers = tf.ragged.range(lengths)
        return {
            "dense": ragged.to_tensor(-1.0),
            "cut": ragged.to_tensor(0.0, shape=[None, 2]),
            "chosen": chosen.values,
            "chosen_splits": chosen.row_splits,
            "numbers": numbers.values,
            "sparse": ragged.to_sparse().indices,
            "mean": tf.reduce_mean(ragged, 1),
            "counts": numbers.to_tensor(9),
        }

    calls = [
        {"x": _numbers(6), "lengths": np.array([2, 0, 4]), "picks": np.array([2, 0, 2])},
        {"x": _numbers(3), "lengths": np.array([1, 2]), "picks": np.array([1])},
    ]
    record("ragged_rows", rows, calls, free={"x": [None], "lengths": [None], "picks": [None]})

    def texts(x: tf.Tensor) -> dict[str, tf.Tensor]:
        words = tf.strings.split(x)
        return {
            "padded": words.to_tensor(b"<pad>"),
            "lengths": words.row_lengths(),
            "grams": tf.strings.ngrams(words, 2).to_tensor(),
        }

    strings = np.array([b"a b c", b"", b"one two"], object)
    record("ragged_words", texts, [{"x": strings}], free={"x": [None]})

    def mapped(x: tf.Tensor, lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        ragged = tf.RaggedTensor.from_row_lengths(x, lengths)
        scaled = tf.map_fn(lambda row: row * tf.reduce_sum(row), ragged)
        return {"values": scaled.values, "splits": scaled.row_splits}

    record("ragged_mapped", mapped, [{"x": _numbers(6), "lengths": np.array([2, 1, 3])}], free={"x": [None], "lengths": [None]})


def _record_sequences() -> None:
    import tensorflow as tf

    def decoded(x: tf.Tensor, lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        [greedy], score = tf.nn.ctc_greedy_decoder(x, lengths)
        paths, scores = tf.nn.ctc_beam_search_decoder(x, lengths, beam_width=8, top_paths=2)
        return {
            "greedy": greedy.values, "score": score, "scores": scores, "first": paths[0].values, "second": paths[1].indices,
            "text": tf.sparse.to_dense(paths[0], -1),
        }  # fmt: skip

    lengths = np.array([12, 9], np.int32)
    calls = [{"x": 2 * _numbers(12, 2, 6), "lengths": lengths}, {"x": _numbers(12, 2, 6), "lengths": lengths}]
    record("speech_decoded", decoded, calls)

    def losses(x: tf.Tensor, labels: tf.Tensor) -> dict[str, tf.Tensor]:
        sparse = tf.sparse.from_dense(labels)
        lengths = tf.constant([10, 8], tf.int32)
        loss, slopes = tf.raw_ops.CTCLoss(
            inputs=x, labels_indices=sparse.indices, labels_values=sparse.values, sequence_length=lengths
        )
        guess = tf.nn.ctc_greedy_decoder(x, lengths)[0][0]
        return {"loss": loss, "slopes": slopes, "edits": tf.edit_distance(tf.cast(guess, tf.int32), sparse)}

    record("speech_trained", losses, [{"x": _numbers(10, 2, 5), "labels": np.array([[1, 2, 3], [3, 3, 0]], np.int32)}])

    weights, bias = _numbers(9, 20), _numbers(20)

    def recurrent(x: tf.Tensor) -> dict[str, tf.Tensor]:
        state = tf.zeros([2, 5])
        zeros = tf.zeros([5])
        whole = tf.raw_ops.BlockLSTMV2(
            seq_len_max=tf.constant(6, tf.int64),
            x=x,
            cs_prev=state,
            h_prev=state,
            w=weights,
            wci=zeros,
            wcf=zeros,
            wco=zeros,
            b=bias,
        )
        step = tf.raw_ops.GRUBlockCell(
            x=x[0], h_prev=whole.h[-1], w_ru=weights[:, :10], w_c=weights[:, 10:15], b_ru=bias[:10], b_c=bias[10:15]
        )
        return {"cells": whole.cs, "outputs": whole.h, "step": step.h, "back": tf.reverse_sequence(x, [3, 6], 0, 1)}

    record("blocks_of_cells", recurrent, [{"x": _numbers(6, 2, 4)}])


def _record_arrays() -> None:
    import tensorflow as tf

    def counted(x: tf.Tensor) -> dict[str, tf.Tensor]:
        values, numbers, counts = tf.unique_with_counts(x)
        rest = tf.raw_ops.ListDiff(x=x, y=values[:2]).out
        return {
            "values": values, "numbers": numbers, "counts": counts, "rest": rest,
            "bins": tf.math.bincount(tf.cast(x, tf.int32), minlength=4),
            "buckets": tf.raw_ops.Bucketize(input=x, boundaries=[1.0, 2.5, 4.0]),
            "histogram": tf.histogram_fixed_width(tf.cast(x, tf.float32), [0.0, 5.0], 4),
            "places": tf.searchsorted(tf.sort(values), x),
            "rolled": tf.roll(x, 2, 0),
        }  # fmt: skip

    record("values_counted", counted, [{"x": rng.integers(0, 6, 12)}, {"x": rng.integers(0, 6, 5)}], free={"x": [None]})

    def doubles(x: tf.Tensor, ids: tf.Tensor) -> dict[str, tf.Tensor]:
        low, high = tf.dynamic_partition(x, tf.cast(ids > 1, tf.int32), 2)
        best, where = tf.math.top_k(x[:, 0], 3)
        return {
            "sum": tf.math.segment_sum(x, ids), "mean": tf.math.segment_mean(x, ids), "least": tf.math.unsorted_segment_min(x, ids, 5),
            "low": low, "high": high, "best": best, "where": where,
            "scattered": tf.tensor_scatter_nd_add(x, [[1], [4], [3]], x[:3]),
            "gathered": tf.gather_nd(x, [[0, 1], [5, 0]]),
            "padded": tf.pad(x, [[1, 0], [2, 1]], "REFLECT"),
            "stitched": tf.raw_ops.DynamicStitch(indices=[[0, 2], [1]], data=[x[:2], x[2:3]]),
        }  # fmt: skip

    x, ids = rng.normal(size=(6, 3)), np.array([0, 0, 1, 2, 2, 3], np.int32)
    record("rows_of_doubles", doubles, [{"x": x, "ids": ids}, {"x": -x, "ids": np.array([0, 1, 1, 1, 2, 2], np.int32)}])

    def complexes(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "turned": tf.transpose(x, conjugate=True), "tiled": tf.tile(x, [1, 2]), "reversed": tf.reverse(x, [0]),
            "joined": tf.concat([x, x[:, ::2]], 1), "blocks": tf.raw_ops.Diag(diagonal=x[0]),
            "there": tf.where(tf.abs(x) > 1), "one": tf.one_hot([1, -1, 0], 3, x[0, 0], x[1, 1]),
        }  # fmt: skip

    record("complex_arrays", complexes, [{"x": (rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))).astype(np.complex64)}])
