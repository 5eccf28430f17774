"""Models that work on strings."""

from __future__ import annotations

import numpy as np
from plugins.flex_ops.tests.record.recording import record


def _words(*words: bytes | str) -> np.ndarray:
    return np.array([word.encode() if isinstance(word, str) else word for word in words], object)


TEXTS = [
    _words(" Hello 12 World ", "ABC9", "", "x,y;;z", "tail\0", "Größe 5 µm — 日本語 🙂", b"\xff\xfe bytes \x80"),
    _words("a  b\tc", "1,2,,3", "The END.", "no", "--", "0x1F", "naïve café"),
]


def record_all() -> None:
    """Record the models of this module."""
    import tensorflow as tf

    strings = tf.strings
    calls = [{"x": texts} for texts in TEXTS]
    any_length = {"x": [None]}

    def cleaned(x: tf.Tensor) -> dict[str, tf.Tensor]:
        y = strings.regex_replace(strings.lower(x), r"[^a-z0-9 ]+", "_")
        y = strings.strip(strings.regex_replace(y, r"([0-9]+)", r"<\1>"))
        return {
            "text": strings.join([y, tf.constant("!")], separator=" "),
            "bytes": strings.length(x),
            "characters": strings.length(x, "UTF8_CHAR"),
            "matches": strings.regex_full_match(x, r"(?i)\s*hello.*|.*\d"),
        }

    record("strings_cleaned", cleaned, calls, free=any_length)

    def hashed(x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "fast": strings.to_hash_bucket_fast(x, 1 << 62),
            "strong": strings.to_hash_bucket_strong(x, 1 << 62, key=[123, 456]),
            "older": tf.raw_ops.StringToHashBucket(string_tensor=x, num_buckets=1000),
            "base64": tf.io.encode_base64(x, pad=True),
            "back": tf.io.decode_base64(tf.io.encode_base64(x)),
        }

    record("strings_hashed", hashed, calls, free=any_length)

    def split(x: tf.Tensor) -> dict[str, tf.Tensor]:
        words = strings.split(x)
        fields = strings.split(x, ",", maxsplit=2)
        return {
            "words": words.values,
            "ends": words.row_splits,
            "fields": fields.values,
            "field_ends": fields.row_splits,
            "bytes": strings.bytes_split(x).values,
        }

    record("strings_split", split, calls, free=any_length)

    def numbers(x: tf.Tensor, n: tf.Tensor) -> dict[str, tf.Tensor]:
        return {
            "float": strings.to_number(x),
            "double": strings.to_number(x, tf.float64),
            "written": strings.as_string(strings.to_number(x), precision=3, width=12, fill="0"),
            "short": strings.as_string(strings.to_number(x), shortest=True),
            "integers": strings.as_string(n, width=6),
            "again": strings.to_number(strings.as_string(n), tf.int64),
        }

    record(
        "strings_to_numbers_and_back",
        numbers,
        [
            {"x": _words("1.5", " -2e-3", "inf", "0.1"), "n": np.array([5, -70000, 0], np.int64)},
            {"x": _words("+7", "1e30", "-0", ".25 "), "n": np.array([1 << 40, 1, -1], np.int64)},
        ],
    )

    def parts(x: tf.Tensor, start: tf.Tensor, size: tf.Tensor) -> dict[str, tf.Tensor]:
        grid = tf.reshape(x, [2, 3])
        return {
            "bytes": strings.substr(x, start, size),
            "characters": strings.substr(x, 1, 2, unit="UTF8_CHAR"),
            "rows": strings.reduce_join(grid, 1, separator="-"),
            "all": strings.reduce_join(grid, [0, 1]),
            "segments": strings.unsorted_segment_join(x, [1, 0, 1, 0, 2, 1], 4, separator="+"),
        }

    words = [_words("alpha", "βήτα", "g\0mma", "déltä", "epsilon", "日本語"), _words(*["many words"] * 5, "end.")]
    calls_of_parts = [
        {"x": x, "start": np.arange(6, dtype=np.int32) % 3, "size": np.array([2, 3, 1, 9, 0, 4], np.int32)} for x in words
    ]
    record("strings_in_parts", parts, calls_of_parts)

    def decoded(x: tf.Tensor, raw: tf.Tensor) -> dict[str, tf.Tensor]:
        characters = strings.unicode_split(x, "UTF-8")
        return {
            "characters": characters.values,
            "ends": characters.row_splits,
            "raw": tf.io.decode_raw(raw, tf.int16),
            "padded": tf.io.decode_raw(raw, tf.int32, fixed_length=8),
        }

    record(
        "strings_decoded",
        decoded,
        [{"x": texts, "raw": _words(b"abcd", b"\x01\x00\xff\xff")} for texts in TEXTS],
        free={"x": [None], "raw": [None]},
    )

    def pairs(x: tf.Tensor) -> dict[str, tf.Tensor]:
        found = strings.ngrams(strings.split(strings.upper(x, "utf-8")), [1, 2])
        return {"pairs": found.values, "ends": found.row_splits}

    record("strings_in_pairs", pairs, calls, free=any_length, converter={"allow_custom_ops": True})
