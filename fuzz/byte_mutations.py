"""Mutations of a file's bytes: offsets, vtables, lengths, or any others."""

from __future__ import annotations

import struct

from fuzz.choices import Choices

__all__ = ["damage"]

_WORDS = (0, 1, 2, 4, 8, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFF0, 0xFFFFFFFF)


def damage(data: bytes, choices: Choices) -> bytes:
    """The bytes with one mutation."""
    if not data:
        return choices.raw(1 + choices.below(16))
    kind = choices.below(12)
    size = len(data)
    at = choices.below(size)
    out = bytearray(data)
    if kind <= 1:
        out[at] ^= 1 << choices.below(8)
    elif kind == 2:
        out[at] = choices.choice((0, 1, 0x7F, 0x80, 0xFE, 0xFF))
    elif kind <= 5 and size >= 4:  # an aligned word: an offset or a length
        struct.pack_into("<I", out, at % (size - 3) // 4 * 4, choices.choice(_WORDS))
    elif kind == 6 and size >= 4:
        where = at % (size - 3) // 4 * 4
        word = struct.unpack_from("<I", out, where)[0]
        struct.pack_into("<I", out, where, (word + choices.choice((1, -1, 4, -4, 8, 64, -64, size))) % 2**32)
    elif kind == 7 and size >= 2:  # a slot of a vtable
        struct.pack_into("<H", out, at % (size - 1) // 2 * 2, choices.choice(_WORDS) & 0xFFFF)
    elif kind == 8:
        del out[at:]
    elif kind == 9:
        del out[at : at + choices.choice((1, 2, 4, 16, 100))]
    elif kind == 10:
        out[at:at] = choices.raw(choices.choice((1, 2, 4, 16)))
    else:
        length = choices.choice((4, 8, 16, 64))
        other = choices.below(size)
        piece = data[other : other + length]
        out[at : at + len(piece)] = piece
    return bytes(out)
