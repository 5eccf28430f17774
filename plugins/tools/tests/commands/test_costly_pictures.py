"""Pictures that would take long: what their files consist of is counted before they are decoded, and too much of it is refused."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageFile

from oplet.errors import TensorError
from oplet_tools.running.pictures import load_picture
from oplet_tools.running.values.picture_rules import MOST_PARTS, TooManyParts, scans_of

DETAILS = {
    "name": "x",
    "dtype": np.float32,
    "quantization": (0.0, 0),
    "shape": np.array([1, 8, 8, 1], np.int32),
    "shape_signature": np.array([1, 8, 8, 1], np.int32),
}


def jpeg(image: Image.Image, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", **options)
    return buffer.getvalue()


def with_scans(side: int, scans: int) -> bytes:
    """A progressive picture of nothing, whose last scan is there again and again."""
    content = jpeg(Image.new("L", (side, side), 128), progressive=True)
    before = content.count(b"\xff\xda")
    last = content[content.rindex(b"\xff\xda") : -2]
    return content[:-2] + last * (scans - before) + content[-2:]


def segment(marker: int, body: bytes) -> bytes:
    return bytes((0xFF, marker)) + struct.pack(">H", len(body) + 2) + body


def png(*chunks: tuple[bytes, bytes]) -> bytes:
    every = [
        (b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)),
        *chunks,
        (b"IDAT", zlib.compress(bytes(9 * 8))),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in every
    )


def work(*_: object, **__: object) -> None:
    raise AssertionError("it is unpacked or decoded, which takes long")


def test_a_jpeg_of_thousands_of_scans_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    content = with_scans(3000, 2800)
    assert len(content) < 100_000
    monkeypatch.setattr(ImageFile.ImageFile, "load", work)
    with pytest.raises(TensorError, match=r"of 3000 x 3000 pixels is stored in 2800 scans.*save it as a baseline JPEG"):
        load_picture(Path("x.jpg"), DETAILS, content=content)


def test_a_jpeg_of_the_scans_that_are_usual_is_taken_however_large() -> None:
    assert load_picture(Path("x.jpg"), DETAILS, content=with_scans(600, 100)).pixels.shape == (1, 8, 8, 1)
    content = jpeg(Image.new("RGB", (200, 200)), progressive=True)
    assert scans_of(io.BytesIO(content)) == 10
    assert scans_of(io.BytesIO(jpeg(Image.effect_noise((500, 500), 90), quality=100))) == 1


def test_what_lies_behind_a_picture_or_in_its_texts_is_no_scan(tmp_path: Path) -> None:
    content = jpeg(Image.new("L", (32, 32)), progressive=True)
    scans = content.count(b"\xff\xda")
    text = segment(0xFE, b"\xff\xda\0\0" * 1000)
    assert scans_of(io.BytesIO(content + b"\xff\xda" * 5000)) == scans, "a film, or a second picture"
    assert scans_of(io.BytesIO(content[:2] + text + content[2:])) == scans, "a small picture among the EXIF data"
    assert scans_of(io.BytesIO(content[:-2] + text + content[-2:])) == scans


@pytest.mark.parametrize("marker", [0x02, 0x01, 0xBF, 0xD3])
def test_what_the_decoder_passes_over_byte_by_byte_hides_no_scan(marker: int) -> None:
    content = with_scans(32, 6)
    hidden = segment(marker, content[content.rindex(b"\xff\xda") : -2] * 100)
    assert scans_of(io.BytesIO(content[:-2] + hidden + content[-2:])) == 106


@pytest.mark.parametrize("size", [(1 << 16) - 1, 1 << 16, (1 << 16) + 1, (1 << 17) - 1])
def test_markers_are_found_wherever_what_is_read_at_once_ends(size: int) -> None:
    content = with_scans(32, 40)
    head, tail = content[:-2], content[-2:]
    at = size - len(head) - 1
    filled = head + bytes(at) + content[content.rindex(b"\xff\xda") : -2] * 3 + tail
    assert filled[size - 1 : size + 1] == b"\xff\xda"
    assert scans_of(io.BytesIO(filled + b"\xff\xda" * 100)) == 43
    for end in range(0, len(content), 7):
        assert scans_of(io.BytesIO(content[:end])) <= 40, "whatever is cut off"


@pytest.mark.parametrize("kind", [b"iCCP", b"zTXt", b"tEXt", b"iTXt", b"quIT"])
def test_a_png_of_thousands_of_texts_or_profiles_is_refused_before_they_are_unpacked(
    kind: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk = (kind, b"a\0\0" + zlib.compress(bytes(1 << 20), 9))
    assert load_picture(Path("x.png"), DETAILS, content=png(*[(b"tEXt", b"a\0b")] * 100)).pixels.shape == (1, 8, 8, 1)
    monkeypatch.setattr(Image, "open", work)  # which unpacks them
    with pytest.raises(TensorError, match=rf"has more than {MOST_PARTS} parts beside its pixels"):
        load_picture(Path("x.png"), DETAILS, content=png(*[chunk] * 1500))


def test_a_jpeg_of_thousands_of_texts_is_refused() -> None:
    content = jpeg(Image.new("L", (8, 8)))
    with pytest.raises(TooManyParts):
        scans_of(io.BytesIO(content[:2] + segment(0xFE, b"a") * (MOST_PARTS + 1) + content[2:]))
