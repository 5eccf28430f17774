"""Pictures as inputs: resized to what the model takes, pixels scaled to the numbers that it was trained on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet.errors import TensorError, text_of
from oplet.model.files import open_file

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["PICTURES_NEED", "SUFFIXES", "load_picture"]

#: The files that are taken for pictures.
SUFFIXES = (".png", ".jpg", ".jpeg")

#: What is to be installed for pictures, wherever they are read: by the command, which has it, by `load_input`, and by built programs.
PICTURES_NEED = "pictures as inputs need Pillow: pip install pillow"

#: What such a file may hold, whatever its name says: other formats of Pillow start programs (Ghostscript) or follow names.
_FORMATS = ("PNG", "JPEG")
#: Pixels of a picture, and values that it may become: each takes up to 8 bytes on the way.
_MOST_PIXELS = _MOST_VALUES = 1 << 26

_ORIENTATION = 0x0112
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}


class _Layout(NamedTuple):
    """Which picture an input takes.

    Attributes:
        height: in pixels, -1 for any.
        width: in pixels, -1 for any.
        channels: 1 for greyscale, 3 for RGB, 4 for RGBA.
        channels_first: whether the channels come before the rows.
    """

    height: int
    width: int
    channels: int
    channels_first: bool


def load_picture(
    path: Path, details: Mapping[str, Any], name: str = "", *, scale: float | None = None, offset: float | None = None
) -> NDArray[Any]:
    """A picture as the value of an input.

    It becomes greyscale, RGB or RGBA by the input's channels, and is resized to its height and width (by area when it
    shrinks, bilinear when it grows). With `scale` or `offset`, real = pixel * scale + offset, which a quantized input
    then quantizes. Without, pixels of 0..255 become 0..1 for float inputs, and the whole range of the type for 8-bit ones.

    Args:
        path: the file.
        details: the input's dictionary of `Interpreter.get_input_details`.
        name: what messages call the input.
        scale: 1 if only `offset` is given.
        offset: 0 if only `scale` is given.

    Raises:
        TensorError: the file is no PNG or JPEG, too large or damaged, or the input takes none.
        OSError: the file cannot be opened.
    """
    name = name or str(details["name"])
    layout = _layout(details, name, path)
    with open_file(path) as file:  # first, so that a missing file is told as such
        image = _open(path, file, layout)
    pixels = _resized(image, layout)
    pixels = pixels.reshape(*pixels.shape[:2], layout.channels)
    if layout.channels_first:
        pixels = pixels.transpose(2, 0, 1)
    rank = len(details["shape"])
    if rank == 2:
        pixels = pixels.reshape(pixels.shape[:2])
    elif rank == 4:
        pixels = pixels[np.newaxis]
    return _scaled(pixels, details, name, scale, offset)


def _layout(details: Mapping[str, Any], name: str, path: Path) -> _Layout:
    shape = [int(d) for d in details["shape"]]
    free = [int(d) for d in details["shape_signature"]]
    dims = free if len(free) == len(shape) else shape
    if len(dims) == 2:
        return _Layout(dims[0], dims[1], 1, False)
    if len(dims) == 3 or (len(dims) == 4 and dims[0] in (1, -1)):
        first, second, third = dims[-3:]
        for channels in ((1, 3), (4,)):  # a side of 4 pixels is likelier than RGBA
            if third in channels:
                return _Layout(first, second, third, False)
            if first in channels:
                return _Layout(second, third, first, True)
    raise TensorError(
        f"'{path}' is to be a picture, and input '{name}' has the shape {dims}, which is no picture ([1, height, width, channels] "
        "with 1, 3 or 4 channels); give its value as .npy."
    )


def _open(path: Path, file: IO[bytes], layout: _Layout) -> Image:
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ModuleNotFoundError as error:
        raise TensorError(f"'{path}' cannot be read: {PICTURES_NEED}.") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            opened = Image.open(file, formats=_FORMATS)  # reads the header only
            _check_size(path, opened, layout)
            image: Image.Image = ImageOps.exif_transpose(opened) if _turned(opened) else opened
            if image.mode.startswith("I"):  # 16 bits of grey, which convert() would clip instead of scale
                image = Image.fromarray(_eight_bits(np.asarray(image)))
            mode = _MODES[layout.channels]
            image.load()
            return image if image.mode == mode else image.convert(mode)
    except TensorError:
        raise
    except Image.DecompressionBombError as error:
        raise TensorError(_too_large(path)) from error
    except MemoryError as error:
        raise TensorError(f"There is not enough memory for the picture '{path}'; give a smaller one.") from error
    except Exception as error:  # whatever a damaged file leads to
        why = "it is neither PNG nor JPEG" if isinstance(error, UnidentifiedImageError) else text_of(error)[:300].rstrip(".")
        raise TensorError(f"'{path}' is no picture, or a damaged one: {why}; give a PNG or JPEG file.") from error


def _turned(image: Image) -> bool:
    """Whether a camera notes that the picture is to be turned, which takes a copy."""
    return bool(image.getexif().get(_ORIENTATION, 1) != 1)


def _eight_bits(values: NDArray[Any]) -> NDArray[np.uint8]:
    pixels = np.empty(values.shape, np.uint8)
    for row, line in zip(pixels, values):
        row[:] = (line.astype(np.float64) / 257).round().clip(0, 255)
    return pixels


def _too_large(path: Path, size: tuple[int, int] | None = None) -> str:
    has = f"has {size[0]} x {size[1]} pixels" if size else "has too many pixels"
    return f"'{path}' {has}, and a picture may have {_MOST_PIXELS}; make it smaller, or give the input's value as .npy."


def _check_size(path: Path, image: Image, layout: _Layout) -> None:
    """Refuse by its header a picture that would take more memory than a picture is worth."""
    if image.width * image.height > _MOST_PIXELS:
        raise TensorError(_too_large(path, image.size))
    longer, shorter = max(image.size), min(image.size)
    sides = [side for side in (layout.height, layout.width) if side != -1]
    height, width = sides if len(sides) == 2 else (longer, shorter) if not sides else (sides[0], longer)
    # The picture is resized along one side first, and only then along the other.
    if max(height * width * layout.channels, width * longer) > _MOST_VALUES:
        raise TensorError(
            f"'{path}' of {image.width} x {image.height} pixels gives an input of {height} x {width} x {layout.channels} more than the "
            f"{_MOST_VALUES} values that a picture may become; make it smaller, or give the input's value as .npy."
        )


def _resized(image: Image, layout: _Layout) -> NDArray[np.uint8]:
    from PIL.Image import Resampling

    height = image.height if layout.height == -1 else layout.height
    width = image.width if layout.width == -1 else layout.width
    if not height * width:
        return np.zeros((height, width, layout.channels), np.uint8)
    if (image.height, image.width) != (height, width):
        shrinks = height <= image.height and width <= image.width
        image = image.resize((width, height), Resampling.BOX if shrinks else Resampling.BILINEAR)
    return np.asarray(image, np.uint8)


def _scaled(
    pixels: NDArray[np.uint8], details: Mapping[str, Any], name: str, scale: float | None, offset: float | None
) -> NDArray[Any]:
    dtype = np.dtype(details["dtype"])
    real: NDArray[Any]
    if scale is not None or offset is not None:
        real = pixels * np.float64(1 if scale is None else scale) + (offset or 0.0)
        return real if details["quantization"][0] or dtype.kind == "f" else np.rint(real)
    if dtype.kind == "f":
        real = pixels / np.float64(255)
        return real
    if dtype.kind in "iu":
        if dtype.itemsize == 1:  # the range of pixels on the range of the type
            return (pixels.astype(np.int16) + int(np.iinfo(details["dtype"]).min)).astype(dtype)
        if not details["quantization"][0]:
            return pixels
    raise TensorError(f"Input '{name}' is {dtype.name}; say how pixels become its numbers, with a scale and an offset.")
