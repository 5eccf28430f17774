"""Parts that a picture's file consists of, counted before Pillow decodes it.

Pixels tell how much memory a picture takes, and not how long it takes: a JPEG may go over all of them thousands of times, in 26 bytes each,
and Pillow unpacks each text and colour profile that a file has, 1 KB to 1 MB. Decoding cannot be interrupted.
"""

from __future__ import annotations

import re
from typing import IO

__all__ = ["MOST_PARTS", "TooManyParts", "scans_of"]

#: Most parts of a picture beside its pixels; real ones have some dozens, and up to 255 of a JPEG's colour profile.
MOST_PARTS = 1 << 10
_WINDOW = 1 << 16
_JPEG, _PNG = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"
#: A marker of a JPEG: within its data, FF comes before 00 only.
_MARKER = re.compile(rb"\xff+([^\x00\xff])")
_SCAN, _END = 0xDA, 0xD9
#: Scans that even the largest picture may have: where there are no more of their markers, not all of the file is walked through.
_FEW = 16
#: Markers without a length; those below C0 end the decoding, or are passed over as these.
_WITHOUT_LENGTH = range(0xD0, 0xD9)
_LEAST_MARKER = 0xC0
#: Chunks of a PNG with pixels, and one for each frame.
_PIXELS = (b"IDAT", b"fdAT", b"fcTL")


class TooManyParts(Exception):
    """A picture file has more than `MOST_PARTS` segments or chunks besides its pixels."""


def scans_of(file: IO[bytes]) -> int:
    """Return an upper bound of the number of passes over all pixels that decoding a JPEG or PNG file takes; 0 for other files.
    Reading starts at the file's beginning.

    A count up to 16 may include scans in data after the end of the picture.

    Raises:
        TooManyParts: the file has more than `MOST_PARTS` segments or chunks besides its pixels.
    """
    file.seek(0)
    start = file.read(len(_PNG))
    if start.startswith(_JPEG):
        return _jpeg_scans(file)
    if start == _PNG:
        _check_chunks(file)
        return 1
    return 0


def _jpeg_scans(file: IO[bytes]) -> int:
    most = _count(file, bytes((0xFF, _SCAN)))
    scans = parts = start = 0
    position = len(_JPEG) - 1
    window = b""
    while True:
        offset = position - start
        found = _MARKER.search(window, offset) if offset < len(window) else None
        if found is None:
            if offset < len(window):  # on after it, or at its last byte if that may begin a marker
                position = start + len(window) - window.endswith(b"\xff")
            start = position
            file.seek(start)
            window = file.read(_WINDOW)
            if len(window) < 2:
                return scans
            continue
        kind, position = found[1][0], start + found.end()
        if kind == _END:
            return scans
        if kind < _LEAST_MARKER or kind in _WITHOUT_LENGTH:
            continue
        if kind == _SCAN and most <= _FEW:
            return most
        scans += kind == _SCAN
        parts += kind != _SCAN
        if parts > MOST_PARTS:
            raise TooManyParts
        file.seek(position)
        position += max(int.from_bytes(file.read(2), "big"), 2)


def _count(file: IO[bytes], pair: bytes) -> int:
    """Count two bytes in a file, wherever they are."""
    count, last = 0, b""
    file.seek(0)
    while window := file.read(_WINDOW):
        count += (last + window).count(pair)
        last = window[-1:]
    return count


def _check_chunks(file: IO[bytes]) -> None:
    parts, position = 0, len(_PNG)
    file.seek(position)
    while len(head := file.read(8)) == 8 and head[4:] != b"IEND":
        parts += head[4:] not in _PIXELS
        if parts > MOST_PARTS:
            raise TooManyParts
        position += 12 + int.from_bytes(head[:4], "big")
        file.seek(position)
