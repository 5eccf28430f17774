"""Operators on strings give what TensorFlow's give, and refuse what they refuse."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from plugins.flex_ops.tests.nodedefs import flex_options
from plugins.flex_ops.tests.oracle import tensorflow_results

from oplet import Limits, TensorType
from oplet.errors import LimitError, OpletError
from oplet_flex_ops.texts.fingerprints import farm_fingerprint, murmur_hash, sip_hash
from oplet_flex_ops.texts.numbers import read_float, read_integer
from oplet_testing import Spec, call_op

Array = NDArray[Any]
S, B, I32, I64 = TensorType.STRING, TensorType.BOOL, TensorType.INT32, TensorType.INT64


def strings(*items: bytes) -> Array:
    array = np.empty(len(items), object)
    array[:] = items
    return array


def scalar(value: bytes) -> Array:
    return np.array(value, object)


def _random_strings(seed: int, count: int) -> Array:
    """ASCII, other characters in UTF-8, raw bytes, white space, digits."""
    choose = random.Random(seed)
    alphabets = ["ab, ", "aÄßé\u017f\u0131\u0130日本🙂 ", "09+-.eE", " \t\n\v\f\r", "ΣΑΣ ς", "".join(map(chr, range(256)))]
    found = []
    for _ in range(count):
        alphabet = choose.choice(alphabets)
        text = "".join(choose.choice(alphabet) for _ in range(choose.randrange(12))).encode()
        found.append(choose.randbytes(choose.randrange(6)) if choose.random() < 0.2 else text)
    return strings(*found)


TEXTS = _random_strings(0, 200)


def ours(
    op: str, inputs: Sequence[Array], types: Sequence[TensorType], attributes: Mapping[str, Any] = {}, **options: Any
) -> Any:
    """The outputs of one node in this package."""
    return call_op(
        f"Flex{op}",
        list(inputs),
        [Spec(type, []) for type in types],
        custom_options=flex_options(op, attributes),
        **{"plugins": ["oplet-flex-ops"], **options},
    )


def check(
    op: str, inputs: Sequence[Array], types: Sequence[TensorType], attributes: Mapping[str, Any] = {}, **options: Any
) -> None:
    """Both give the same, or both refuse."""
    tf = pytest.importorskip("tensorflow")
    try:
        wanted: Any = tensorflow_results(op, inputs, attributes)
    except (tf.errors.OpError, ValueError) as error:
        wanted = str(error)
    try:
        found: Any = ours(op, inputs, types, attributes, **options)
    except OpletError as error:
        found = str(error)
    story = f"{op} {dict(attributes)} {[value.tolist() for value in inputs]}\nTensorFlow: {wanted}\noplet: {found}"
    assert isinstance(wanted, str) == isinstance(found, str), story[:3000]
    if not isinstance(wanted, str):
        for one, other in zip(found, wanted):
            assert one.shape == other.shape, story[:3000]
            same = np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
            assert same or (one.dtype == other.dtype == object and one.ravel().tolist() == other.ravel().tolist()), story[:3000]


SINGLE: list[tuple[str, TensorType, dict[str, Any]]] = [
    ("StringLower", S, {}), ("StringUpper", S, {}), ("StringStrip", S, {}), ("StringLength", I32, {}),
    ("StringLength", I32, {"unit": "UTF8_CHAR"}), ("EncodeBase64", S, {}), ("EncodeBase64", S, {"pad": True}),
    ("StringLower", S, {"encoding": "latin1"}), ("StringToHashBucketFast", I64, {"num_buckets": 2**63 - 1}),
    ("StringToHashBucketFast", I64, {"num_buckets": 10}), ("StringToHashBucket", I64, {"num_buckets": 1000}),
    ("StringToHashBucketStrong", I64, {"num_buckets": 2**63 - 1, "key": [2**63 - 1, -5]}),
    ("StringToHashBucketStrong", I64, {"num_buckets": 7, "key": [1]}), ("StringToHashBucketFast", I64, {"num_buckets": 0}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "type", "attributes"), SINGLE, ids=lambda value: value if isinstance(value, str) else "")
def test_one_value_for_each_string(op: str, type: TensorType, attributes: dict[str, Any]) -> None:
    check(op, [TEXTS.reshape(2, 100)], [type], attributes)


#: Letters, or the other case of letters, that Unicode has since version 14; TensorFlow's ICU knows version 13.
NEWER = {
    0x19B,
    0x264,
    0x2C2F,
    0x2C5F,
    *range(0x1C89, 0x1C8B),
    *range(0xA7C0, 0xA7DF),
    *range(0x10570, 0x105C0),
    *range(0x10D50, 0x10D90),
}


@pytest.mark.parametrize("op", ["StringLower", "StringUpper"])
def test_case_in_utf8_follows_unicode(op: str) -> None:
    letters = [chr(point) for point in range(1, 0x110000) if point not in NEWER]
    cased = [letter for letter in letters if letter.upper() != letter or letter.lower() != letter]
    assert len(cased) > 2000
    check(op, [strings(*(letter.encode() for letter in cased))], [S], {"encoding": "utf-8"})
    check(op, [TEXTS], [S], {"encoding": "utf-8"})


def test_hashes_of_every_length_are_tensorflow_s() -> None:
    pytest.importorskip("tensorflow")
    choose = random.Random(5)
    texts = [choose.randbytes(size) for size in [*range(200), 255, 256, 257, 1000, 4096]]
    buckets = 2**63 - 1
    for op, hash in {
        "StringToHashBucketFast": farm_fingerprint,
        "StringToHashBucket": murmur_hash,
        "StringToHashBucketStrong": lambda text: sip_hash((3, -7), text),
    }.items():
        attributes = {"num_buckets": buckets} | ({"key": [3, -7]} if op.endswith("Strong") else {})
        [wanted] = tensorflow_results(op, [strings(*texts)], attributes)
        assert [hash(text) % buckets for text in texts] == wanted.tolist()


@pytest.mark.parametrize(
    "text", [b"", b"YQ", b"YQ==", b"YQ=", b"Y", b"YWI=", b"YWJj", b"Y W", b"+/", b"-_", b"YR", b"====", b"YQ==YQ==", b"YQ==="]
)
def test_base64_is_decoded_or_refused(text: bytes) -> None:
    check("DecodeBase64", [strings(text)], [S])


@pytest.mark.parametrize("shape", ["scalars", "each", "columns"])
@pytest.mark.parametrize("unit", ["BYTE", "UTF8_CHAR"])
def test_parts_of_strings(unit: str, shape: str) -> None:
    long = strings(*(b"0123456789" + text for text in TEXTS[:100]))
    places = {"scalars": np.array(3), "each": np.arange(100) % 9 - 4, "columns": np.arange(5)}[shape].astype(np.int32)
    given = long.reshape(20, 5) if shape == "columns" else long
    for length in (2, 0, 100, -1):
        check("Substr", [given, places, np.full_like(places, length)], [S], {"T": I32, "unit": unit})


def test_positions_outside_of_a_string_are_refused() -> None:
    for position in (-4, -3, 0, 3, 4):
        for unit in ("BYTE", "UTF8_CHAR"):
            place = np.array(position, np.int64)
            check(
                "Substr",
                [scalar("aé日".encode() if unit == "UTF8_CHAR" else b"abc"), place, np.array(1, np.int64)],
                [S],
                {"T": I64, "unit": unit},
            )


NUMBERS = [
    b"1", b"+1", b"-1", b" 1 ", b"\t1\n", b"\v1\f", b"", b"0x1A", b"0x1.8p3", b"1e5", b"1e", b"1.5f", b".5", b"5.", b".", b"inf",
    b"Infinity", b"nan", b"-nan", b"nan(1)", b"nan(", b"1_0", b"1" * 40, b"1e400", b"-1e400", b"1e-400", b"4294967295",
    b"4294967296", b"18446744073709551615", b"18446744073709551616", b"-0", b"- 1", b"1 2", b"1\0", b"++1", b"-9223372036854775808",
    b"9223372036854775808", b"00012", b"2147483648", b"3.4028236e38", b"1.0000000596046448", b"1.00000005960464477539062500001",
    b"1.000000059604644775390625", b"infinit", b"0x", b"-0x.8", b"0x1p", b"1d5", b"7.006492321624085e-46", b"1.4e-45", b"0x1.fffffffp127",
]  # fmt: skip


@pytest.mark.parametrize("type", ["FLOAT32", "FLOAT64", "INT32", "INT64", "UINT32", "UINT64"])
def test_numbers_are_read_as_tensorflow_reads_them(type: str) -> None:
    tf = pytest.importorskip("tensorflow")
    _compare_numbers(tf, NUMBERS, type)


def _compare_numbers(tf: Any, texts: Sequence[bytes], type: str) -> int:
    dtype, kept = getattr(tf, type.lower()), 0
    for text in texts:
        try:
            wanted: Any = tf.raw_ops.StringToNumber(string_tensor=text, out_type=dtype).numpy()
        except tf.errors.InvalidArgumentError:
            wanted = None
        if type.startswith("FLOAT"):
            found: Any = read_float(text, single=type == "FLOAT32")
        else:
            found = read_integer(text, int(np.iinfo(type.lower()).min), int(np.iinfo(type.lower()).max))
        if wanted is None or found is None:
            assert found is None, (text, found)
            assert wanted is None, (text, wanted)
            continue
        kept += 1
        assert np.asarray(found, wanted.dtype).tobytes() == wanted.tobytes() or (found != found and wanted != wanted), (
            text,
            found,
            wanted,
        )
    return kept


@pytest.mark.sweep
@pytest.mark.parametrize("type", ["FLOAT32", "FLOAT64", "INT32", "UINT64"])
def test_random_numbers_are_read_as_tensorflow_reads_them(type: str) -> None:
    tf = pytest.importorskip("tensorflow")
    choose = random.Random(1)
    texts = [
        "".join(choose.choice("0123456789.eE+-x npif ") for _ in range(choose.randrange(1, 8))).encode() for _ in range(20_000)
    ]
    for _ in range(20_000):
        mantissa = str(choose.randrange(10 ** choose.randrange(1, 25)))
        at = choose.randrange(len(mantissa) + 1)
        texts.append(f"{mantissa[:at]}.{mantissa[at:]}e{choose.randrange(-60, 60)}".encode())
    middle = np.random.default_rng(2).integers(0, 2**31 - 2**24, 5000, dtype=np.uint32).view(np.float32)
    texts += [f"{(float(value) + float(np.nextafter(value, np.float32(np.inf)))) / 2:.60g}".encode() for value in middle]
    assert _compare_numbers(tf, texts, type) > 1000


FORMATS: list[dict[str, Any]] = [
    {}, {"precision": 2}, {"scientific": True}, {"shortest": True}, {"shortest": True, "precision": 3}, {"width": 10},
    {"width": 10, "fill": "0"}, {"width": 10, "fill": "-"}, {"fill": "+"}, {"fill": " "}, {"width": 8, "precision": 1, "fill": "0"},
    {"shortest": True, "scientific": True}, {"fill": "x"}, {"fill": "00"}, {"width": 0}, {"precision": 0}, {"width": 5, "fill": "+"},
]  # fmt: skip
VALUES: dict[str, Any] = {
    "float32": [1.5, -0.1, 1e10, np.nan, np.inf, -np.inf, 0, -0.0, 123456.789, 3.4e38], "float64": [1 / 3, -1e300, 5e-300, np.inf],
    "float16": [1.5, 0.1, -7], "int8": [-1, 100], "int32": [5, -5, 2**31 - 1], "int64": [-(2**63), 7], "uint8": [5, 255], "uint16": [9],
    "uint32": [2**32 - 1], "uint64": [2**64 - 1], "bool": [True, False], "complex64": [1 + 2j, -1.5j], "complex128": [1e-9 + 1j],
    "object": [b"ab", b"", b"\xff\0"],
}  # fmt: skip


@pytest.mark.parametrize("dtype", VALUES)
def test_values_are_written_as_tensorflow_writes_them(dtype: str) -> None:
    values = np.array(VALUES[dtype], dtype)
    type = S if dtype == "object" else TensorType[dtype.upper()]
    for format in FORMATS:
        check("AsString", [values], [S], {"T": type, **format})


def test_joins() -> None:
    grid = TEXTS[:24].reshape(2, 3, 4)
    check("StringJoin", [grid, scalar(b"-"), grid[::-1]], [S], {"N": 3, "separator": "\0"})
    check("StringJoin", [scalar(b"a"), scalar(b"b")], [S], {"N": 2})
    check("StringJoin", [TEXTS[:3], TEXTS[:4]], [S], {"N": 2})
    check("StringJoin", [TEXTS[:1], TEXTS[:4]], [S], {"N": 2})
    for axes in ([0], [1, 0], [0, 1], [2, 0], [-1], [0, 1, 2], [0, 0], [0, -3], [3], [-4], []):
        for keep in (False, True):
            check("ReduceJoin", [grid, np.array(axes, np.int32)], [S], {"keep_dims": keep, "separator": "+"})
    check("ReduceJoin", [grid, np.array(1, np.int32)], [S])
    check("ReduceJoin", [TEXTS[:0].reshape(0, 3), np.array(0, np.int32)], [S])


@pytest.mark.parametrize(
    ("ids", "count"),
    [([1, 0, 1], 2), ([0, 0, 0], 1), ([2, 1, 0], 4), ([0, 2, 1], 2), ([0, -1, 1], 3), ([0, 1], 2), ([], 0), ([0, 1, 0], -1)],
)
def test_segments_are_joined(ids: list[int], count: int) -> None:
    types = {"Tindices": I64, "Tnumsegments": I32, "separator": ":"}
    given = [np.array(ids, np.int64), np.array(count, np.int32)]
    check("UnsortedSegmentJoin", [TEXTS[:3], *given], [S], types)
    check("UnsortedSegmentJoin", [TEXTS[:12].reshape(3, 2, 2), *given], [S], types)


def test_splits() -> None:
    outputs = [I64, S, I64]
    for delimiter in (b"", b",", b" ,", b"ab", b"\xc3"):
        for skip in (True, False):
            check("StringSplit", [TEXTS, scalar(delimiter)], outputs, {"skip_empty": skip})
    for separator in (b"", b",", b", ", b"aa", b" ", b"\xc3"):
        for most in (-1, 0, 1, 2, -2):
            check("StringSplitV2", [TEXTS, scalar(separator)], outputs, {"maxsplit": most})
    check("StringSplitV2", [TEXTS[:0], scalar(b"")], outputs)
    check("StringSplitV2", [TEXTS.reshape(2, 100), scalar(b"")], outputs)


NGRAMS = {
    "separator": "|", "ngram_widths": [1, 3], "left_pad": "L", "right_pad": "R", "pad_width": 0, "preserve_short_sequences": False,
    "Tsplits": I64,
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {}, {"pad_width": -1}, {"pad_width": 1}, {"pad_width": 5}, {"ngram_widths": [4], "preserve_short_sequences": True},
        {"ngram_widths": [6], "pad_width": 1, "preserve_short_sequences": True}, {"ngram_widths": [2, 2]},
        {"left_pad": "", "right_pad": "", "pad_width": -1}, {"separator": ""},
    ],
    ids=str,
)  # fmt: skip
def test_runs_of_neighbours(change: dict[str, Any]) -> None:
    for splits in ([0, 0, 3, 10], [0, 10], [0, 1, 2, 4, 10], [0, 5], [1, 10], [0, 6, 5, 10], [0, 11]):
        check("StringNGrams", [TEXTS[:10], np.array(splits, np.int64)], [S, I64], {**NGRAMS, **change})


@pytest.mark.parametrize("type", ["UINT8", "INT16", "INT32", "FLOAT32", "FLOAT64", "COMPLEX64", "FLOAT16", "BOOL"])
def test_raw_bytes_are_numbers(type: str) -> None:
    given = strings(b"\0\1\2\3\4\5\6\7", b"\xff" * 8, b"abcdefgh").reshape(3, 1)
    for little in (True, False):
        attributes = {"out_type": TensorType[type], "little_endian": little}
        if type != "BOOL":
            check("DecodeRaw", [given], [TensorType[type]], attributes)
            check("DecodePaddedRaw", [strings(b"ab", b"", b"0123456789"), np.array(8, np.int32)], [TensorType[type]], attributes)
    attributes = {"out_type": TensorType[type]}
    for wrong in (strings(b"\0\1\1"), strings(b"\0\1\0\1\0\1\0\1", b"\0\1\0\1")):
        check("DecodeRaw", [wrong], [TensorType[type]], attributes)


def test_a_string_that_grows_beyond_the_memory_is_refused() -> None:
    limits = Limits(max_arena_bytes=1 << 20)
    long = scalar(b"x" * 100_000)
    for op, inputs, attributes in (
        ("StringJoin", [long, strings(*[b""] * 1000)], {"N": 2}),
        ("ReduceJoin", [strings(*[b""] * 1000), np.array([0], np.int32)], {"separator": b"x" * 100_000}),
        ("StaticRegexReplace", [scalar(b"x" * 10_000)], {"pattern": ".", "rewrite": b"y" * 1000}),
        ("AsString", [np.zeros(1000, np.int32)], {"T": I32, "width": 1 << 20}),
    ):
        with pytest.raises(LimitError):
            ours(op, inputs, [S], attributes, limits=limits)
