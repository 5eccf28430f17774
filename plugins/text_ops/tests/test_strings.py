"""N-grams, bits of code points, segments that share a sequence, fragments of documents and slices."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from plugins.text_ops.tests.pieces import OneOp, random_texts, sentences, strings

from oplet.errors import OpletError
from oplet_text_ops.ops.round_robin import fitting
from oplet_text_ops.sentences.fragments import fragments


def ngrams(width: int, separator: str = " ", outputs: int = 2) -> OneOp:
    options = {"width": width, "axis": -1, "string_separator": separator, "RAGGED_RANK": outputs - 1}
    return OneOp("TFText>NgramsStringJoin", options, ["object", *["int64"] * (outputs - 1)])


def test_strings_of_a_row_are_joined() -> None:
    values, splits = ngrams(2)(strings(b"a", b"b", b"c", b"d", b"e"), np.array([0, 3, 3, 4, 5]))
    assert (values.tolist(), splits.tolist()) == ([b"a b", b"b c"], [0, 2, 2, 2, 2])
    values, outer, inner = ngrams(1, "", 3)(strings(b"a", b"b"), np.array([0, 1, 1]), np.array([0, 2]))
    assert (values.tolist(), outer.tolist(), inner.tolist()) == ([b"a", b"b"], [0, 1, 1], [0, 2])


def test_strings_of_a_matrix_are_joined_along_its_rows() -> None:
    [values] = ngrams(2, "_", 1)(strings(b"a", b"b", b"\xff", b"c", b"d", b"").reshape(2, 3))
    assert values.tolist() == [[b"a_b", b"b_\xff"], [b"c_d", b"d_"]]
    [values] = ngrams(4, "_", 1)(strings(b"a", b"b").reshape(1, 2))
    assert values.shape == (1, 0)


@pytest.mark.parametrize(("splits", "width", "message"), [([0, 3], 1, "row splits"), ([0, 2], 0, "the option 'width' is 0")])
def test_damaged_rows_of_strings_are_refused(splits: list[int], width: int, message: str) -> None:
    with pytest.raises(OpletError, match=message):
        ngrams(width)(strings(b"a", b"b"), np.array(splits))


def bits(value: int, count: int) -> list[float]:
    return [float(value >> bit & 1) for bit in range(count)]


def test_code_points_become_bits() -> None:
    options = {"word_length": 3, "bits_per_char": 5, "replacement_char": 30}
    op = OneOp("TFText>Utf8Binarize", options, ["float32"])
    # A lead byte that lost its last byte is replaced once, two stray bytes one by one.
    [rows] = op(strings(b"", b"ab", "\u00e9x\u4e2dy".encode(), b"\xe4\xb8A", b"\x80\x81"))
    wanted = [[], [97, 98], [0xE9, 120, 0x4E2D], [30, 65], [30, 30]]
    assert rows.tolist() == [
        [*itertools.chain(*(bits(point, 5) for point in row)), *[0.0] * (15 - 5 * len(row))] for row in wanted
    ]


def test_a_replacement_below_zero_keeps_its_sign() -> None:
    [rows] = OneOp("TFText>Utf8Binarize", {"word_length": 1, "bits_per_char": 34, "replacement_char": -2}, ["float32"])(
        strings(b"\xff")
    )
    assert rows.tolist() == [[0.0, *[1.0] * 33]]


def test_a_row_of_bits_has_an_end() -> None:
    with pytest.raises(OpletError, match="are more than a row can have"):
        OneOp("TFText>Utf8Binarize", {"word_length": 65536, "bits_per_char": 65536, "replacement_char": 0}, ["float32"])(
            strings(b"")
        )


def shared(sizes: tuple[int, ...], length: int) -> list[int]:
    """How many values fit, one turn after the other."""
    kept, left = [0] * len(sizes), max(length, 0)
    while left > 0 and kept != list(sizes):
        for segment, size in enumerate(sizes):
            if kept[segment] < size and left > 0:
                kept[segment] += 1
                left -= 1
    return kept


def test_segments_take_turns() -> None:
    rows = np.array(list(itertools.product(range(6), repeat=3)))
    for length in range(-1, 17):
        assert fitting(rows, length).tolist() == [shared(tuple(row), length) for row in rows.tolist()]


def trimmed(op: str, outputs: list[str]) -> list[Any]:
    answers = OneOp(op, {"N": 2}, outputs)(
        np.array(5, np.int32),
        np.arange(9, dtype=np.int32),
        np.arange(10, 14, dtype=np.int32),
        np.array([0, 6, 9]),
        np.array([0, 1, 4]),
    )
    return [answer.tolist() for answer in answers]


def test_what_does_not_fit_is_trimmed_or_masked() -> None:
    assert trimmed("TFText>RoundRobinTrim", ["int32", "int32", "int64", "int64"]) == [
        [0, 1, 2, 3, 6, 7, 8], [10, 11, 12], [0, 4, 7], [0, 1, 3],
    ]  # fmt: skip
    assert trimmed("TFText>RoundRobinGenerateMasks", ["bool", "bool"]) == [
        [True] * 4 + [False] * 2 + [True] * 3, [True, True, True, False],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([0, 2], [0, 1, 2], r"its segments have \[1, 2\] rows"),
        ([0, 3], [0, 2], "must have row splits"),
        ([0, 2, 1, 2], [0, 1, 1, 2], "must have row splits"),
        ([], [], "must have row splits"),
    ],
)
def test_damaged_segments_are_refused(first: list[int], second: list[int], message: str) -> None:
    values = strings(b"a", b"b")
    with pytest.raises(OpletError, match=message):
        OneOp("TFText>RoundRobinTrim", {"N": 2}, ["object", "object", "int64", "int64"])(
            np.array(5, np.int32), values, values, np.array(first, np.int64), np.array(second, np.int64)
        )


#: Documents and what TensorFlow Text 2.21 gives for them: where fragments begin and end, their properties, where their marks are.
DOCUMENTS: list[tuple[str, list[tuple[int, int, int, int]]]] = [
    ("", []),
    (" \n ", []),
    ("no mark at all", [(0, 14, 0, -1)]),
    ("One. Two!? Three", [(0, 4, 1, 3), (5, 10, 3, 8), (11, 16, 0, -1)]),
    ("I.B.M. rose (a lot!). Really...! Yes", [(0, 6, 3, 0), (7, 20, 5, 18), (20, 21, 1, 20), (22, 32, 3, 28), (33, 36, 0, -1)]),
    ("He said \u201cno.\u201d Then :-) he left", [(0, 14, 1, 13), (14, 26, 1, 23), (27, 34, 0, -1)]),
    # The wide space is three bytes, of which one is skipped; the full stop counts as a bracket behind one.
    ("\u3000\u4f60\u597d\u3002\u597d\uff01\uff09\u3002", [(1, 12, 1, 9), (12, 24, 5, 15)]),
    ("So... what? (Yes.)] 'x'", [(0, 5, 1, 2), (6, 11, 1, 10), (12, 19, 5, 16), (20, 23, 0, -1)]),
    ("\U0001f600 ok:)! D:< No.\u2026. A", [(0, 10, 3, 7), (11, 14, 1, 12), (15, 22, 3, 18), (23, 24, 0, -1)]),
    ("a. b! ) c", [(0, 2, 1, 1), (3, 5, 1, 4), (6, 9, 0, -1)]),
]


def test_documents_are_cut_where_marks_end_sentences() -> None:
    for text, wanted in DOCUMENTS:
        assert fragments(text.encode()) == wanted, text


def test_fragments_of_all_documents_follow_one_another() -> None:
    op = OneOp("SentenceFragmentsV2", {}, ["int64"] * 5)
    answers = op(strings(*(text.encode() for text, _ in DOCUMENTS)))
    rows = [row for _, wanted in DOCUMENTS for row in wanted]
    assert [answer.tolist() for answer in answers] == [*map(list, zip(*rows)), [len(wanted) for _, wanted in DOCUMENTS]]
    assert [answer.tolist() for answer in op(strings())] == [[]] * 5


def test_a_size_is_sliced_out_of_a_shape_of_another_type() -> None:
    options = {"shrink_axis_mask": 1, "begin_mask": 0, "end_mask": 0, "ellipsis_mask": 0, "new_axis_mask": 0}
    [size] = OneOp("StridedSlice", options, ["int64"])(*(np.array(each, np.int32) for each in ([7, 1], [0], [1], [1])))
    assert (size.dtype, size.shape, int(size)) == (np.int64, (), 7)


@pytest.mark.parametrize(
    ("masks", "bounds", "index"),
    [
        ({}, ([0, 3, 1], [2, 0, 4], [1, -1, 2]), np.s_[0:2, 3:0:-1, 1:4:2]),
        ({"begin_mask": 1, "end_mask": 2}, ([1, 1], [1, 1], [1, 1]), np.s_[:1, 1:]),
        ({"ellipsis_mask": 1, "shrink_axis_mask": 2}, ([0, -1], [0, 0], [1, 1]), np.s_[..., -1]),
        ({"new_axis_mask": 1}, ([0, 1], [0, 2], [1, 1]), np.s_[None, 1:2]),
    ],
)
def test_slices_are_numpy_s(masks: dict[str, int], bounds: Any, index: Any) -> None:
    values = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    [answer] = OneOp("StridedSlice", masks, ["float32"])(values, *(np.array(each, np.int32) for each in bounds))
    np.testing.assert_array_equal(answer, values[index])


@pytest.mark.parametrize(
    ("masks", "bounds", "message"),
    [
        ({}, ([0], [1], [0]), "the step in dimension 0 is 0"),
        ({"shrink_axis_mask": 1}, ([3], [4], [1]), "has no index 3 in dimension 0"),
        ({}, ([0] * 4, [1] * 4, [1] * 4), "is sliced in 4 dimensions"),
        ({"ellipsis_mask": 3}, ([0, 0], [1, 1], [1, 1]), "more than one ellipsis"),
        ({}, ([0], [1, 1], [1]), "must be as many numbers"),
    ],
)
def test_slices_that_lead_outside_are_refused(masks: dict[str, int], bounds: Any, message: str) -> None:
    with pytest.raises(OpletError, match=message):
        OneOp("StridedSlice", masks, ["float32"])(np.zeros((3, 4, 5), np.float32), *(np.array(each, np.int32) for each in bounds))


@pytest.mark.sweep
def test_random_documents_are_tensorflow_text_s() -> None:
    pytest.importorskip("tensorflow_text", reason="pip install tensorflow-text to compare with its own kernels")
    from tensorflow_text.python.ops import state_based_sentence_breaker_op

    pick = random.Random(0)
    parts = [
        *":)(-D.'!?>] xy", "...", "\u2026", "A.B.", "U.S.", "\u3002", "\uff01", "''", "\u201d", ":-)", "XD", "O.O", "\u3000", ">:(", "\u300d",
    ]  # fmt: skip
    documents = ["".join(pick.choices(parts, k=pick.randint(0, 18))).encode() for _ in range(20_000)]
    documents += random_texts(20_000, pick) + [b" ".join(sentences(3, pick)) for _ in range(1000)]
    ops = state_based_sentence_breaker_op.gen_state_based_sentence_breaker_op
    *columns, counts = (each.numpy().tolist() for each in ops.sentence_fragments_v2(np.array(documents, object)))
    wanted = iter(zip(*columns))
    for document, count in zip(documents, counts):
        assert fragments(document) == [next(wanted) for _ in range(count)], document


@pytest.mark.sweep
def test_random_bytes_have_tensorflow_text_s_bits() -> None:
    text = pytest.importorskip("tensorflow_text", reason="pip install tensorflow-text to compare with its own kernels")
    op = OneOp("TFText>Utf8Binarize", {"word_length": 16, "bits_per_char": 24, "replacement_char": 65533}, ["float32"])
    texts = strings(*random_texts(20_000, random.Random(0)))
    np.testing.assert_array_equal(op(texts)[0], text.utf8_binarize(texts).numpy())
