"""Decoding and encoding of image files with Pillow (imported at first use); BMP with numpy alone."""

from __future__ import annotations

import io
import struct
import warnings
from typing import Any, NamedTuple

import numpy as np

from oplet import charge, ensure
from oplet.kernels.arrays import Array

__all__ = ["Wanted", "decode_bmp", "decode_gif", "decode_jpeg", "decode_png", "encode_jpeg", "encode_png", "kind_of"]


class Wanted(NamedTuple):
    """Requested decoding: number of channels (0: as in the file) and dtype, uint8 or uint16."""

    channels: int
    dtype: np.dtype[Any]


def _pillow() -> Any:
    try:
        import PIL.Image
    except ImportError:
        ensure(False, "image files are read and written with Pillow, which is not installed; pip install oplet-flex-ops[images].")
    return PIL.Image


def kind_of(data: bytes) -> str:
    """Return the image format that the file's first bytes tell: PNG, JPEG, GIF, BMP, or "unknown"."""
    starts = {"PNG": b"\x89PNG\r\n\x1a\n", "JPEG": b"\xff\xd8\xff", "GIF": b"GIF8", "BMP": b"BM"}
    return next((kind for kind, start in starts.items() if data.startswith(start)), "unknown")


def _open(data: bytes, kind: str) -> Any:
    """Open an image file with Pillow without decoding it, after charging its decoded size to the memory limit."""
    ensure(kind_of(data) == kind, f"the {len(data)} bytes are no {kind} file.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a large image is charged for below
            image = _pillow().open(io.BytesIO(data), formats=[kind])
    except Exception as error:  # Pillow's decoders raise many kinds for damaged files
        _refuse(kind, data, error)
    charge(image.width * image.height * 16)
    return image


def _refuse(kind: str, data: bytes, error: Exception) -> None:
    ensure(False, f"the {kind} file of {len(data)} bytes cannot be read: {error}.")


def _pixels(image: Any, kind: str, data: bytes) -> Array:
    try:
        found = np.asarray(image)
    except Exception as error:
        _refuse(kind, data, error)
    return found[..., None] if found.ndim == 2 else found


def decode_png(data: bytes, wanted: Wanted) -> Any:
    """Decode a PNG file to shape (height, width, channels).

    Raises:
        EnsureError: the file is invalid; or it has 16-bit colours and `wanted` requests uint16 or grey, which Pillow does not
            support.
    """
    image = _open(data, "PNG")
    depth, colour = data[24], data[25]
    ensure(
        depth < 16 or colour == 0 or (wanted.dtype == np.uint8 and wanted.channels != 1),
        "a PNG file with colours of 16 bits cannot be read whole; read it with dtype uint8 and in colour, or install oplet-flex-delegate.",
    )
    if image.mode == "P":
        image = _converted(image, "RGBA" if "transparency" in image.info else "RGB", "PNG", data)
    elif image.mode == "1" or (image.mode == "L" and "transparency" in image.info):
        image = _converted(image, "LA" if "transparency" in image.info else "L", "PNG", data)
    elif image.mode == "RGB" and "transparency" in image.info:
        image = _converted(image, "RGBA", "PNG", data)
    pixels = _pixels(image, "PNG", data)
    if pixels.dtype == np.int32:  # some versions of Pillow give 16 bits as 32
        pixels = pixels.astype(np.uint16)
    # libpng's opaque alpha has as many bits as values have in the file
    pixels = _with_channels(pixels, wanted.channels, (1 << depth) - 1 if depth < 8 else None)
    if pixels.dtype == wanted.dtype:
        return pixels
    return (pixels >> 8).astype(np.uint8) if wanted.dtype == np.uint8 else pixels.astype(np.uint16) * np.uint16(257)


def _converted(image: Any, mode: str, kind: str, data: bytes) -> Any:
    try:
        return image.convert(mode)
    except Exception as error:
        _refuse(kind, data, error)


def _with_channels(pixels: Array, channels: int, opaque: int | None = None) -> Any:
    """Convert between grey and RGB as libpng does, and add or drop alpha.

    Args:
        channels: the number of channels of the result; 0 keeps those of `pixels`.
        opaque: the value of an alpha channel that is added; None for the dtype's maximum.
    """
    there = pixels.shape[2]
    if channels in (0, there):
        # grey with alpha has two channels only where nothing else is wanted
        return pixels
    top = np.iinfo(pixels.dtype).max if opaque is None else opaque
    colours, alpha = (pixels[..., :-1], pixels[..., -1:]) if there in (2, 4) else (pixels, None)
    if channels == 1:
        if colours.shape[2] == 1:
            return colours
        # libpng's fixed-point weights of red, green and blue
        wide = colours.astype(np.int64)
        grey = (wide @ np.array([9797, 19234, 3737]) + (16384 if pixels.itemsize > 1 else 0)) >> 15
        return grey[..., None].astype(pixels.dtype)
    if colours.shape[2] == 1:
        colours = np.repeat(colours, 3, 2)
    if channels == 3:
        return colours
    return np.concatenate([colours, np.full((*pixels.shape[:2], 1), top, pixels.dtype) if alpha is None else alpha], 2)


def decode_jpeg(data: bytes, channels: int, ratio: int) -> Array:
    """Decode a JPEG file to uint8 of shape (height, width, channels), downscaled by `ratio`.

    Args:
        channels: 1, 3, or 0 for those of the file.
        ratio: 1, 2, 4 or 8, the divisor of height and width.

    Raises:
        EnsureError: the file cannot be read.
    """
    image = _open(data, "JPEG")
    mode = "L" if channels == 1 or (channels == 0 and image.mode == "L") else "RGB"
    size = image.size
    image.draft(mode, (max(1, size[0] // ratio), max(1, size[1] // ratio)))
    ensure(
        image.size == (-(-size[0] // ratio), -(-size[1] // ratio)),
        f"an image of {size[0]} x {size[1]} is too small to be read at a ratio of {ratio}.",
    )
    if image.mode != mode:
        image = _converted(image, mode, "JPEG", data)
    return _pixels(image, "JPEG", data)


def decode_gif(data: bytes) -> Array:
    """Decode a GIF file to uint8 frames of shape (frames, height, width, 3).

    Raises:
        EnsureError: the file cannot be read.
    """
    image = _open(data, "GIF")
    frames: list[Array] = []
    try:
        while True:
            charge(image.width * image.height * 8 * (len(frames) + 1))
            frames.append(np.asarray(image.convert("RGB")))
            image.seek(len(frames))
    except EOFError:
        return np.stack(frames)
    except Exception as error:
        if type(error).__module__.startswith("oplet"):
            raise
        _refuse("GIF", data, error)
        raise


def decode_bmp(data: bytes, channels: int) -> Any:
    """Decode an uncompressed BMP file to uint8 of shape (height, width, channels).

    Raises:
        EnsureError: the file is damaged or compressed, or has another number of channels.
    """
    ensure(len(data) >= 54 and data.startswith(b"BM"), f"the {len(data)} bytes are no BMP file.")
    start, width, height, bits = (
        *struct.unpack_from("<i", data, 10), *struct.unpack_from("<ii", data, 18), *struct.unpack_from("<H", data, 28),
    )  # fmt: skip
    depth = bits // 8
    ensure(depth in (1, 3, 4) and bits % 8 == 0, f"the BMP file has {bits} bits a pixel; it must have 8, 24 or 32.")
    ensure(channels in (0, 3, 4), f"channels is {channels}; a BMP file is read with 3 or 4, or 0 for its own.")
    rows, step = abs(height), (depth * width + 3) // 4 * 4
    ensure(
        width > 0 and rows > 0 and start > 0 and start + rows * step <= len(data) + (step - depth * width),
        f"the BMP file of {len(data)} bytes is too short for {width} x {rows} pixels.",
    )
    padded = data[start : start + rows * step].ljust(rows * step, b"\0")
    pixels = np.frombuffer(padded, np.uint8).reshape(rows, step)[:, : depth * width].reshape(rows, width, depth)
    if depth > 1:
        pixels = pixels[..., [2, 1, 0, 3][:depth]]
    return _with_channels(pixels if height < 0 else pixels[::-1], channels)


def encode_png(image: Array, compression: int) -> bytes:
    """Encode an image (height, width, 1 to 4 channels), uint8, or uint16 with one channel, as a PNG file.

    Args:
        compression: zlib's level; -1 for its default.

    Raises:
        EnsureError: PNG files cannot hold such an image.
    """
    ensure(1 <= image.shape[2] <= 4 and image.size > 0, f"a PNG file cannot hold an image of shape {list(image.shape)}.")
    ensure(
        image.dtype == np.uint8 or image.shape[2] == 1,
        "images of 16 bits are written with one channel only; write uint8, or install oplet-flex-delegate.",
    )
    whole = np.ascontiguousarray(image if image.shape[2] > 1 else image[..., 0])
    file = io.BytesIO()
    options = {} if compression < 0 else {"compress_level": compression}
    _pillow().fromarray(whole).save(file, "PNG", **options)
    return file.getvalue()


def encode_jpeg(image: Array, channels: int, options: dict[str, Any]) -> bytes:
    """Encode an image (height, width, 1 or 3 channels), uint8, as a JPEG file.

    Args:
        channels: 1 or 3, 0 for those of the image.
        options: keyword arguments of Pillow's `Image.save` for JPEG files.

    Raises:
        EnsureError: the image has another number of channels, or is empty or too large for the format.
    """
    height, width, there = image.shape
    ensure(
        there in (1, 3) and channels in (0, there),
        f"a JPEG file of {channels or '1 or 3'} channels cannot hold an image of {there}.",
    )
    ensure(0 < height < 65500 and 0 < width < 65500, f"a JPEG file cannot hold {height} x {width} pixels.")
    file = io.BytesIO()
    _pillow().fromarray(np.ascontiguousarray(image if there == 3 else image[..., 0])).save(file, "JPEG", **options)
    return file.getvalue()
