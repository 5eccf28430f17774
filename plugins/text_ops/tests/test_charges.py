"""Tables and rules of a model that make much of little are charged before it is made."""

from __future__ import annotations

import tracemalloc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from plugins.text_ops.tests.meters import CountingMeter, Metered
from plugins.text_ops.tests.pieces import strings

from oplet.errors import LimitError
from oplet.kernels.strings import StringMeter
from oplet_text_ops.classic.processor import Normalizer as ClassicNormalizer
from oplet_text_ops.classic.unigram import Unigrams
from oplet_text_ops.nodes import each_text
from oplet_text_ops.sentencepiece.normalizer import Normalizer, Spaces
from oplet_text_ops.sentencepiece.trie import PieceTrie
from oplet_text_ops.texts.normalization import case_fold

_MOST = 16 << 20


def peak(call: Any) -> int:
    """The most bytes that are allocated during a call that is refused."""
    tracemalloc.start()
    try:
        with pytest.raises(LimitError):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def trie_of(byte: int) -> Any:
    """The double array of one key of one byte, whose value is 0."""
    units = np.full(512, 0x80000000, np.uint32)
    units[0] = 256 << 10
    units[256 ^ byte] = 1 << 10 | 0x100 | byte
    units[256 ^ byte ^ 1] = 0x80000000
    return units


@pytest.mark.parametrize("count", [1, 200])
def test_rules_of_one_byte_to_a_thousand_are_charged_before(count: int, metered: Metered) -> None:
    """In a text, and in words that are normalized together."""
    normalizer = Normalizer(PieceTrie(trie_of(ord("a"))), b"x" * 1000 + b"\0", Spaces(True, True, True))
    assert normalizer.text(b"ab") == "\u2581".encode() + b"x" * 1000 + b"b"
    metered(CountingMeter(most=_MOST))
    texts = [b"a" * (1_000_000 // count)] * count
    assert peak(lambda: normalizer.text(texts[0]) if count == 1 else normalizer.words(texts)) < 2 * _MOST


def test_rules_of_a_training_format_are_charged_before(metered: Metered) -> None:
    rules = SimpleNamespace(
        text=lambda *_: (2048).to_bytes(4, "little") + trie_of(ord("a")).tobytes() + b"x" * 1000, integer=lambda *_: 1
    )
    model: Any = SimpleNamespace(normalizer=rules, trainer=SimpleNamespace(integer=lambda *_: 0), ordinary={}, kinds=[])
    normalizer = ClassicNormalizer(model)
    assert normalizer.text(b"a")[0].endswith(b"x" * 1000)
    metered(CountingMeter(most=_MOST))
    assert peak(lambda: normalizer.text(b"a" * 1_000_000)) < 2 * _MOST


def test_beginnings_of_a_long_piece_are_charged_before(metered: Metered) -> None:
    model: Any = SimpleNamespace(ordinary={b"a" * 60_000: 1}, kinds=[2, 1], scores=[0.0, 0.0], unknown=0)
    metered(CountingMeter(most=_MOST))
    assert peak(lambda: Unigrams(model)) < 2 * _MOST


def test_references_to_one_text_are_charged_as_often_as_they_are_copied(metered: Metered) -> None:
    texts = strings(*[b"a" * 65_536] * 2000).tolist()
    meter = metered(CountingMeter(most=_MOST))
    assert peak(lambda: each_text(case_fold, texts)) < 2 * _MOST
    assert meter.charged < 2 * _MOST


def test_a_meter_corrects_what_was_estimated(metered: Metered) -> None:
    meter = metered(CountingMeter())
    strings_meter = StringMeter()
    strings_meter.add(1 << 20)
    strings_meter.settle(1 << 20, 10)
    strings_meter.add(1 << 20)
    assert meter.charged < (1 << 20) + 200
    assert strings_meter.join(b"-", [b"a"] * 10_000) == b"-".join([b"a"] * 10_000)
