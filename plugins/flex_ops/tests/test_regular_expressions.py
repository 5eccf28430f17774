"""Regular expressions match and replace as in TensorFlow, whatever the pattern, the text or the replacement is."""

from __future__ import annotations

import random
import sys
from typing import Any

import numpy as np
import pytest
from plugins.flex_ops.tests.nodedefs import flex_options
from tests.places import SWEEP

from oplet import TensorType
from oplet.errors import OpletError
from oplet.kernels.strings import StringMeter, compile_pattern
from oplet_flex_ops.texts.regular import replace_all, replace_first
from oplet_testing import Spec, call_op

S = TensorType.STRING
ATOMS = [
    "a", "b", "é", "日", ".", r"\d", r"\w", r"\s", r"\W", "[ab]", "[^a]", "[[:alpha:]]", r"\pL", r"\p{Greek}", "^", "$", r"\b", r"\B", r"\A", r"\z",
    "(a)", "(b|é)", "(?:ab)", "(?i:a)", "(?P<name>b)", "()", "a|b", r"\C", r"\Qa.b\E", r"\x41", r"\.", "(?s:.)", "(?m)^", r"\1", "(?=a)", "[z-a]",
    "(", ")", "(?U)a+", " ", r"[\x{100}-\x{10FFFF}]",
]  # fmt: skip
REPEATS = ["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}", "**", "{1001}"]
REWRITES = [b"", b"x", rb"<\0>", rb"\1", rb"\1\1-", rb"\2", rb"\\", rb"\q", b"a\\", rb"\9", "é".encode(), b"\0", rb"[\0\\\0]"]
TEXTS = [
    b"", b"a", b"ab", b"aab b", b"bbb", "éaé".encode(), "日本 a日".encode(), b"A1 b_2", b"a\nb\n", b"\xff\x80a", b"\xe6\x97", b"aaaaaaaa", b"a.b",
    "ΑΒΓ abc".encode(), b"a\0b", "🙂a🙂".encode(), b"\xed\xa0\x80a",
]  # fmt: skip


def _pattern(choose: random.Random) -> bytes:
    parts = [choose.choice(ATOMS) + choose.choice(REPEATS) for _ in range(choose.randrange(1, 5))]
    text = "".join(parts)
    if choose.random() < 0.2:
        text = f"({text}){choose.choice(REPEATS)}"
    return text.encode() + (choose.choice([b"\xff", b"\0", b""]) if choose.random() < 0.05 else b"")


def _ours(compute: Any) -> Any:
    try:
        return compute()
    except OpletError:
        return None


def _sweep(count: int, seed: int) -> None:
    """Compare patterns with all texts; what one of both refuses, the other one refuses."""
    tf = pytest.importorskip("tensorflow")
    choose, valid = random.Random(seed), 0
    for _ in range(count):
        pattern, rewrite, every = _pattern(choose), choose.choice(REWRITES), choose.random() < 0.7
        try:
            matches = tf.raw_ops.RegexFullMatch(input=TEXTS, pattern=pattern).numpy().tolist()
            made = tf.raw_ops.RegexReplace(input=TEXTS, pattern=pattern, rewrite=rewrite, replace_global=every).numpy().tolist()
        except (tf.errors.InvalidArgumentError, UnicodeDecodeError):  # the latter for the message of the former
            matches = made = None
        compiled = _ours(lambda pattern=pattern: compile_pattern(pattern))
        if compiled is None or matches is None:
            assert compiled is None, pattern
            assert matches is None, pattern
            continue
        valid += 1
        replace = replace_all if every else replace_first
        assert [compiled.fullmatch(text) is not None for text in TEXTS] == matches, pattern
        assert [replace(compiled, rewrite, text, StringMeter()) for text in TEXTS] == made, (pattern, rewrite, every)
    assert count // 4 < valid < count


def test_patterns_match_and_replace_as_in_tensorflow() -> None:
    _sweep(1000, 0)


@pytest.mark.sweep
def test_many_patterns_match_and_replace_as_in_tensorflow() -> None:
    _sweep(100_000 // SWEEP, 1)


def _node(op: str, inputs: list[Any], type: TensorType, **attributes: Any) -> Any:
    strings = [np.array(value, object) for value in inputs]
    options = flex_options(op, attributes)
    return call_op(f"Flex{op}", strings, [Spec(type, [])], custom_options=options, plugins=["oplet-flex-ops"])[0].tolist()


def test_patterns_are_attributes_or_inputs() -> None:
    texts = [b"a1b22", b"x"]
    assert _node("StaticRegexReplace", [texts], S, pattern="[0-9]+", rewrite=r"<\0>") == [b"a<1>b<22>", b"x"]
    assert _node("RegexReplace", [texts, b"[0-9]+", rb"<\0>"], S) == [b"a<1>b<22>", b"x"]
    assert _node("RegexReplace", [texts, b"[0-9]+", b"-"], S, replace_global=False) == [b"a-b22", b"x"]
    assert _node("StaticRegexFullMatch", [texts], TensorType.BOOL, pattern="[a-z]+") == [False, True]
    assert _node("RegexFullMatch", [texts, b"a.*"], TensorType.BOOL) == [True, False]


def test_a_refused_pattern_is_named() -> None:
    for pattern in ("(", r"(a)\1", "a(?=b)", "*"):
        with pytest.raises(OpletError, match="is no regular expression that RE2 takes"):
            _node("StaticRegexFullMatch", [[b"a"]], TensorType.BOOL, pattern=pattern)
    with pytest.raises(OpletError, match="must be one string"):
        _node("RegexFullMatch", [[b"a"], [b"a", b"b"]], TensorType.BOOL)


def test_patterns_on_which_others_backtrack_for_ages_end() -> None:
    text = b"a" * 100_000 + b"!"
    for pattern in ("(a+)+b", "(a|aa)*c", "(.*)*x", "(a?){50}a{50}$"):
        assert _node("StaticRegexFullMatch", [[text]], TensorType.BOOL, pattern=pattern) == [False]


def test_without_re2_a_node_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(OpletError, match="pip install google-re2"):
        _node("StaticRegexFullMatch", [[b"a"]], TensorType.BOOL, pattern="a")
