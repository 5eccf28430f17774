"""Strings that kernels make: charged in portions before they are made, with looks at the clock by their bytes.

A kernel that makes strings uses one of these, whatever its inputs are: a million references to one long text are a tensor of a few
megabytes, and what is made of them may be a million long texts.

`make_strings` is for one string of each item, `StringMeter` for everything else. Regular expressions (`compile_pattern`) are RE2's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from oplet.ops.ensure import charge, checkpoint, ensure, foresee

__all__ = ["STRING", "StringMeter", "compile_pattern", "foresee_match", "make_strings"]

Item = TypeVar("Item")
Made = TypeVar("Made")

#: Bytes of a bytes object besides its characters, with the reference to it.
STRING = 41
#: Bytes that are made between two charges, bytes that are read between two looks at the clock, and strings of a portion.
_PORTION, _READ, _FEW = 1 << 18, 1 << 20, 256
#: The bytes that a step counts for besides those that it reads.
_STEP = 512
#: Bytes of a reference, and parts that are joined at once.
_REFERENCE, _JOINED = 8, 1 << 12


class StringMeter:
    """Checks the memory and time that one call of a kernel takes to make strings against the limits of the run.

    Attributes:
        total: the bytes of strings that were counted.
    """

    __slots__ = ("_charged", "_read", "total")

    def __init__(self) -> None:
        self.total = self._charged = self._read = 0

    def add(self, characters: int, count: int = 1) -> None:
        """Count strings that are about to be made; a string that is copied several times counts as often.

        Args:
            characters: an upper bound of their total bytes.
            count: the number of strings.

        Raises:
            LimitError: all counted strings take more memory than is allowed.
            DeadlineError: the run took longer than is allowed.
        """
        self.total += STRING * count + characters
        if self.total - self._charged > _PORTION:
            checkpoint()
            charge(self.total)
            self._charged = self.total

    def hold(self, nbytes: int) -> None:
        """Check, without counting, memory that is about to be allocated temporarily, in addition to the counted strings."""
        if nbytes > _PORTION:
            checkpoint()
            charge(self.total + nbytes)

    def read(self, nbytes: int) -> None:
        """Count bytes that a step processes, plus some overhead; check the deadline about once a megabyte."""
        self._read += nbytes + _STEP
        if self._read > _READ:
            self._read = 0
            checkpoint()

    def join(self, separator: bytes, parts: Sequence[bytes]) -> bytes:
        """Return the parts, joined by `separator`; the string is counted first.

        Many are joined a few at a time, as `bytes.join` holds 80 bytes for each.
        """
        nbytes = sum(map(len, parts)) + len(separator) * len(parts)
        self.read(nbytes + _REFERENCE * len(parts))
        self.add(nbytes)
        if len(parts) <= _JOINED:
            return separator.join(parts)
        made = bytearray()
        for first in range(0, len(parts), _JOINED):
            if first:
                made += separator
            made += separator.join(parts[first : first + _JOINED])
        self.hold(nbytes)
        return bytes(made)

    def join_windows(self, separator: bytes, parts: Sequence[bytes], width: int) -> Iterator[bytes]:
        """Yield the joined strings of each `width` consecutive parts (n-grams); they are counted first."""
        step = max(_FEW // width, 1)
        for first in range(0, len(parts) - width + 1, step):
            last = min(first + step, len(parts) - width + 1)
            near = parts[first : last + width - 1]
            # Each part lies in up to `width` of the joined ones.
            nbytes = min(width, last - first) * (sum(map(len, near)) + len(separator) * len(near))
            if nbytes + _REFERENCE * width * (last - first) > _READ:
                for at in range(first, last):
                    yield self.join(separator, parts[at : at + width])
                continue
            self.read(nbytes)
            self.add(nbytes, last - first)
            for at in range(first, last):
                yield separator.join(parts[at : at + width])

    def settle(self, estimated: int, made: int) -> None:
        """Correct the count: strings that were counted as `estimated` bytes have `made` bytes."""
        self.total += made - estimated
        self._charged = min(self._charged, self.total)


def make_strings(
    make: Callable[[Item], Made],
    items: Sequence[Item],
    most: Callable[[Item], int],
    *,
    growth: int = 1,
    scratch: int = 0,
    size: Callable[[Made], int] = len,  # type: ignore[assignment] # what is made are strings, where nothing else is said
    meter: StringMeter | None = None,
) -> list[Made]:
    """Return `make(item)`, a string, for each item; memory is charged first, and the deadline checked in between.

    Args:
        make: makes the string of an item.
        items: the items.
        most: returns the most bytes of the string of an item, before they are multiplied by `growth`; for strings that is `len`.
        growth: the most bytes of a string for each byte of `most`.
        scratch: bytes that `make` holds for each byte of `most`, besides its result.
        size: returns the bytes of a result.
        meter: counts the strings; None for a new one.
    """
    meter = meter or StringMeter()
    made: list[Made] = []
    for first in range(0, len(items), _FEW):
        part = items[first : first + _FEW]
        counted = sum(map(most, part))
        meter.read(counted + _STEP * len(part))
        if (growth + scratch) * counted <= _READ:
            meter.add(growth * counted, len(part))
            made += map(make, part)
            meter.settle(growth * counted, sum(map(size, made[first:])))
            continue
        for item in part:  # one by one
            counted = most(item)
            meter.read(counted)
            meter.add(growth * counted)
            meter.hold(scratch * counted)
            made.append(make(item))
            meter.settle(growth * counted, size(made[-1]))
    return made


#: Seconds that RE2 takes for a byte of a text and an instruction of the pattern, for a byte of a pattern, and for a class or repetition in it;
#: bytes that it takes for these two.
_MATCH, _PARSE, _EXPAND, _LETTER, _CLASS = 6e-9, 1e-6, 2e-4, 64, 32 << 10


def compile_pattern(pattern: bytes) -> Any:
    """Compile a pattern of RE2 (the package google-re2), whose `fullmatch` and `search` take bytes; raise for a syntax error.

    RE2's time is linear in the text's length and in the pattern's, and its memory has a bound: 8 MB for a pattern, which is compiled in
    each run and then dropped. Nothing interrupts a match; one that would take until the deadline is not begun. Patterns and texts are UTF-8,
    as in TensorFlow.

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
    foresee(_MATCH * length * pattern.programsize)


def _weigh(pattern: bytes) -> None:
    """Charge what RE2 takes to compile a pattern, and look whether there is the time; classes of Unicode are hundreds of ranges."""
    parts = pattern.count(b"\\p") + pattern.count(b"\\P") + pattern.count(b"{")
    charge(_LETTER * len(pattern) + _CLASS * parts)
    foresee(_PARSE * len(pattern) + _EXPAND * parts)
