"""Tokenization and detokenization by a sentencepiece model.

Numerics: sentencepiece_processor.cc of google/sentencepiece 0.1.96.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from oplet import ensure
from oplet.kernels.strings import StringMeter
from oplet_text_ops.classic.merging import Merges
from oplet_text_ops.classic.model import Kind, Model
from oplet_text_ops.classic.normalizer import CHARACTER, Normalizer
from oplet_text_ops.classic.unigram import Unigrams
from oplet_text_ops.sentencepiece.trie import SPACE

__all__ = ["Ends", "Piece", "Processor"]


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
