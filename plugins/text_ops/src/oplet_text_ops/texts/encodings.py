"""Decoding and encoding of strings, as TensorFlow's Unicode ops do with ICU.

Encodings are named as ICU names them, without regard to case and to what is neither a letter nor a digit.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import Node, ensure
from oplet.kernels.options import flag, integer
from oplet.kernels.strings import make_strings
from oplet_text_ops.attributes import options_of
from oplet_text_ops.texts.utf8 import ILL_FORMED, Joined, decode

__all__ = ["Decoded", "Errors", "decoder", "encoder", "read_errors"]

Array = NDArray[Any]
#: Above all code points, and the surrogates, which are none.
_END, _SURROGATES, _SURROGATES_END = 0x110000, 0xD800, 0xE000
#: The last control character that `replace_control_characters` speaks of.
_LAST_CONTROL = 0x1F


class Decoded(NamedTuple):
    """Code points (`ILL_FORMED` for invalid bytes), the byte offset of each in its string, and the count per string."""

    points: Array
    starts: Array
    counts: Array


class Errors(NamedTuple):
    """The error policy for invalid characters: replace by a code point, drop, or raise."""

    policy: str
    replacement: int
    controls: bool

    def apply(self, points: Array, what: str) -> tuple[Array, Array]:
        """Apply the policy: return the resulting code points, and a mask of the original ones that were kept.

        Args:
            points: the code points; negative for invalid bytes.
            what: the beginning of the error message.

        Raises:
            EnsureError: the policy is 'strict', and a code point is no character.
        """
        wrong = (points < 0) | (points >= _END) | ((points >= _SURROGATES) & (points < _SURROGATES_END))
        ensure(self.policy != "strict" or not wrong.any(), lambda: f"{what}, and the option 'errors' is 'strict'.")
        if self.controls:
            wrong |= (points >= 0) & (points <= _LAST_CONTROL)
        if self.policy == "ignore":
            return points[~wrong], ~wrong
        return np.where(wrong, self.replacement, points), np.ones(len(points), bool)


def read_errors(node: Node, *, controls: bool) -> Errors:
    """Read a node's error policy from its options.

    `controls` tells whether the op has the option `replace_control_characters`.

    Raises:
        EnsureError: an option is missing or invalid.
    """
    options = options_of(node)
    policy = options.get("errors", "replace")
    ensure(
        policy in ("strict", "replace", "ignore"),
        lambda: f"the option 'errors' is {policy!r:.60}; it must be 'strict', 'replace' or 'ignore'.",
    )
    replacement = integer(options, "replacement_char", most=_END - 1, default=0xFFFD)
    if _SURROGATES <= replacement < _SURROGATES_END:
        replacement = 0xFFFD
    return Errors(
        policy, replacement, controls and "replace_control_characters" in options and flag(options, "replace_control_characters")
    )


def decoder(name: object) -> Callable[[Sequence[bytes]], Decoded]:
    """Return the function that decodes strings of an encoding, such as "UTF-8".

    Raises:
        EnsureError: the encoding is not supported.
    """
    found = _DECODERS.get(_plain(name))
    ensure(
        found is not None,
        lambda: (
            f"the option 'input_encoding' is {name!r:.60}; this package reads UTF-8, UTF-16 and UTF-32 of a given byte order, "
            "ISO-8859-1 and US-ASCII."
        ),
    )
    return found  # type: ignore[return-value] # ensured


def encoder(name: object) -> Callable[[Array, Array], list[bytes]]:
    """Return the function that encodes code points, given with row splits, to strings of an encoding.

    Raises:
        EnsureError: the encoding is none that TensorFlow encodes to.
    """
    found = _ENCODERS.get(name) if isinstance(name, str) else None
    ensure(found is not None, lambda: f"the option 'output_encoding' is {name!r:.60}; it must be one of {', '.join(_ENCODERS)}.")

    def write(points: Array, splits: Array) -> list[bytes]:
        text = points.astype("<u4").tobytes().decode("utf-32-le")
        bounds = array("q", splits.astype(np.int64).tobytes())

        def encoded(row: int) -> bytes:
            return text[bounds[row] : bounds[row + 1]].encode(found)  # type: ignore[arg-type] # ensured

        return make_strings(encoded, range(len(bounds) - 1), lambda row: 4 * (bounds[row + 1] - bounds[row]))

    return write


def _plain(name: object) -> str:
    return "".join(filter(str.isalnum, name)).lower() if isinstance(name, str) else ""


def _utf8(texts: Sequence[bytes]) -> Decoded:
    joined = Joined(texts)
    begins, points = decode(joined.data)
    ends = np.searchsorted(begins, joined.line_feeds)
    kept = np.ones(len(begins), bool)
    kept[ends] = False
    counts = np.diff(ends, prepend=-1) - 1
    return Decoded(points[kept], begins[kept] - np.repeat(joined.starts[:-1], counts), counts)


def _of_units(order: str, size: int) -> Callable[[Sequence[bytes]], Decoded]:
    """Build a decoder for code units of 2 or 4 bytes (UTF-16, UTF-32)."""

    def read(texts: Sequence[bytes]) -> Decoded:
        rows = [_units(text, np.dtype(f"{order}u{size}")) for text in texts]
        none = np.zeros(0, np.int64)
        points, starts = (np.concatenate([none, *column]) for column in ([row[0] for row in rows], [row[1] for row in rows]))
        return Decoded(points, starts, np.fromiter((len(row[0]) for row in rows), np.int64, len(rows)))

    return read


def _units(text: bytes, kind: np.dtype[Any]) -> tuple[Array, Array]:
    size = kind.itemsize
    points = np.frombuffer(text, kind, len(text) // size).astype(np.int64)
    starts = np.arange(len(points)) * size
    rest = len(text) % size
    surrogate = (points >= _SURROGATES) & (points < _SURROGATES_END)
    if size == 4:
        points[surrogate | (points >= _END)] = ILL_FORMED
    elif surrogate.any():
        low = surrogate & (points >= 0xDC00)
        # A first half that the end of the string follows makes one error with it, as it does with half a unit behind it.
        lonely = rest and surrogate[-1] and not low[-1]
        paired = np.flatnonzero(low[1:] & surrogate[:-1] & ~low[:-1])
        points[paired] = 0x10000 + ((points[paired] & 0x3FF) << 10) + (points[paired + 1] & 0x3FF)
        surrogate[paired] = surrogate[paired + 1] = False
        points[surrogate] = ILL_FORMED
        kept = np.ones(len(points), bool)
        kept[paired + 1] = False
        points, starts = points[kept], starts[kept]
        rest = 0 if lonely else rest
    if rest:
        points, starts = np.append(points, ILL_FORMED), np.append(starts, len(text) - rest)
    return points, starts


def _of_bytes(last: int) -> Callable[[Sequence[bytes]], Decoded]:
    """Build a decoder for single-byte encodings whose bytes are code points up to `last`."""

    def read(texts: Sequence[bytes]) -> Decoded:
        points = np.frombuffer(b"".join(texts), np.uint8).astype(np.int64)
        counts = np.fromiter(map(len, texts), np.int64, len(texts))
        starts = np.arange(len(points)) - np.repeat(np.cumsum(counts) - counts, counts)
        return Decoded(np.where(points > last, ILL_FORMED, points), starts, counts)

    return read


_DECODERS: dict[str, Callable[[Sequence[bytes]], Decoded]] = {
    "utf8": _utf8,
    "utf16be": _of_units(">", 2),
    "utf16le": _of_units("<", 2),
    "utf32be": _of_units(">", 4),
    "utf32le": _of_units("<", 4),
    "iso88591": _of_bytes(0xFF),
    "latin1": _of_bytes(0xFF),
    "usascii": _of_bytes(0x7F),
    "ascii": _of_bytes(0x7F),
}
#: What TensorFlow writes, as Python calls it.
_ENCODERS = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}
