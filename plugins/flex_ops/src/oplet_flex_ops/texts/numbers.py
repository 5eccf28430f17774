"""Parsing of numbers with the grammar of C's strtod and strtol, and formatting as C's printf does."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Final

import numpy as np

__all__ = ["PrintFormat", "read_float", "read_integer"]

#: What the C locale counts as white space.
_SPACE = b" \t\n\v\f\r"
_FLOAT = re.compile(rb"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?|(?i:inf(?:inity)?))")
_HEX = re.compile(rb"[+-]?0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)(?:[pP][+-]?\d+)?")
_NAN = re.compile(rb"[+-]?(?i:nan)(?:\(\w*\))?")
_INTEGER = re.compile(rb"[+-]?\d+")
#: Digits of the largest 64-bit number.
_MOST_DIGITS: Final = 20


def read_float(text: bytes, *, single: bool) -> float | None:
    """Parse a float, rounded once to single or double precision; None if the text is not a number.

    Numbers that are too large are infinite. White space around the number is skipped.
    """
    text = text.strip(_SPACE)
    if _FLOAT.fullmatch(text):
        value = float(text)
        return _to_single(value, text) if single else value
    if _NAN.fullmatch(text):
        return math.nan
    if _HEX.fullmatch(text):
        try:
            value = float.fromhex(text.decode("ascii"))
        except OverflowError:
            value = -math.inf if text.startswith(b"-") else math.inf
        return _rounded(value) if single else value
    return None


def read_integer(text: bytes, least: int, most: int) -> int | None:
    """Parse a decimal integer, white space around it allowed; None if it is no number or out of bounds.

    Where `least` is 0, numbers have no minus sign.
    """
    text = text.strip(_SPACE)
    if not _INTEGER.fullmatch(text) or (not least and text.startswith(b"-")):
        return None
    digits = text.lstrip(b"+-").lstrip(b"0")
    if len(digits) > _MOST_DIGITS:
        return None
    value = int(digits or b"0") * (-1 if text.startswith(b"-") else 1)
    return value if least <= value <= most else None


def _rounded(value: float) -> float:
    """Round to single precision."""
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(value))


def _to_single(value: float, text: bytes) -> float:
    """Round to single precision without double rounding: `value` is the double nearest to the number in `text`."""
    found = _rounded(value)
    if not math.isfinite(found) or found == value:
        return found
    other = float(np.nextafter(np.float32(found), np.float32(math.inf if value > found else -math.inf)))
    if (
        found + other
    ) / 2 == value:  # exact in double precision: the double does not tell on which side of the middle the text is
        exact, middle = Decimal(text.decode("ascii")), Decimal(value)
        if exact != middle:
            return max(found, other) if exact > middle else min(found, other)
    return found


class PrintFormat:
    """A printf conversion specification such as "%08.2f".

    Args:
        flag: one of "-", "+", " ", "0", "#", or "" for none.
        width: the least number of characters; -1 for none.
        precision: digits, as the conversion counts them; -1 for its default.
        conversion: "d", "u", "f", "e", "g" or "s".
    """

    def __init__(self, flag: str, width: int, precision: int, conversion: str) -> None:
        self._flag, self._width = flag, max(width, 0)
        if conversion in "us" and flag != "-" and (flag != "0" or conversion == "s"):
            flag = ""
        digits = f".{precision}" if precision >= 0 else ""
        self._format = f"%{flag}{width if width > 0 else ''}{digits}{'d' if conversion == 'u' else conversion}"

    def __call__(self, value: float | int | bytes) -> bytes:
        """Format the value; infinities and NaN are never zero-padded."""
        if isinstance(value, float) and not math.isfinite(value) and self._flag == "0":
            return (b"%f" % value).rjust(self._width)
        return self._format.encode() % value
