"""Parser of a sentencepiece ModelProto: its pieces and settings.

Format: sentencepiece_model.proto of google/sentencepiece.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from enum import IntEnum

from oplet import ensure
from oplet_text_ops.classic.messages import fields, integer, single, text

__all__ = ["Kind", "Model", "Settings"]

_BYTE = re.compile(rb"<0x([0-9A-F]{2})>")
_UNKNOWN_TEXT = " \u2047 ".encode()


class Kind(IntEnum):
    """Piece types: normal, unknown, control, user-defined, unused, byte."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class Settings:
    """A message of sentencepiece_model.proto (NormalizerSpec or TrainerSpec), whose fields are read by number."""

    def __init__(self, parts: Iterable[bytes]) -> None:
        self._fields = {number: value for part in parts for number, value in fields(part)}

    def integer(self, number: int, default: int) -> int:
        """Return an integer or Boolean field; `default` if the field is missing."""
        return integer(self._fields[number]) if number in self._fields else default

    def text(self, number: int, default: bytes) -> bytes:
        """Return a string field as bytes; `default` if the field is missing or empty."""
        return text(self._fields.get(number, b"")) or default

    def has(self, number: int) -> bool:
        """Return whether the field is present."""
        return number in self._fields


class Model:
    """A parsed sentencepiece ModelProto.

    Args:
        proto: the serialized ModelProto.

    Attributes:
        pieces: the pieces, by id.
        scores: the score of each piece, by id, rounded to float32.
        kinds: the `Kind` of each piece, by id.
        ordinary: the ids of normal, user-defined and unused pieces, by piece.
        reserved: the ids of unknown, control and byte pieces, by piece.
        unknown: the id of the unknown piece.
        merges: whether it is a BPE model; otherwise it is a unigram model.
        byte_fallback: whether unknown characters become pieces of single bytes.
        trainer, normalizer: the messages TrainerSpec and NormalizerSpec.

    Raises:
        EnsureError: the bytes are damaged, or the model is neither BPE nor unigram.
    """

    def __init__(self, proto: bytes) -> None:
        parts = list(fields(proto))
        self.trainer = Settings(text(value) for number, value in parts if number == 2)
        self.normalizer = Settings(text(value) for number, value in parts if number == 3)
        self.pieces: list[bytes] = []
        self.scores: list[float] = []
        self.kinds: list[int] = []
        self.ordinary: dict[bytes, int] = {}
        self.reserved: dict[bytes, int] = {}
        for number, value in parts:
            if number == 1:
                self._add(text(value))
        unknown = [number for number, kind in enumerate(self.kinds) if kind == Kind.UNKNOWN]
        ensure(len(unknown) == 1, lambda: f"its sentencepiece model has {len(unknown)} unknown pieces, and must have one.")
        self.unknown = unknown[0]
        kind = self.trainer.integer(3, 1)
        ensure(kind in (1, 2), lambda: f"its sentencepiece model is of type {kind}; served are unigrams (1) and byte pairs (2).")
        self.merges = kind == 2
        self.byte_fallback = bool(self.trainer.integer(35, 0))
        missing = [byte for byte in range(256) if b"<0x%02X>" % byte not in self.reserved]
        ensure(
            not self.byte_fallback or not missing, "its sentencepiece model falls back to bytes and does not have all of them."
        )
        ensure(
            not self._denormalizes(parts),
            "its sentencepiece model has rules for texts that are put together, which are not served.",
        )

    def number(self, piece: bytes) -> int:
        """Return the id of a piece; the unknown piece's id if the model does not have the piece."""
        return self.reserved.get(piece, self.ordinary.get(piece, self.unknown))

    def byte(self, number: int) -> int:
        """Return the byte value of a byte piece (<0x0A>); -1 for other pieces."""
        found = _BYTE.fullmatch(self.pieces[number]) if self.kinds[number] == Kind.BYTE else None
        return int(found[1], 16) if found else -1

    @property
    def first(self) -> bytes:
        """The begin-of-sentence piece."""
        return self.trainer.text(46, b"<s>")

    @property
    def last(self) -> bytes:
        """The end-of-sentence piece."""
        return self.trainer.text(47, b"</s>")

    @property
    def unknown_text(self) -> bytes:
        """The text that unknown pieces are detokenized to."""
        return self.trainer.text(44, b"") if self.trainer.has(44) else _UNKNOWN_TEXT

    def _add(self, message: bytes) -> None:
        found = dict(fields(message))
        piece, score, kind = text(found.get(1, b"")), single(found.get(2, 0)), integer(found.get(3, 1))
        where = self.ordinary if kind in (Kind.NORMAL, Kind.USER_DEFINED, Kind.UNUSED) else self.reserved
        ensure(
            bool(piece) and piece not in where and math.isfinite(score),
            lambda: f"piece {len(self.pieces)} of its sentencepiece model is empty, there twice, or has no score.",
        )
        where[piece] = len(self.pieces)
        self.pieces.append(piece)
        self.scores.append(score)
        self.kinds.append(kind)

    def _denormalizes(self, parts: list[tuple[int, int | bytes]]) -> bool:
        return any(number == 5 and any(field == 2 and value for field, value in fields(text(part))) for number, part in parts)
