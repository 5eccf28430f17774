"""Words in rows of code points, and tflite-support's words between white space: their rules, one code point at a time."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from plugins.text_ops.tests.pieces import OneOp, random_texts, strings

from oplet.errors import OpletError
from oplet_text_ops.texts.code_points import WHITE_SPACES, word_scripts_of

SPACES = {ord(each.decode()) for each in WHITE_SPACES}
KINDS = ["int32", "int64", "int64", "int64", "int64"]


def script_of(point: int) -> int:
    return int(word_scripts_of(np.array([point]))[0])


def words(rows: list[list[int]], by_script: bool, keep: bool) -> list[list[int]]:
    """What TensorFlow Text defines, one code point at a time."""
    values: list[int] = []
    inner: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    outer: list[int] = []
    for row in rows:
        outer.append(len(starts))
        open_, last, skipped, was_space = False, -1, 0, False
        for place, point in enumerate(row):
            space = point in SPACES
            script = script_of(point) if by_script else last
            parts = script != last or (keep and space != was_space) if by_script else space
            if parts:
                if open_:
                    ends.append(place - skipped)
                open_, last = False, script
            if not space or keep:
                if not open_:
                    starts.append(place)
                    inner.append(len(values))
                    open_ = True
                values.append(point)
            skipped = skipped + 1 if space and not keep else 0
            was_space = space
        if open_:
            ends.append(len(row) - skipped)
    return [values, [*inner, len(values)], starts, ends, [*outer, len(starts)]]


def rows_of(texts: list[bytes]) -> list[list[int]]:
    return [[ord(each) for each in text.decode("utf-8", "replace")] for text in texts]


def feeds(rows: list[list[int]]) -> tuple[Any, Any]:
    return np.array([point for row in rows for point in row], np.int32), np.cumsum([0, *map(len, rows)])


ODD = [
    [],
    [32],
    [97, 32, 32],
    [32, 97, 0x3B1, 98, 32, 99],
    [49, 32, 50, 32],
    [-1, 97, 0x110000, 0x110001, 32, -5],
    [0x3000, 0x4E2D, 0x3042, 0x85, 0xA0],
    [],
]


@pytest.mark.parametrize(("op", "keep"), [("UnicodeScript", False), ("UnicodeScript", True), ("Whitespace", False)])
def test_words_of_code_points_are_what_tensorflow_text_defines(op: str, keep: bool) -> None:
    node = OneOp(f"{op}TokenizeWithOffsets", {"keep_whitespace": int(keep)} if keep else {}, KINDS)
    for rows in (ODD, rows_of(random_texts(300, random.Random(2))), [], [[]], [[97]]):
        wanted = words(rows, op == "UnicodeScript", keep)
        assert [found.tolist() for found in node(*feeds(rows))] == wanted


def test_words_of_code_points_are_tensorflow_text_s_own() -> None:
    pytest.importorskip("tensorflow", reason="pip install tensorflow-text to compare with its own kernels")
    pytest.importorskip("tensorflow_text", reason="pip install tensorflow-text to compare with its own kernels")
    from tensorflow_text.python.ops import unicode_script_tokenizer, whitespace_tokenizer

    rows = ODD + rows_of(random_texts(2000, random.Random(3)))
    points, splits = feeds(rows)
    scripts = unicode_script_tokenizer.gen_unicode_script_tokenizer.unicode_script_tokenize_with_offsets
    for keep in (False, True):
        theirs = scripts(input_values=points, input_splits=splits, keep_whitespace=keep)
        ours = OneOp("UnicodeScriptTokenizeWithOffsets", {"keep_whitespace": int(keep)}, KINDS)(points, splits)
        for our, their in zip(ours, theirs):
            np.testing.assert_array_equal(our, their.numpy())
    spaced = whitespace_tokenizer.gen_whitespace_tokenizer.whitespace_tokenize_with_offsets
    theirs = spaced(input_values=points, input_splits=splits)
    for our, their in zip(OneOp("WhitespaceTokenizeWithOffsets", {}, KINDS)(points, splits), theirs):
        np.testing.assert_array_equal(our, their.numpy())


def test_splits_of_32_bits_stay_so() -> None:
    kinds = ["int32", "int32", "int64", "int64", "int32"]
    points, splits = feeds(ODD)
    found = OneOp("WhitespaceTokenizeWithOffsets", {}, kinds)(points, splits.astype(np.int32))
    assert [each.dtype.name for each in found] == kinds


@pytest.mark.parametrize("splits", [[], [0, 4], [1, 3], [0, 2, 1, 3]])
def test_rows_that_are_none_are_refused(splits: list[int]) -> None:
    with pytest.raises(OpletError, match="row splits"):
        OneOp("WhitespaceTokenizeWithOffsets", {}, KINDS)(np.array([1, 2, 3], np.int32), np.array(splits, np.int64))


# tftext:WhitespaceTokenizer ------------------------------------------------------------------------------------


def test_words_are_padded_to_a_matrix() -> None:
    texts = strings(b"this is a test", b"three token sentence", b"", b"  many  more\ttokens than\n that ")
    [found] = OneOp("tftext:WhitespaceTokenizer", {}, ["object"])(texts.reshape(2, 2))
    assert found.shape == (2, 2, 5)
    assert found[0].tolist() == [[b"this", b"is", b"a", b"test", b""], [b"three", b"token", b"sentence", b"", b""]]
    assert found[1].tolist() == [[b""] * 5, [b"many", b"more", b"tokens", b"than", b"that"]]


def test_words_come_with_row_splits_for_each_dimension() -> None:
    texts = strings(b"a b c", b"d e f", b"g h", b"i j k l", b"m", b"n o p q r").reshape(3, 2)
    values, outer, inner = OneOp("tftext:WhitespaceTokenizer", {}, ["object", "int64", "int64"])(texts)
    assert (b" ".join(values), outer.tolist()) == (b"a b c d e f g h i j k l m n o p q r", [0, 2, 4, 6])
    assert inner.tolist() == [0, 3, 6, 8, 12, 13, 18]


def test_a_text_of_no_words_at_all_has_none() -> None:
    [found] = OneOp("tftext:WhitespaceTokenizer", {}, ["object"])(strings(b"", b" "))
    assert found.shape == (2, 0)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b"a\rb\x0bc", [b"a\rb\x0bc"]),  # no white space to Plan 9
        ("a\u00a0b\u200bc\ufeffd".encode(), [b"a", b"b", b"c", b"d"]),
        (b"one t\xff two", [b"one", b"t"]),
        ("one t\ufffd two".encode(), [b"one", b"t"]),
        (b"one \xe4\xb8", [b"one"]),
        ("\U0001f600 x".encode(), ["\U0001f600".encode(), b"x"]),
        (b"\xed\xa0\x80 y", [b"\xed\xa0\x80", b"y"]),
        (b"\xf4\x90\x80\x80 y", []),
    ],
)
def test_a_text_ends_where_it_is_no_longer_utf_8(text: bytes, wanted: list[bytes]) -> None:
    values, splits = OneOp("tftext:WhitespaceTokenizer", {}, ["object", "int64"])(strings(text))
    assert (values.tolist(), splits.tolist()) == (wanted, [0, len(wanted)])


def test_another_number_of_row_splits_is_refused() -> None:
    with pytest.raises(OpletError, match="outputs of row splits"):
        OneOp("tftext:WhitespaceTokenizer", {}, ["object", "int64", "int64"])(strings(b"a"))
