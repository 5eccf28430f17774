"""Each op, in models of TensorFlow's converter, gives what TensorFlow Text gives: tokens, offsets and texts, for any bytes."""

from __future__ import annotations

import functools
import random
from typing import Any

import pytest
from plugins.text_ops.tests.oracle import cases, converted, differences, hard_texts, run, skip_without_re2
from plugins.text_ops.tests.pieces import sentences
from tests.places import SWEEP

NAMES = (
    "whitespace", "wordpiece", "wordpiece_words", "wordpiece_suffix", "wordpiece_spaces", "bert", "bert_cased", "bert_detokenized", "packed",
    "normalized", "normalized_cased", "bytes", "folded", "NFC", "NFD", "NFKC", "NFKD", "decoded", "characters", "encoded", "transcoded",
    "coerced", "lengths", "scripts", "split_0", "split_1", "split_2", "split_3",
)  # fmt: skip
#: Those that the converter takes seconds for.
SLOW = {"packed", "bert", "bert_cased", "bert_detokenized", "bytes", "whitespace", "split_1", "split_2", "split_3"}


@functools.cache
def known() -> dict[str, Any]:
    return cases()


def test_every_case_is_compared() -> None:
    assert set(known()) == set(NAMES)


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.sweep) if name in SLOW else name for name in NAMES])
def test_two_thousand_texts_give_what_tensorflow_text_gives(name: str) -> None:
    skip_without_re2(name)
    model, answer = converted(known()[name])
    ours, pick = run(model), random.Random(3)
    for texts in (hard_texts(2000, pick), sentences(300, pick), [], [b""]):
        assert not differences(ours(texts), answer(texts))


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_many_texts_and_sentences_give_what_tensorflow_text_gives(name: str) -> None:
    """100,000 texts with OPLET_EVERY_CASE, and 10,000 sentences."""
    skip_without_re2(name)
    model, answer = converted(known()[name])
    ours, pick = run(model), random.Random(4)
    for number in range(1 + 10 // SWEEP):
        texts = sentences(10_000, pick) if number == 0 else hard_texts(10_000, pick)
        assert not differences(ours(texts), answer(texts)), f"batch {number}"
