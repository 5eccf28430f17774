"""What TensorFlow Text refuses, or would read out of bounds, is refused in a sentence; and what is at the edge of that is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plugins.text_ops.tests.pieces import OneOp, strings

from oplet.errors import OpletError

MOST = np.iinfo(np.int64).max


def parts(*feeds: Any) -> list[Any]:
    return OneOp("TFText>ByteSplitByOffsets", {}, ["object", "int64"])(*feeds)


def int32s(*values: int) -> Any:
    return np.array(values, np.int32)


def test_parts_of_strings_may_overlap_and_be_empty() -> None:
    found, splits = parts(strings(b"abc", b"", b"de"), int32s(0, 1, 3, 0), int32s(2, 3, 3, 1), np.array([0, 3, 3, 4]))
    assert (found.tolist(), splits.tolist()) == ([b"ab", b"bc", b"", b"d"], [0, 3, 3, 4])


@pytest.mark.parametrize(
    ("starts", "ends", "splits", "message"),
    [
        ([-1], [1], [0, 1], "part 0 goes from -1 to 1 of a string of 3 bytes"),
        ([2], [1], [0, 1], "part 0 goes from 2 to 1"),
        ([0], [4], [0, 1], "part 0 goes from 0 to 4"),
        ([0, 0], [1], [0, 2], "2 starts, and .* 1 ends"),
        ([0], [1], [0, 2], "row splits that begin with 0, never fall and end with the number of values, 1"),
        ([0], [1], [0, 0, 1], "3 row splits for 1 strings"),
        ([0], [1], [0, MOST, -MOST, 1], "row splits that begin with 0"),
    ],
)
def test_parts_outside_of_their_strings_are_refused(starts: Any, ends: Any, splits: Any, message: str) -> None:
    with pytest.raises(OpletError, match=message):
        parts(strings(b"abc"), int32s(*starts), int32s(*ends), np.array(splits))


def test_row_splits_whose_differences_overflow_are_refused() -> None:
    options = {"OUTPUT_RAGGED_RANK": 1, "PARAMS_RAGGED_RANK": 1, "Tindices": 4, "Tsplits": 4, "Tvalues": 2}
    with pytest.raises(OpletError, match="row splits that never fall"):
        OneOp("RaggedGather", options, ["int64", "int32"])(np.array([0, MOST, -MOST, 3]), int32s(1, 2, 3), np.array([1]))


def decoded(text: bytes, **options: Any) -> list[Any]:
    given = {"input_encoding": "UTF-8", "errors": "replace", "replacement_char": 0xFFFD, **options}
    return OneOp("UnicodeDecode", given, ["int64", "int32"])(strings(text))


def test_errors_of_an_encoding_are_replaced_left_out_or_refused() -> None:
    assert decoded(b"a\xff\n")[1].tolist() == [97, 0xFFFD, 10]
    assert decoded(b"a\xff\n", errors="ignore")[1].tolist() == [97, 10]
    assert decoded(b"a\xff\n", replace_control_characters=1, replacement_char=65)[1].tolist() == [97, 65, 65]
    assert decoded(b"a\n", errors="strict")[1].tolist() == [97, 10]
    with pytest.raises(OpletError, match="no character of its encoding, and the option 'errors' is 'strict'"):
        decoded(b"a\xff", errors="strict")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_encoding": "Shift-JIS"}, "the option 'input_encoding' is 'Shift-JIS'; this package reads UTF-8"),
        ({"errors": "raise"}, "the option 'errors' is 'raise'"),
        ({"replacement_char": 0x110000}, "the option 'replacement_char' is 1114112"),
    ],
)
def test_options_that_say_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OpletError, match=message):
        decoded(b"a", **options)


def test_forms_of_normalization_have_four_names() -> None:
    with pytest.raises(OpletError, match="the option 'normalization_form' is 'NFX'; it must be one of NFC, NFD, NFKC, NFKD"):
        OneOp("NormalizeUTF8", {"normalization_form": "NFX"}, ["object"])(strings(b"a"))


def test_scripts_of_what_is_no_code_point_are_minus_one() -> None:
    [found] = OneOp("UnicodeScript", {}, ["int32"])(int32s(-1, 0x110000, 65, 0x10FFFF))
    assert found.tolist() == [-1, -1, 25, 103]


def split(text: bytes, delimiter: bytes, kept: bytes = b"") -> list[bytes]:
    pytest.importorskip("re2", reason="pip install google-re2 to split by regular expressions")
    outputs = ["object", "int64", "int64", "int64"]
    one = OneOp("RegexSplitWithOffsets", {}, outputs)
    found: list[bytes] = one(strings(text), strings(delimiter).reshape(()), strings(kept).reshape(()))[0].tolist()
    return found


def test_a_string_ends_at_its_first_nul_when_it_is_split() -> None:
    assert split(b"a b\0c d", rb"(\s)") == [b"a", b"b"]


@pytest.mark.parametrize(
    ("delimiter", "message"),
    [
        (rb"(\s*)", "matches an empty text, and splitting by it would not end"),
        (rb"\s", "has no group around the delimiter"),
        (rb"x|(\s)", "the first group .* has no part in a match"),
        (rb"(\s", "is no regular expression that RE2 takes"),
        (rb"(a)\1", "is no regular expression that RE2 takes"),
    ],
)
def test_patterns_that_part_nothing_are_refused(delimiter: bytes, message: str) -> None:
    with pytest.raises(OpletError, match=message):
        split(b"x a b", delimiter)
