"""Records models of TensorFlow's converter with what TensorFlow's own function answers: operators that only TensorFlow has.

`python -m plugins.flex_delegate.tests.record [model ...]` in the repository's root writes `recorded/`; `test_recorded_models.py` runs them.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from plugins.flex_ops.tests.record.recording import record

__all__ = ["RECORDED"]

#: The recordings.
RECORDED = Path(__file__).parent / "recorded"
F32 = np.float32


def _strings(*values: str | bytes) -> Any:
    return np.array([value.encode() if isinstance(value, str) else value for value in values], object)


Model = tuple[Callable[..., Any], Sequence[Mapping[str, Any]], dict[str, Any]]


def models() -> dict[str, Model]:
    """The functions, their calls and further arguments of `record`, by name."""
    import tensorflow as tf

    random = np.random.default_rng(7)
    images = [random.uniform(0, 1, (2, 9, 7, 3)).astype(F32) for _ in range(2)]
    square = random.normal(size=(2, 4, 4)).astype(F32)
    found: dict[str, Model] = {}

    def unicode(x: Any) -> dict[str, Any]:
        points = tf.strings.unicode_decode(x, "UTF-8")
        return {
            "latin": tf.strings.unicode_transcode(x, "UTF-8", "UTF-16-BE"),
            "points": points.values,
            "rows": points.row_splits,
            "back": tf.strings.unicode_encode(points, "UTF-8"),
        }

    found["unicode"] = (
        unicode,
        [{"x": _strings("Grüße", "", "日本 x")}, {"x": _strings("a", b"\xff\xfe", "😀")}],
        {"free": {"x": [None]}},
    )

    def text(x: Any, numbers: Any) -> dict[str, Any]:
        parts = tf.strings.split(x)
        return {
            "grams": tf.strings.ngrams(parts, [1, 2], separator="_").flat_values,
            "numbers": tf.strings.as_string(numbers, precision=2, scientific=True),
            "joined": tf.strings.reduce_join(x, separator="|"),
            "base64": tf.io.decode_base64(tf.io.encode_base64(x)),
            "formatted": tf.strings.format("it is {}.", numbers),
            "by": tf.strings.unsorted_segment_join(x, [1, 0, 1], 3, ","),
        }

    words = [_strings("one two", "", "three four five"), _strings("a", "b c", "d")]
    calls = [{"x": each, "numbers": random.normal(size=3).astype(F32)} for each in words]
    found["text"] = text, calls, {"user_ops": ["StringNGrams"]}

    def colours(x: Any) -> dict[str, Any]:
        return {
            "hue": tf.image.adjust_hue(x, 0.2),
            "saturation": tf.image.adjust_saturation(x, 0.5),
            "contrast": tf.image.adjust_contrast(x, 1.5),
            "boxes": tf.image.draw_bounding_boxes(x, tf.constant([[[0.1, 0.1, 0.8, 0.9]]] * 2), tf.constant([[1.0, 0, 0]])),
        }

    found["colours"] = colours, [{"x": each} for each in images], {"user_ops": ["DrawBoundingBoxesV2"]}

    def warped(x: Any, transforms: Any) -> Any:
        return tf.raw_ops.ImageProjectiveTransformV3(
            images=x, transforms=transforms, output_shape=[6, 5], fill_value=0.5, interpolation="BILINEAR", fill_mode="CONSTANT"
        )

    turns = np.array([[0.9, 0.1, 0, -0.1, 0.9, 1, 0, 0]], F32)
    found["warped"] = warped, [{"x": each, "transforms": turns * (1 + n)} for n, each in enumerate(images)], {}

    def morphology(x: Any) -> dict[str, Any]:
        kernel = tf.constant(np.linspace(0, 1, 27).reshape(3, 3, 3), tf.float32)
        return {
            "dilated": tf.nn.dilation2d(x, kernel, [1, 1, 1, 1], "SAME", "NHWC", [1, 2, 2, 1]),
            "eroded": tf.nn.erosion2d(x, kernel, [1, 2, 2, 1], "VALID", "NHWC", [1, 1, 1, 1]),
        }

    found["morphology"] = morphology, [{"x": each} for each in images], {}

    def examples(x: Any) -> dict[str, Any]:
        parsed = tf.io.parse_example(
            x,
            {
                "age": tf.io.FixedLenFeature([2], tf.int64, [7, 8]),
                "name": tf.io.FixedLenFeature([], tf.string, b"nobody"),
                "tags": tf.io.VarLenFeature(tf.float32),
            },
        )
        return {"age": parsed["age"], "name": parsed["name"], "tags": parsed["tags"].values, "where": parsed["tags"].indices}

    def example(**features: Any) -> bytes:
        made = tf.train.Features(feature=features)
        return tf.train.Example(features=made).SerializeToString()  # type: ignore[no-any-return]

    ints = tf.train.Feature(int64_list=tf.train.Int64List(value=[3, 4]))
    floats = tf.train.Feature(float_list=tf.train.FloatList(value=[1.5, 2.5, 3.5]))
    name = tf.train.Feature(bytes_list=tf.train.BytesList(value=[b"Ada"]))
    batches = [[example(age=ints, tags=floats), example(name=name)], [example(), example(tags=floats, name=name)]]
    found["examples"] = examples, [{"x": _strings(*batch)} for batch in batches], {"free": {"x": [None]}}

    def sets(x: Any, y: Any) -> dict[str, Any]:
        common, only = tf.sets.intersection(x, y), tf.sets.difference(x, y)
        return {"common": common.values, "where": common.indices, "only": only.values, "sizes": only.dense_shape}

    rows = [random.integers(0, 5, (3, 4)).astype(np.int32) for _ in range(4)]
    found["sets"] = sets, [{"x": rows[0], "y": rows[1]}, {"x": rows[2], "y": rows[3]}], {}

    def sound(x: Any) -> dict[str, Any]:
        decoded = tf.audio.decode_wav(x)
        return {
            "audio": decoded.audio,
            "rate": decoded.sample_rate,
            "again": tf.audio.encode_wav(decoded.audio, decoded.sample_rate),
        }

    waves = [tf.audio.encode_wav(random.uniform(-1, 1, (n, 2)).astype(F32), 8000).numpy() for n in (5, 9)]
    found["sound"] = sound, [{"x": np.array(each, object)} for each in waves], {}

    def pictures(gif: Any, bmp: Any) -> dict[str, Any]:
        return {
            "gif": tf.io.decode_gif(gif),
            "bmp": tf.io.decode_bmp(bmp, 3),
            "any": tf.io.decode_image(bmp, expand_animations=False),
        }

    gif = b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x10\x20\x30\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
    bmp = b"BM" + struct.pack("<IHHIIiiHHIIiiII", 70, 0, 0, 54, 40, 2, 2, 1, 24, 0, 16, 0, 0, 0, 0) + bytes(range(16))
    found["pictures"] = pictures, [{"gif": np.array(gif, object), "bmp": np.array(bmp, object)}], {}

    def matrices(x: Any) -> dict[str, Any]:
        positive = tf.matmul(x, x, transpose_b=True) + 4 * tf.eye(4)
        decomposed, order = tf.linalg.lu(positive)
        return {
            "lu": decomposed,
            "order": order,
            "exponential": tf.linalg.expm(x * 0.1),
            "least": tf.linalg.lstsq(positive, x, fast=False),
            "root": tf.linalg.sqrtm(positive),
            "solved": tf.linalg.solve(positive, x),
        }

    user = ["Lu", "MatrixExponential", "MatrixSolveLs", "MatrixSquareRoot", "MatrixSolve"]
    found["matrices"] = matrices, [{"x": square}, {"x": square[::-1].copy()}], {"user_ops": user}

    def special(x: Any) -> dict[str, Any]:
        return {
            "gamma": tf.math.lgamma(x),
            "digamma": tf.math.digamma(x),
            "incomplete": tf.math.igamma(x, x + 1),
            "beta": tf.math.betainc(x, x + 1, x / (x + 1)),
            "zeta": tf.math.zeta(x + 1, x),
            "bessel": tf.math.bessel_i0e(x),
            "logs": tf.math.cumulative_logsumexp(x),
        }

    user = ["Lgamma", "Digamma", "Igamma", "Betainc", "Zeta", "BesselI0e"]
    found["special"] = special, [{"x": random.uniform(0.5, 3, 6).astype(F32)} for _ in range(2)], {"user_ops": user}

    def chance(x: Any) -> dict[str, Any]:
        return {
            "gamma": tf.random.stateless_gamma([4], [1, 2], tf.abs(x) + 1),
            "whole": tf.random.stateless_uniform([3], [3, 4], 0, 100, tf.int64),
            "normal": tf.random.stateless_truncated_normal([2, 3], [5, 6]),
            "binomial": tf.random.stateless_binomial([4], [7, 8], [10.0] * 4, [0.3] * 4),
        }

    found["chance"] = chance, [{"x": np.arange(4, dtype=F32)}], {"user_ops": ["StatelessRandomBinomial"]}

    def seeded(x: Any) -> dict[str, Any]:
        drawn = {"shape": tf.shape(x), "dtype": tf.float64, "seed": 5, "seed2": 1}
        return {"a": x + tf.raw_ops.RandomStandardNormal(**drawn), "b": x * tf.raw_ops.TruncatedNormal(**drawn)}

    found["seeded"] = seeded, [{"x": np.ones(3)}] * 3, {}

    def searched(x: Any, edges: Any) -> dict[str, Any]:
        return {
            "upper": tf.searchsorted(edges, x, side="right"),
            "lower": tf.searchsorted(edges, x, side="left"),
            "bucket": tf.raw_ops.Bucketize(input=x, boundaries=[0.0, 1.0, 2.5]),
        }

    numbers = [np.sort(random.normal(size=(2, 5)).astype(F32)) for _ in range(2)]
    found["searched"] = searched, [{"x": each * 2, "edges": each} for each in numbers], {"user_ops": ["LowerBound"]}

    def two_islands(x: Any, words: Any) -> dict[str, Any]:
        lengths = tf.cast(tf.strings.unicode_split(words, "UTF-8").row_lengths(), tf.float32)
        weighted = tf.matmul(x, tf.eye(4)) * tf.reduce_sum(lengths)
        return {"y": tf.linalg.expm(weighted * 0.01), "lengths": lengths}

    calls = [{"x": square[n], "words": _strings(*each)} for n, each in enumerate((["größe", "a"], ["", "x"]))]
    found["two_islands"] = two_islands, calls, {"user_ops": ["MatrixExponential", "MatrixSolve"], "free": {"words": [None]}}

    def looped(words: Any, times: Any) -> dict[str, Any]:
        def body(i: Any, text: Any) -> Any:
            return i + 1, tf.cond(
                i % 2 == 0, lambda: tf.strings.unicode_transcode(text + b"\xc3\xa9", "UTF-8", "UTF-8"), lambda: text + "!"
            )

        _, made = tf.while_loop(lambda i, _: i < times, body, [tf.constant(0), words])
        return {"made": made, "points": tf.strings.unicode_decode(made, "UTF-8").values}

    calls = [{"words": _strings("a", "bc"), "times": np.array(n, np.int32)} for n in (0, 1, 5)]
    found["control_flow"] = looped, calls, {}

    def rows_of(x: Any) -> dict[str, Any]:
        ragged = tf.RaggedTensor.from_row_splits(x, [0, 2, 2, 5])
        mapped = tf.map_fn(lambda row: tf.cumsum(row) * 2.0, ragged, fn_output_signature=tf.RaggedTensorSpec([None], tf.float32))
        return {"values": mapped.values, "rows": mapped.row_splits}

    found["ragged_rows"] = rows_of, [{"x": random.normal(size=5).astype(F32)} for _ in range(2)], {}

    def codes(x: Any) -> dict[str, Any]:
        first, second = tf.io.decode_csv(x, [[0], [1.5]])
        return {"first": first, "second": second, "raw": tf.io.decode_raw(x, tf.uint8, fixed_length=5), "hash": tf.fingerprint(x)}

    found["codes"] = codes, [{"x": _strings("1,2.5", "2,")}, {"x": _strings("-7,1e3", ",4")}], {"user_ops": ["DecodeCSV"]}
    return found


def main(names: Sequence[str]) -> None:
    """Record the models of these names, or all."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    for name, (function, calls, more) in models().items():
        if names and name not in names:
            continue
        user = more.pop("user_ops", None)
        try:
            record(name, function, calls, folder=RECORDED, user_ops=user or (), **more)
        except Exception as error:
            if names:
                raise
            print(f"{name}: {str(error)[:500]}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
