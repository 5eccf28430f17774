"""Text normalization by a sentencepiece model, with the source offset of each output byte.

Numerics: normalizer.cc of google/sentencepiece 0.1.96, which TensorFlow Text has.
"""

from __future__ import annotations

import re
import struct

import numpy as np

from oplet import ensure
from oplet.kernels.strings import StringMeter
from oplet_text_ops.classic.model import Kind, Model
from oplet_text_ops.sentencepiece.trie import SPACE, PieceTrie

__all__ = ["Normalizer"]

#: A character of UTF-8. Surrogates and what is longer than it must be are none.
CHARACTER = re.compile(
    rb"[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]"
    rb"|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}",
    re.DOTALL,
)
_REPLACEMENT = "\ufffd".encode()
#: Bytes of one replacement; real ones have up to 33.
_LONGEST = 1024
#: Bytes of a byte of a normalized text: itself, twice, and its place.
_PLACE = 12


class Normalizer:
    """The text normalization of one sentencepiece model."""

    def __init__(self, model: Model) -> None:
        rules = model.normalizer
        table = rules.text(2, b"")
        units = replacements = b""
        if table:
            size = struct.unpack("<I", table[:4])[0] if len(table) > 4 else len(table)
            ensure(
                4 + size <= len(table) and size % 4 == 0,
                "the rules of its sentencepiece model are damaged; convert the model again.",
            )
            units, replacements = table[4 : 4 + size], table[4 + size :]
        self._trie = PieceTrie(np.frombuffer(units, "<u4").astype(np.uint32))
        self._replacements = replacements
        self._prefix, self._merge, self._escape = (bool(rules.integer(number, 1)) for number in (3, 4, 5))
        self._suffix = bool(model.trainer.integer(24, 0))
        own = sorted((piece for piece, number in model.ordinary.items() if model.kinds[number] == Kind.USER_DEFINED), key=len)
        #: The pieces that users defined, which are taken as they are, the longest first.
        self.own = re.compile(b"|".join(map(re.escape, reversed(own)))) if own else None

    def text(self, text: bytes) -> tuple[bytes, list[int]]:
        """Normalize a text; return the result, and for each of its bytes, and for its end, the offset in the original text."""
        at = 0
        if self._merge:
            while at < len(text):
                found, length = self._next(text, at)
                if found != b" ":
                    break
                at += length
        if at == len(text):
            return b"", []
        space = SPACE if self._escape else b" "
        meter, made, places = StringMeter(), bytearray(), []
        if self._prefix and not self._suffix:
            made += space
            places += [at] * len(space)
        after_space = self._merge
        while at < len(text):
            found, length = self._next(text, at)
            if after_space:
                found = found.lstrip(b" ")
            if found:
                escaped = found.replace(b" ", space)
                meter.add(_PLACE * len(escaped), 0)
                made += escaped
                places += [at] * len(escaped)
                after_space = self._merge and found.endswith(b" ")
            at += length
        if self._merge:
            while made.endswith(space):
                at = places[len(made) - len(space)]
                del made[-len(space) :], places[-len(space) :]
        if self._prefix and self._suffix:
            made += space
            places += [at] * len(space)
        places.append(at)
        return bytes(made), places

    def _next(self, text: bytes, at: int) -> tuple[bytes, int]:
        """Normalize the next unit of the text at `at`; return the replacement, and the number of bytes consumed."""
        if self.own is not None and (own := self.own.match(text, at)):
            return own[0], len(own[0])
        *_, (place, end) = [(-1, -1), *self._trie.prefixes(text, at)]
        if place >= 0:
            stop = self._replacements.find(b"\0", place)
            found = self._replacements[place : stop if stop >= 0 else len(self._replacements)]
            ensure(len(found) <= _LONGEST, f"a rule of its sentencepiece model makes more than {_LONGEST} bytes of a character.")
            return found, end - at
        character = CHARACTER.match(text, at)
        return (character[0], len(character[0])) if character else (_REPLACEMENT, 1)
