"""Regular expressions with RE2's syntax and semantics, through the package google-re2.

RE2's time is linear in the text's length and in the pattern's, and its memory has a bound: 8 MB for a pattern, which is compiled in each run
and then dropped. Nothing interrupts a match; one that would take until the deadline is not begun. Patterns and texts are UTF-8, as in
TensorFlow.
"""

from __future__ import annotations

from typing import Any

from oplet.ops.ensure import charge, ensure, foresee

__all__ = ["compile_pattern", "foresee_match"]

#: Seconds that RE2 takes for a byte of a text and an instruction of the pattern, for a byte of a pattern, and for a class or repetition in it;
#: bytes that it takes for these two.
_STEP, _PARSE, _EXPAND, _LETTER, _CLASS = 6e-9, 1e-6, 2e-4, 64, 32 << 10


def compile_pattern(pattern: bytes) -> Any:
    """Compile an RE2 pattern, whose `fullmatch` and `search` take bytes; raise for a syntax error.

    Raises:
        EnsureError: RE2 refuses the pattern, or is not installed.
    """
    try:
        import re2
    except ImportError as error:
        ensure(False, f"regular expressions need RE2, which cannot be imported ({error}): pip install google-re2.")
    options = re2.Options()
    options.log_errors = False
    _weigh(pattern)
    try:
        compiled = re2.compile(pattern, options)
        re2.purge()  # the module keeps 128 patterns with up to 8 MB of states for each
        return compiled
    except re2.error as error:
        reason = error.args[0] if error.args else error
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        ensure(False, f"{pattern!r:.80} is no regular expression that RE2 takes: {text}.")


def foresee_match(pattern: Any, length: int) -> None:
    """Check that the deadline leaves time for a match or search in `length` bytes, by an estimate of RE2's slowest case.

    Raises:
        DeadlineError: the match would take longer than the deadline allows.
    """
    foresee(_STEP * length * pattern.programsize)


def _weigh(pattern: bytes) -> None:
    """Charge what RE2 takes to compile a pattern, and look whether there is the time; classes of Unicode are hundreds of ranges."""
    parts = pattern.count(b"\\p") + pattern.count(b"\\P") + pattern.count(b"{")
    charge(_LETTER * len(pattern) + _CLASS * parts)
    foresee(_PARSE * len(pattern) + _EXPAND * parts)
