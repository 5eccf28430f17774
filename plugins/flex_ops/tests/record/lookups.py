"""Models with lookup tables, and state that goes on from call to call."""

from __future__ import annotations

import numpy as np
from plugins.flex_ops.tests.record.recording import record


def _words(*words: bytes) -> np.ndarray:
    return np.array(words, object)


def record_all() -> None:
    """Record the models of this module."""
    import tensorflow as tf

    lookup = tf.lookup
    calls = [{"x": _words(b"cat", b"bird", b"", b"dog\0")}, {"x": _words(b"dog", b"cat")}]

    class Tables(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            words = tf.constant(["cat", "dog", "bird"])
            self.ids = lookup.StaticHashTable(lookup.KeyValueTensorInitializer(words, tf.constant([1, 2, 3], tf.int64)), -1)
            self.scores = lookup.StaticHashTable(lookup.KeyValueTensorInitializer(words, tf.constant([0.5, 1.5, -2.0])), 9.0)
            self.names = lookup.StaticHashTable(lookup.KeyValueTensorInitializer(tf.constant([1, 2, 3], tf.int64), words), "?")

    tables = Tables()

    def static(x: tf.Tensor) -> dict[str, tf.Tensor]:
        ids = tables.ids.lookup(x)
        return {"ids": ids, "scores": tables.scores.lookup(x), "names": tables.names.lookup(ids), "size": tables.ids.size()}

    record("tables_filled_once", static, calls, free={"x": [None]}, keep=tables)

    class Counter(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.counts = lookup.experimental.MutableHashTable(tf.string, tf.int64, 0)

    counter = Counter()

    def counted(x: tf.Tensor) -> dict[str, tf.Tensor]:
        before = counter.counts.lookup(x)
        counter.counts.insert(x, before + 1)
        keys, values = counter.counts.export()
        order = tf.argsort(tf.strings.to_hash_bucket_fast(keys, 1 << 30))
        return {
            "before": before,
            "after": counter.counts.lookup(x),
            "size": counter.counts.size(),
            "keys": tf.gather(keys, order),
            "values": tf.gather(values, order),
        }

    record("table_that_counts", counted, [*calls, calls[0]], free={"x": [None]}, keep=counter)

    class Vectors(tf.Module):
        def __init__(self) -> None:
            super().__init__()
            self.vectors = lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.0, -1.0])

    vectors = Vectors()

    def moved(keys: tf.Tensor, rows: tf.Tensor) -> dict[str, tf.Tensor]:
        vectors.vectors.insert(keys, rows)
        vectors.vectors.remove(keys[:1])
        return {"rows": vectors.vectors.lookup(keys), "size": vectors.vectors.size()}

    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    record(
        "table_of_vectors",
        moved,
        [{"keys": np.array(keys, np.int64), "rows": rows} for keys in ([1, 2, 3], [4, 1, 5])],
        keep=vectors,
    )
