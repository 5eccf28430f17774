"""Normalization in pieces gives what `unicodedata.normalize` gives for the whole text, and in a time that grows with its length."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Iterator

import pytest
from plugins.text_ops.tests.meters import CountingMeter, Metered

from oplet.errors import DeadlineError, LimitError
from oplet.kernels.strings import StringMeter
from oplet_text_ops.texts import characters, normalization

#: Starters that compose, alone or with what follows: Latin, Greek, Indic, Hangul by letter and by syllable, halfwidth; and a lone byte.
_STARTERS = [
    *map(chr, (*range(0xC0, 0x180), *range(0x1100, 0x1200))),
    *"가각ㅏaeoAᾂ日ﷺ",
    *"\u0bc6\u0bd7\u0d46\u0d57\uffc2\uff76\udc80",
]
#: Marks that compose, some after others, and those that are made of several.
_COMPOSING = [*"\u0301\u0323\u0308\u0302\u031b\u0327\u0328\u0344\u0345\u0f73\u0f75\u0f81\u3099\uff9e\uff9f"]


def _known(mark: str) -> bool:
    return characters.newer().all.isdisjoint(mark) and characters.assigned(mark)


def _texts(count: int) -> Iterator[str]:
    """Yield texts with short and long runs of marks, behind starters of every kind and at the beginning."""
    draw = random.Random(0)
    marks = [chr(point) for point in range(0x300, 0x1F000) if unicodedata.combining(chr(point)) and _known(chr(point))]
    for _ in range(count):
        text = ""
        for _ in range(draw.randint(1, 8)):
            chosen = draw.choice([_STARTERS, marks, _COMPOSING, [draw.choice(marks)]])
            text += draw.choice(["", draw.choice(_STARTERS)]) + "".join(draw.choices(chosen, k=draw.randint(1, 90)))
        yield text


@pytest.mark.parametrize("form", normalization.FORMS)
def test_pieces_and_long_runs_are_normalized_as_the_whole(form: normalization.Form, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalization, "_PIECE", 20)
    for text in _texts(1500):
        made = normalization.normalize(text.encode("utf-8", "surrogateescape"), StringMeter(), form=form)
        assert made == unicodedata.normalize(form, text).encode("utf-8", "surrogateescape"), ascii(text)


@pytest.mark.parametrize("form", normalization.FORMS)
def test_texts_of_several_pieces_are_normalized_as_the_whole(form: normalization.Form) -> None:
    for text in (
        "é가" * 20_000,
        "\u1100\u1161\u11a8" * 15_000,
        "\u1161" * 40_000,
        ("a" + "\u0323\u0301" * 15) * 2_000,
        "日本" * 20_000,
    ):
        assert normalization.normalize(text.encode(), StringMeter(), form=form) == unicodedata.normalize(form, text).encode()


def test_case_folding_in_pieces_is_that_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [text.encode("utf-8", "surrogateescape") for text in _texts(300)]
    whole = [normalization.case_fold(text, StringMeter()) for text in texts]
    monkeypatch.setattr(normalization, "_PIECE", 20)
    assert [normalization.case_fold(text, StringMeter()) for text in texts] == whole


@pytest.mark.parametrize("compatible", [False, True])
def test_runs_are_of_all_characters_that_are_made_of_marks(compatible: bool) -> None:
    marks = characters._marks(compatible)
    for character in map(chr, range(0x110000)):
        if "\ud800" <= character < "\ue000":
            continue
        classes = [*map(characters.combining_class, characters.decomposition(character, compatible))]
        assert all(classes) == (character in marks), ascii(character)
        assert all(classes) or not classes[0], f"{character!a} begins with a mark, and is not of marks only"


def test_texts_are_cut_only_where_nothing_composes() -> None:
    """Before no character that some composition has as its second."""
    for point in range(0x110000):
        parts = unicodedata.decomposition(chr(point)).split()
        if len(parts) == 2 and not parts[0].startswith("<") and unicodedata.normalize("NFC", chr(point)) == chr(point):
            assert not characters.begins(chr(int(parts[1], 16))), ascii(chr(point))
    assert not any(characters.begins(each) for each in "\u1161\u11a8\u0301\uff9e\uffc2\u0344")
    assert all(characters.begins(each) for each in "a가日é \udc80")


@pytest.mark.parametrize(
    "text", ["a" + "\u0301\u0323" * 100_000, "é" * 200_000, "\u1161" * 200_000], ids=["marks", "letters", "vowels"]
)
def test_one_long_text_looks_at_the_clock(text: str, metered: Metered) -> None:
    meter = metered(CountingMeter())
    normalization.case_fold(text.encode(), StringMeter())
    assert meter.checked >= len(text) >> 15
    metered(CountingMeter(looks=1))
    with pytest.raises(DeadlineError):
        normalization.case_fold(text.encode(), StringMeter())


def test_growth_is_charged_before_it_is_whole(metered: Metered) -> None:
    """U+FDFA becomes 18 characters of 33 bytes."""
    text = "\ufdfa".encode() * 100_000
    metered(CountingMeter(most=2_000_000))
    with pytest.raises(LimitError):
        normalization.normalize(text, StringMeter(), form="NFKC")
    with pytest.raises(LimitError):
        normalization.case_fold(text, StringMeter())
