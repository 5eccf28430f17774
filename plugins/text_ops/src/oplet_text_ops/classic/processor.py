"""Tokenization and detokenization by a sentencepiece model.

Numerics: sentencepiece_processor.cc of google/sentencepiece 0.1.96.

BPE tokenization: adjacent pieces are merged, the pair with the best score first.

Numerics: bpe_model.cc of google/sentencepiece 0.1.96.

Text normalization by a sentencepiece model, with the source offset of each output byte.

Numerics: normalizer.cc of google/sentencepiece 0.1.96, which TensorFlow Text has.
"""

from __future__ import annotations

import heapq
import re
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from oplet import charge, checkpoint, ensure
from oplet.kernels.limits import paced
from oplet.kernels.strings import StringMeter
from oplet_text_ops.classic.model import Kind, Model
from oplet_text_ops.classic.unigram import Unigrams, character_length
from oplet_text_ops.sentencepiece.trie import SPACE, PieceTrie

__all__ = ["Ends", "Piece", "Processor"]

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


#: Bytes of scratch for each byte of a text: its characters, and the pairs of them.
_SCRATCH = 320


class Merges:
    """A BPE tokenizer: vocabulary and merge scores of a sentencepiece model.

    Args:
        model: the model.
        own: a pattern of the user-defined pieces, which are never merged; None if there are none.
    """

    def __init__(self, model: Model, own: re.Pattern[bytes] | None) -> None:
        self._model, self._own = model, own
        self._scores = {piece: model.scores[number] for piece, number in model.ordinary.items()}
        self._unused = {piece for piece, number in model.ordinary.items() if model.kinds[number] == Kind.UNUSED}

    def cut(self, text: bytes) -> list[tuple[bytes, int]]:
        """Tokenize a text by BPE; return (piece, id) pairs."""
        charge(_SCRATCH * len(text))
        parts, frozen = self._characters(text)
        before, behind = [index - 1 for index in range(len(parts))], [*range(1, len(parts)), -1]
        agenda: list[tuple[float, int, int, int]] = []
        halves: dict[bytes, tuple[bytes, bytes]] = {}

        def offer(left: int, right: int) -> None:
            if left < 0 or right < 0 or frozen[left] or frozen[right]:
                return
            piece = parts[left] + parts[right]
            score = self._scores.get(piece)
            if score is not None:
                heapq.heappush(agenda, (-score, left, right, len(piece)))
                if piece in self._unused:
                    halves[piece] = parts[left], parts[right]

        for index in paced(range(1, len(parts))):
            offer(index - 1, index)
        while agenda:
            checkpoint()
            _, left, right, size = heapq.heappop(agenda)
            if not parts[left] or not parts[right] or len(parts[left]) + len(parts[right]) != size:
                continue  # one of them was merged with another
            parts[left] += parts[right]
            parts[right] = b""
            behind[left] = behind[right]
            if behind[right] >= 0:
                before[behind[right]] = left
            offer(before[left], left)
            offer(left, behind[left])
        found: list[tuple[bytes, int]] = []
        for part in filter(None, parts):
            self._add(part, halves, found)
        return found

    def _characters(self, text: bytes) -> tuple[list[bytes], list[bool]]:
        """Split a text into characters and user-defined pieces; return them, and flags for those that must not be merged."""
        parts: list[bytes] = []
        frozen: list[bool] = []
        at = 0
        while at < len(text):
            if not len(parts) & 1023:
                checkpoint()
            own = self._own.match(text, at) if self._own else None
            end = own.end() if own else at + character_length(text, at)
            parts.append(text[at:end])
            frozen.append(own is not None)
            at = end
        return parts, frozen

    def _add(self, piece: bytes, halves: dict[bytes, tuple[bytes, bytes]], found: list[tuple[bytes, int]]) -> None:
        """Append a piece to `found`; split a piece marked unused back into the halves that it was merged from."""
        waiting = [piece]
        while waiting:
            part = waiting.pop()
            if part in self._unused and part in halves:
                waiting += reversed(halves[part])
            else:
                found.append((part, self._model.number(part)))


#: Bytes of a piece besides its text, how often a text is copied while it is put together, and what a piece counts for in looks at the clock.
_PIECE, _COPIES, _SLOW = 240, 3, 1024
#: Bytes of the list of a text's pieces.
_ROW = 64


class Piece(NamedTuple):
    """A piece of a text: its bytes, id, and start and end offset in the text."""

    text: bytes
    number: int
    start: int
    end: int


class Ends(NamedTuple):
    """Whether to add begin-of-sentence and end-of-sentence pieces, and whether to reverse the sequence."""

    first: bool
    last: bool
    reverse: bool


class Processor:
    """A ready-to-run sentencepiece model.

    Args:
        proto: the bytes of its ModelProto.

    Raises:
        EnsureError: the bytes are damaged, or a model that is neither BPE nor unigram.
    """

    def __init__(self, proto: bytes) -> None:
        self._model = model = Model(proto)
        self._normalizer = Normalizer(model)
        self._cutter = Merges(model, self._normalizer.own) if model.merges else Unigrams(model)

    def pieces(self, text: bytes, ends: Ends, meter: StringMeter) -> list[Piece]:
        """Tokenize a text into pieces; `meter` charges their memory."""
        model = self._model
        meter.read(_SLOW + len(text))
        meter.add(_ROW, 0)
        normalized, places = self._normalizer.text(text)
        found: list[Piece] = []
        at, after_unknown = 0, False
        for part, number in self._cutter.cut(normalized):
            unknown = number == model.unknown
            meter.add(len(part) + _PIECE * (len(part) if unknown and model.byte_fallback else 1))
            if model.kinds[number] == Kind.CONTROL:
                found.append(Piece(part, number, places[at], places[at]))
                after_unknown = False
                continue
            start, end = places[at], places[at + len(part)]
            at += len(part)
            if unknown and model.byte_fallback:
                last = len(part) - 1
                for index, byte in enumerate(part):
                    piece = b"<0x%02X>" % byte
                    found.append(Piece(piece, model.number(piece), start, end if index == last else start))
            elif unknown and after_unknown:
                meter.read(len(found[-1].text))
                meter.hold(len(found[-1].text))
                found[-1] = found[-1]._replace(text=found[-1].text + part, end=end)
            else:
                found.append(Piece(part, number, start, end))
            after_unknown = unknown
        return self._with_ends(found, ends)

    def text(self, pieces: Sequence[tuple[bytes, int]], ends: Ends, meter: StringMeter) -> bytes:
        """Detokenize (piece, id) pairs to a text; `meter` charges its memory."""
        model = self._model
        meter.hold(_PIECE * len(pieces))
        spaces = any(model.normalizer.integer(number, 1) for number in (3, 4))
        made, waiting = bytearray(), bytearray()
        for piece, number, _, _ in self._with_ends([Piece(*each, 0, 0) for each in pieces], ends):
            byte = model.byte(number)
            meter.read(_SLOW + len(piece))
            meter.add(_COPIES * max(len(piece), len(model.unknown_text) if number == model.unknown else 3), 0)
            if byte >= 0:
                waiting.append(byte)
                continue
            made += _characters(bytes(waiting))
            waiting.clear()
            if model.kinds[number] == Kind.CONTROL:
                continue
            if number == model.unknown:
                made += model.unknown_text if piece == model.pieces[number] else piece
                continue
            made += (piece.removeprefix(SPACE) if spaces and not made else piece).replace(SPACE, b" ")
        return bytes(made + _characters(bytes(waiting)))

    def piece(self, number: int) -> bytes:
        """Return the piece with this id.

        Raises:
            EnsureError: no piece has that id.
        """
        pieces = self._model.pieces
        ensure(
            0 <= number < len(pieces),
            lambda: f"code {number} is none of its sentencepiece model, which has {len(pieces)} pieces.",
        )
        return pieces[number]

    def number(self, piece: bytes) -> int:
        """Return the id of a piece; the unknown piece's id if the model does not have the piece."""
        return self._model.number(piece)

    def _with_ends(self, pieces: list[Piece], ends: Ends) -> list[Piece]:
        first, last = ([Piece(each, self._model.number(each), 0, 0)] for each in (self._model.first, self._model.last))
        made = (first if ends.first else []) + pieces + (last if ends.last else [])
        return made[::-1] if ends.reverse else made


def _characters(data: bytes) -> bytes:
    """Replace bytes that are not valid UTF-8 by U+FFFD, byte by byte."""
    made, at = bytearray(), 0
    while at < len(data):
        found = CHARACTER.match(data, at)
        made += found[0] if found else "\ufffd".encode()
        at = found.end() if found else at + 1
    return bytes(made)
