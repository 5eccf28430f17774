"""Image files are decoded and encoded as TensorFlow does it; what is no such file is refused."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from plugins.flex_ops.tests.oracle import tensorflow_results
from plugins.flex_ops.tests.sweeps import Case, difference, oplet_results

from oplet import TensorType as T

Image = pytest.importorskip("PIL.Image")
rng = np.random.default_rng(5)
PIXELS = rng.integers(0, 256, (9, 7, 4)).astype(np.uint8)
# Smooth, as photographs are.
WAVES = (127 + 120 * np.sin(np.arange(24)[:, None, None] / 5 + np.arange(20)[:, None] / 4 + np.arange(3))).astype(np.uint8)


def written(pixels: Any, kind: str, mode: str | None = None, **options: Any) -> bytes:
    image = Image.fromarray(pixels)
    file = io.BytesIO()
    (image.convert(mode) if mode else image).save(file, kind, **options)
    return file.getvalue()


def text(data: bytes) -> Any:
    found = np.empty((), object)
    found[()] = data
    return found


def sixteen_bits(channels: int) -> bytes:
    """A PNG file of 16 bits a channel."""
    pixels = rng.integers(0, 65536, (5, 4, channels)).astype(">u2")
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", 4, 5, 16, {1: 0, 3: 2}[channels], 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


PNGS = {
    "grey": written(PIXELS[..., 0], "PNG"),
    "grey with alpha": written(PIXELS[..., :2].copy(), "PNG"),
    "colours": written(PIXELS[..., :3].copy(), "PNG"),
    "colours with alpha": written(PIXELS, "PNG"),
    "palette": written(PIXELS[..., :3].copy(), "PNG", "P"),
    "palette of 4 bits": written(PIXELS[..., :3].copy() // 128 * 255, "PNG", "P", bits=4),
    "black and white": written(PIXELS[..., 0], "PNG", "1"),
    "colours of 16 bits": sixteen_bits(3),
    "grey of 16 bits": sixteen_bits(1),
}


def pngs() -> Iterator[Case]:
    for data in PNGS.values():
        for channels in (0, 1, 3, 4, 2):
            if channels == 1 and data is PNGS["colours of 16 bits"]:
                continue
            yield Case("DecodePng", [text(data)], {"channels": channels, "dtype": T.UINT8})
            if data is not PNGS["colours of 16 bits"]:
                yield Case("DecodePng", [text(data)], {"channels": channels, "dtype": T.UINT16})
                yield Case("DecodeImage", [text(data)], {"channels": channels, "dtype": T.FLOAT32})
            yield Case("DecodeImage", [text(data)], {"channels": channels, "dtype": T.UINT8})
    for data in (b"", b"nothing", PNGS["colours"][:40]):
        yield Case("DecodePng", [text(data)], {"dtype": T.UINT8})


def jpegs() -> Iterator[Case]:
    for data in (written(WAVES, "JPEG"), written(WAVES[..., 0], "JPEG"), written(WAVES, "JPEG", subsampling=0, progressive=True)):
        for channels in (0, 1, 3, 4):
            for ratio in (1, 2, 4, 8, 3):
                given = {"channels": channels, "ratio": ratio, "dct_method": "INTEGER_ACCURATE"}
                yield Case("DecodeJpeg", [text(data)], given)
                for window in ([0, 0, 2, 3], [3, 4, 10, 7], [0, 0, 99, 2]):
                    yield Case("DecodeAndCropJpeg", [text(data), np.array(window, np.int32)], given)
    yield Case("DecodeJpeg", [text(b"\xff\xd8\xff nothing")], {})


def bitmaps() -> Iterator[Case]:
    files = [written(PIXELS[..., 0], "BMP"), written(PIXELS[..., :3].copy(), "BMP"), written(PIXELS, "BMP")]
    downwards = bytearray(files[1])
    downwards[22:26] = struct.pack("<i", -9)
    for data in (*files, bytes(downwards), files[1][:80], b"BM"):
        for channels in (0, 1, 3, 4):
            yield Case("DecodeBmp", [text(data)], {"channels": channels})


def gifs() -> Iterator[Case]:
    frames = [Image.fromarray(rng.integers(0, 256, (6, 5, 3)).astype(np.uint8)).convert("P") for _ in range(3)]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=10)
    for data in (file.getvalue(), written(PIXELS[..., :3].copy(), "GIF")):
        yield Case("DecodeGif", [text(data)], {})
        for whole in (True, False):
            for type in (T.UINT8, T.FLOAT32):
                given = {"channels": 3, "dtype": type, "expand_animations": whole}
                yield Case("DecodeImage", [text(data)], given)
    jpeg = written(WAVES, "JPEG")
    yield Case("DecodeGif", [text(jpeg[:30])], {})
    yield Case("DecodeImage", [text(b"nothing")], {"dtype": T.UINT8})


SWEEPS = [pngs, jpegs, bitmaps, gifs]


@pytest.mark.sweep
@pytest.mark.parametrize("cases", SWEEPS)
def test_they_are_decoded_as_by_tensorflow(cases: Callable[[], Iterator[Case]]) -> None:
    assert max(difference(case) for case in cases()) < 1e-6


def test_jpeg_files_differ_from_tensorflow_s_fast_transform_by_little() -> None:
    case = Case("DecodeJpeg", [text(written(WAVES, "JPEG", quality=90))], {})
    [fast] = tensorflow_results(*case[:3])
    assert np.abs(oplet_results(case)[0].astype(int) - fast).max() <= 4


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_png_files_are_read_back_by_tensorflow(channels: int) -> None:
    pixels = np.ascontiguousarray(PIXELS[..., :channels])
    for compression in (-1, 0, 9):
        [data] = oplet_results(Case("EncodePng", [pixels], {"T": T.UINT8, "compression": compression}))
        [back] = tensorflow_results("DecodePng", [data], {"dtype": T.UINT8})
        np.testing.assert_array_equal(back, pixels)


def test_a_batch_of_images_becomes_a_batch_of_files() -> None:
    [files] = oplet_results(Case("EncodePng", [np.stack([PIXELS, PIXELS[::-1]])], {"T": T.UINT8}))
    assert files.shape == (2,)
    [back] = tensorflow_results("DecodePng", [text(files[1])], {"dtype": T.UINT8})
    np.testing.assert_array_equal(back, PIXELS[::-1])


@pytest.mark.parametrize("sampled", [True, False])
@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_files_hold_what_tensorflow_s_hold(channels: int, sampled: bool) -> None:
    pixels = np.ascontiguousarray(WAVES[..., :channels])
    given = {"quality": 80, "chroma_downsampling": sampled, "progressive": True}
    [ours] = oplet_results(Case("EncodeJpeg", [pixels], given))
    [theirs] = tensorflow_results("EncodeJpeg", [pixels], given)
    images = [tensorflow_results("DecodeJpeg", [data], {})[0] for data in (ours, theirs)]
    np.testing.assert_array_equal(*images)
