"""Ops that decode and encode image files: DecodePng, DecodeJpeg, DecodeAndCropJpeg, DecodeGif, DecodeBmp, DecodeImage, EncodePng,
EncodeJpeg. All but DecodeBmp need Pillow, which `pip install oplet-flex-ops[images]` brings.

JPEG files are decoded with libjpeg's accurate integer transform (INTEGER_ACCURATE) and smooth chroma upsampling; TensorFlow's default
is the faster, less accurate one. A crop is cut from the whole image, so that colours at its right edge are interpolated with the pixels
behind it; TensorFlow does not read those.

Numerics: tensorflow/core/kernels/image/decode_image_op.cc, tensorflow/core/lib/{png,jpeg,gif}
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from oplet import TensorType, ensure
from oplet.kernels.arrays import Array
from oplet.kernels.limits import paced
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.image_files import Wanted, decode_bmp, decode_gif, decode_jpeg, decode_png, encode_jpeg, encode_png, kind_of
from oplet_flex_ops.kernel import computed

_PIXELS = (TensorType.UINT8, TensorType.UINT16)


def _channels(attributes: Attributes, *allowed: int) -> int:
    count = attributes.integer("channels", default=0)
    ensure(count in allowed, f"the attribute 'channels' is {count}; it must be one of {', '.join(map(str, allowed))}.")
    return count


def _png_settings(attributes: Attributes) -> Wanted:
    wide = attributes.type("dtype", *_PIXELS, default=TensorType.UINT8) == TensorType.UINT16
    return Wanted(_channels(attributes, 0, 1, 3, 4), np.dtype(np.uint16 if wide else np.uint8))


DECODEPNG = computed("DecodePng", "contents: STRING[0] -> image: dtype", _png_settings, dtype=_PIXELS)(
    lambda wanted, contents: _decode(contents.item(), wanted, animations=True, bmp=False)
)


class _Jpeg(NamedTuple):
    channels: int
    ratio: int


def _jpeg_settings(attributes: Attributes) -> _Jpeg:
    ratio = attributes.integer("ratio", default=1)
    ensure(ratio in (1, 2, 4, 8), f"the attribute 'ratio' is {ratio}; it must be 1, 2, 4 or 8.")
    ensure(attributes.flag("fancy_upscaling", default=True), "fancy_upscaling is off; Pillow always upscales smoothly.")
    ensure(not attributes.flag("try_recover_truncated", default=False), "try_recover_truncated is on; files must be whole here.")
    attributes.text("dct_method", "", "INTEGER_FAST", "INTEGER_ACCURATE", default="")
    return _Jpeg(_channels(attributes, 0, 1, 3), ratio)


@computed("DecodeJpeg", "contents: STRING[0] -> image: UINT8", _jpeg_settings)
def DECODEJPEG(given: _Jpeg, contents: Array) -> Any:
    data = contents.item()
    if kind_of(data) != "JPEG":
        return _decode(data, Wanted(given.channels, np.dtype(np.uint8)), animations=True, bmp=False)
    return decode_jpeg(data, given.channels, given.ratio)


@computed("DecodeAndCropJpeg", "contents: STRING[0], crop_window: INT32[1] -> image: UINT8", _jpeg_settings)
def DECODEANDCROPJPEG(given: _Jpeg, contents: Array, window: Array) -> Array:
    ensure(window.size == 4, f"the crop window has {window.size} numbers; it takes 4: y, x, height and width.")
    image = decode_jpeg(contents.item(), given.channels, given.ratio)
    y, x, height, width = window.tolist()
    ensure(
        y >= 0 and x >= 0 and height > 0 and width > 0 and y + height <= image.shape[0] and x + width <= image.shape[1],
        f"the crop window {window.tolist()} leaves an image of {image.shape[0]} x {image.shape[1]}.",
    )
    return image[y : y + height, x : x + width]


DECODEBMP = computed("DecodeBmp", "contents: STRING[0] -> image: UINT8", lambda attributes: _channels(attributes, 0, 1, 3, 4))(
    lambda channels, contents: decode_bmp(contents.item(), channels)
)
DECODEGIF = computed("DecodeGif", "contents: STRING[0] -> image: UINT8")(lambda given, contents: _decode_frames(contents.item()))


def _decode_frames(data: bytes) -> Any:
    if kind_of(data) == "GIF":
        return decode_gif(data)
    return _decode(data, Wanted(0, np.dtype(np.uint8)), animations=True, bmp=False)[None]


class _Image(NamedTuple):
    wanted: Wanted
    floats: bool
    animations: bool


def _image_settings(attributes: Attributes) -> _Image:
    type = attributes.type("dtype", *_PIXELS, TensorType.FLOAT32, default=TensorType.UINT8)
    kind = np.dtype(np.uint8 if type == TensorType.UINT8 else np.uint16)
    wanted = Wanted(_channels(attributes, 0, 1, 3, 4), kind)
    return _Image(wanted, type == TensorType.FLOAT32, attributes.flag("expand_animations", default=True))


def _decode(data: bytes, wanted: Wanted, *, animations: bool, bmp: bool) -> Any:
    """Decode an image file of any known format to 8 bits, or 16 for PNG files."""
    kind = kind_of(data)
    if kind == "PNG":
        return decode_png(data, wanted)
    ensure(wanted.dtype == np.uint8 or bmp, f"a {kind} file has 8 bits a channel; only PNG files decode to 16.")
    if kind == "JPEG":
        ensure(wanted.channels in (0, 1, 3), f"a JPEG file has 1 or 3 channels, not {wanted.channels}.")
        return _widened(decode_jpeg(data, wanted.channels, 1), wanted.dtype)
    if kind == "GIF":
        ensure(wanted.channels in (0, 3), f"a GIF file has 3 channels, not {wanted.channels}.")
        frames = decode_gif(data)
        return _widened(frames if animations and bmp else _single(frames, animations), wanted.dtype)
    ensure(bmp, "the bytes are no PNG, JPEG or GIF file.")
    return _widened(decode_bmp(data, wanted.channels), wanted.dtype)


def _single(frames: Array, animations: bool) -> Any:
    ensure(not animations or len(frames) == 1, f"a GIF file has {len(frames)} frames, where one image is wanted; use DecodeGif.")
    return frames[0]


def _widened(image: Array, dtype: Any) -> Array:
    return image if image.dtype == dtype else image.astype(np.uint16) * np.uint16(257)


@computed("DecodeImage", "contents: STRING[0] -> image: dtype", _image_settings, dtype=(*_PIXELS, TensorType.FLOAT32))
def DECODEIMAGE(given: _Image, contents: Array) -> Any:
    image = _decode(contents.item(), given.wanted, animations=given.animations, bmp=True)
    return image.astype(np.float32) / np.float32(65535) if given.floats else image


def _file(data: bytes) -> Array:
    found = np.empty((), object)
    found[()] = data
    return found


ENCODEPNG = computed(
    "EncodePng",
    "image: T -> contents: STRING",
    lambda attributes: attributes.integer("compression", least=-1, most=9, default=-1),
    T=_PIXELS,
)(lambda compression, image: _encode_pngs(image, compression))


def _encode_pngs(images: Array, compression: int) -> Array:
    ensure(images.ndim >= 3, f"an image of shape {list(images.shape)} must end with height, width and channels.")
    found = np.empty(images.shape[:-3], object)
    for place in paced(np.ndindex(*images.shape[:-3]), 1):
        found[place] = encode_png(images[place], compression)
    return found


class _Writing(NamedTuple):
    channels: int
    options: dict[str, Any]


def _encode_settings(attributes: Attributes) -> _Writing:
    format = attributes.text("format", "", "grayscale", "rgb", default="")
    ensure(not attributes.raw("xmp_metadata", default=b""), "xmp_metadata cannot be written here; leave it out.")
    density = attributes.integer("x_density", default=300), attributes.integer("y_density", default=300)
    inches = attributes.text("density_unit", "in", "cm", default="in") == "in"
    return _Writing(
        {"": 0, "grayscale": 1, "rgb": 3}[format],
        {
            "quality": attributes.integer("quality", least=0, most=100, default=95),
            "progressive": attributes.flag("progressive", default=False),
            "optimize": attributes.flag("optimize_size", default=False),
            "subsampling": 2 if attributes.flag("chroma_downsampling", default=True) else 0,
            "dpi": density if inches else tuple(each * 2.54 for each in density),
        },
    )


ENCODEJPEG = computed("EncodeJpeg", "image: UINT8[3] -> contents: STRING", _encode_settings)(
    lambda given, image: _file(encode_jpeg(image, given.channels, given.options))
)
