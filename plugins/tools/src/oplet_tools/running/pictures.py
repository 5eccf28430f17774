"""Pictures as inputs: resized to the input's shape, with pixels scaled to the values that the model was trained on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet.errors import TensorError, text_of
from oplet.toolkit import open_file
from oplet_tools.running.values.picture_rules import MOST_PARTS, Picture, PictureRules, TooManyParts, scans_of
from oplet_tools.running.values.pixel_values import scale_pixels
from oplet_tools.running.values.preprocessing import Preprocessing

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["PICTURES_NEED", "SUFFIXES", "Picture", "load_picture"]

#: Suffixes of picture files.
SUFFIXES = (".png", ".jpg", ".jpeg")

#: The message that names the package pictures need; the command installs it, `load_input` and built programs may lack it.
PICTURES_NEED = "pictures as inputs need Pillow: pip install pillow"

#: The formats that Pillow may open, whatever the suffix: some others start programs (Ghostscript) or open further files.
_FORMATS = ("PNG", "JPEG")
#: Most pixels of a picture, and most values of the input; each takes up to 8 bytes during conversion.
_MOST_PIXELS = _MOST_VALUES = 1 << 26
#: Most pixels that the scans of a JPEG go over, which take about a second: 16 scans of the largest picture, where usual ones have up to 12.
_MOST_SCANNED = 1 << 30

_ORIENTATION = 0x0112
#: Pillow modes with an alpha channel; pictures of other modes may have a transparent colour.
_TRANSPARENT = ("RGBA", "RGBa", "LA", "La", "PA")
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}
#: What happens to pictures unless the user asks for something else.
_AS_USUAL = Preprocessing()


class _Layout(NamedTuple):
    """The picture format that an input takes."""

    height: int  #: In pixels, -1 for any.
    width: int  #: In pixels, -1 for any.
    channels: int  #: 1 for greyscale, 3 for RGB, 4 for RGBA.
    channels_first: bool  #: Whether the channels come before the rows.


def load_picture(
    path: Path,
    details: Mapping[str, Any],
    name: str = "",
    *,
    scale: float | None = None,
    offset: float | None = None,
    preprocessing: Preprocessing = _AS_USUAL,
    content: bytes | None = None,
) -> Picture:
    """Load a picture file as the value of an input.

    The picture is rotated by its EXIF orientation and converted to greyscale, RGB or RGBA by the input's channels: alpha is
    dropped, the first of several frames is used, 16 bits of grey become 8. It is stretched to the input's height and width, never
    cropped: by area averaging when it shrinks, bilinearly when it grows. With `scale` or `offset`, real = pixel * scale + offset,
    which is quantized if the input is. Without them, pixels of 0..255 become (pixel - mean) / std if the model's metadata say so
    and the input's type holds that; else 0..1 for float inputs, and for 8-bit inputs the whole range of the type. Other rules in
    the model's metadata (`PictureRules`) apply unless `preprocessing` says otherwise.

    Args:
        path: the file.
        details: the input's dictionary of `Interpreter.get_input_details`; an entry "picture_rules" is a function that returns
            what the model's file says.
        name: the input's name in messages.
        scale: the factor of pixels; None for 1 if `offset` is given, else for the conversion described above.
        offset: what is added to pixels; None for 0 if `scale` is given.
        preprocessing: the preprocessing that the user specifies.
        content: the file's bytes if already read; `path` is then only their name in messages.

    Raises:
        TensorError: the file is not a PNG or JPEG, too large or damaged, or the input takes no pictures.
        OSError: the file cannot be opened.
    """
    name = name or str(details["name"])
    layout = _layout(details, name, path)
    picture = Picture(path)
    if preprocessing.scale is not None or preprocessing.offset is not None:
        scale, offset = preprocessing.scale, preprocessing.offset
    rules = _rules(details, known=preprocessing.normalization is not None or scale is not None or offset is not None)
    if rules.size is not None and -1 in (layout.height, layout.width):
        height, width = (said if free == -1 else free for free, said in zip(layout[:2], rules.size))
        layout = layout._replace(height=height, width=width)
        picture.did(f"for an input of {layout.width} x {layout.height}, {rules.source}")
    # A file is opened before Pillow is imported, so that a missing one is reported first.
    with open_file(path) if content is None else BytesIO(content) as file:
        image = _open(path, file, layout, picture)
    if rules.greyscale and layout.channels == 3:
        image = image.convert("L").convert("RGB")
        picture.did(f"made grey, {rules.source}", converted="L")
    pixels = _resized(image, layout, picture, preprocessing, rules)
    pixels = pixels.reshape(*pixels.shape[:2], layout.channels)
    if preprocessing.order == "bgr" and layout.channels > 1:
        pixels = pixels[..., [2, 1, 0, *range(3, layout.channels)]]
        picture.did("channels in the order BGR", order="bgr")
    if layout.channels_first:
        pixels = pixels.transpose(2, 0, 1)
    channels = 0 if layout.channels_first else 2
    scale_pixels(picture, pixels, details, name, scale, offset, channels, preprocessing.normalization, rules)
    rank = len(details["shape"])
    if rank == 2:
        picture.pixels = picture.pixels.reshape(pixels.shape[:2])
    elif rank == 4:
        picture.pixels = picture.pixels[np.newaxis]
    return picture


def _rules(details: Mapping[str, Any], *, known: bool) -> PictureRules:
    """Return what the model's file says of pictures; nothing if it is damaged and it is `known` what pixels become."""
    try:
        said: PictureRules = details.get("picture_rules", PictureRules)()
    except TensorError:
        if not known:
            raise
        return PictureRules()
    return said


def _layout(details: Mapping[str, Any], name: str, path: Path) -> _Layout:
    shape = [int(d) for d in details["shape"]]
    free = [int(d) for d in details["shape_signature"]]
    dims = free if len(free) == len(shape) else shape
    if len(dims) == 2:
        return _Layout(dims[0], dims[1], 1, False)
    if len(dims) == 3 or (len(dims) == 4 and dims[0] in (1, -1)):
        first, second, third = dims[-3:]
        for channels in ((1, 3), (4,)):  # RGBA last: a dimension of 4 is more likely a height or width
            if third in channels:
                return _Layout(first, second, third, False)
            if first in channels:
                return _Layout(second, third, first, True)
    raise TensorError(
        f"'{path}' is to be a picture, and input '{name}' has the shape {dims}, which is no picture ([1, height, width, channels] "
        "with 1, 3 or 4 channels); give its value as .npy."
    )


def _open(path: Path, file: IO[bytes], layout: _Layout, picture: Picture) -> Image:
    try:
        from PIL import Image, ImageOps, UnidentifiedImageError
    except ModuleNotFoundError as error:
        raise TensorError(f"'{path}' cannot be read: {PICTURES_NEED}.") from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scans = scans_of(file)
            file.seek(0)
            opened = Image.open(file, formats=_FORMATS)  # reads only the header
            _check_size(path, opened, layout)
            _check_scans(path, opened, scans)
            picture.did(f"{opened.width} x {opened.height} {opened.mode}", size=[opened.width, opened.height], mode=opened.mode)
            frames = getattr(opened, "n_frames", 1)
            if frames > 1:
                picture.did(f"the first of {frames} frames", frames=frames)
            turned = _turned(opened)
            image: Image.Image = ImageOps.exif_transpose(opened) if turned else opened
            if turned:
                picture.did("turned as its EXIF data say", turned=True)
            transparent = image.mode in _TRANSPARENT or "transparency" in image.info
            if image.mode.startswith("I"):  # 16 bits of grey, which convert() would clip, not scale
                image = Image.fromarray(_eight_bits(np.asarray(image)))
                picture.did("16 bits of grey to 8", bits=16)
            mode = _MODES[layout.channels]
            image.load()
            if image.mode != mode:
                picture.did(f"converted to {mode}", converted=mode)
            if transparent and layout.channels != 4:
                picture.did("transparency left out", transparency="left out")
            return image if image.mode == mode else image.convert(mode)
    except TensorError:
        raise
    except TooManyParts as error:
        raise TensorError(
            f"'{path}' has more than {MOST_PARTS} parts beside its pixels (texts, profiles, tables); save it without them, or give the input's "
            "value as .npy."
        ) from error
    except Image.DecompressionBombError as error:
        raise TensorError(_too_large(path)) from error
    except MemoryError as error:
        raise TensorError(f"There is not enough memory for the picture '{path}'; give a smaller one.") from error
    except Exception as error:  # a damaged file can raise anything
        why = "it is neither PNG nor JPEG" if isinstance(error, UnidentifiedImageError) else text_of(error)[:300].rstrip(".")
        raise TensorError(f"'{path}' is no picture, or a damaged one: {why}; give a PNG or JPEG file.") from error


def _turned(image: Image) -> bool:
    """Return whether the EXIF orientation asks for a rotation, which takes a copy."""
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
    """Check by the header that a picture would not take too much memory."""
    if image.width * image.height > _MOST_PIXELS:
        raise TensorError(_too_large(path, image.size))
    longer, shorter = max(image.size), min(image.size)
    sides = [side for side in (layout.height, layout.width) if side != -1]
    height, width = sides if len(sides) == 2 else (longer, shorter) if not sides else (sides[0], longer)
    # Pillow resizes one side first, then the other: the intermediate picture counts too.
    if max(height * width * layout.channels, width * longer) > _MOST_VALUES:
        raise TensorError(
            f"'{path}' of {image.width} x {image.height} pixels gives an input of {height} x {width} x {layout.channels} more than the "
            f"{_MOST_VALUES} values that a picture may become; make it smaller, or give the input's value as .npy."
        )


def _check_scans(path: Path, image: Image, scans: int) -> None:
    if scans * image.width * image.height > _MOST_SCANNED:
        raise TensorError(
            f"'{path}' of {image.width} x {image.height} pixels is stored in {scans} scans, each of which goes over all pixels, and together "
            f"they may go over {_MOST_SCANNED}; save it as a baseline JPEG or as PNG, or give the input's value as .npy."
        )


def _resized(
    image: Image, layout: _Layout, picture: Picture, preprocessing: Preprocessing, rules: PictureRules
) -> NDArray[np.uint8]:
    from PIL.Image import Resampling

    height = image.height if layout.height == -1 else layout.height
    width = image.width if layout.width == -1 else layout.width
    if not height * width:
        return np.zeros((height, width, layout.channels), np.uint8)
    picture.area = (0.0, 0.0, float(image.width), float(image.height))
    picture.facts["sides"] = list(image.size)
    if (image.height, image.width) == (height, width):
        return np.asarray(image, np.uint8)
    across, down = width / image.width, height / image.height
    even = max(across, down) * 0.99 <= min(across, down)
    ruled = not preprocessing.resize and bool(rules.resize)
    resize = preprocessing.resize or rules.resize or "stretch"
    resize = "stretch" if even and not ruled else resize
    fill, source = (rules.fill, f", {rules.source}") if ruled else (preprocessing.fill, "")
    size, box = (width, height), (0.0, 0.0, float(image.width), float(image.height))
    how = f"resized to {width} x {height}"
    if resize == "crop":
        kept = min(image.width, width / max(across, down)), min(image.height, height / max(across, down))
        left, top = (image.width - kept[0]) / 2, (image.height - kept[1]) / 2
        if ruled:  # the middle is cut out after the picture is resized, in whole pixels
            wide, high = (max(int(side * max(across, down)), least) for side, least in zip(image.size, size))
            kept = image.width * width / wide, image.height * height / high
            left, top = round((wide - width) / 2) * image.width / wide, round((high - height) / 2) * image.height / high
        box = picture.area = left, top, left + kept[0], top + kept[1]
        how = f"its middle of {kept[0]:.6g} x {kept[1]:.6g} resized to {width} x {height}{source}"
    elif resize == "pad":
        size = max(round(image.width * min(across, down)), 1), max(round(image.height * min(across, down)), 1)
        how = f"resized to {size[0]} x {size[1]} in the middle of {width} x {height} pixels of {fill}{source}"
    elif not even:
        how += f" (stretched: {across:.3g} across, {down:.3g} down)"
    shrinks = size[0] <= box[2] - box[0] and size[1] <= box[3] - box[1]
    chosen = preprocessing.filter or (rules.filter if not preprocessing.resize else "")
    filter = chosen or ("box" if shrinks else "bilinear")
    if preprocessing.filter:
        how += f" by the filter {filter}"
    elif filter == "corner":
        how += " between the nearest four pixels, as MediaPipe does"
    picture.did(how, resized=[width, height], stretched=resize == "stretch" and not even, filter=filter)
    image_size = image.size
    own = {"linear": _between_four, "corner": _from_the_corner}.get(filter)
    pixels = (
        np.asarray(image.resize(size, Resampling[filter.upper()], box=box), np.uint8)
        if own is None
        else own(np.asarray(image, np.uint8), size)
    )
    if size == (width, height):
        return pixels
    canvas = np.full((height, width, layout.channels), fill, np.uint8)
    left, top = (width - size[0]) // 2, (height - size[1]) // 2
    x, y = image_size[0] / size[0], image_size[1] / size[1]
    picture.area = -left * x, -top * y, (width - left) * x, (height - top) * y
    canvas[top : top + size[1], left : left + size[0]] = pixels.reshape(size[1], size[0], layout.channels)
    return canvas


def _between_four(pixels: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """Resize to a width and height, each pixel between the four that are nearest, without averaging of areas.

    Numerics: those of OpenCV's INTER_LINEAR for bytes (modules/imgproc/src/resize.cpp): parts of 1/2048; the four lowest bits of a line and
    the 16 lowest of its share in a pixel are cut off, and what is left is rounded.
    """
    width, height = size
    columns, left, right, across = _neighbours(pixels.shape[1], width)
    beside = (columns < 0) | (columns >= pixels.shape[1] - 1)
    across[:, beside] = [[2048], [0]]
    first, second = across.reshape(2, -1, *[1] * (pixels.ndim - 2))
    _, above, below, down = _neighbours(pixels.shape[0], height)
    resized = np.empty((height, width, *pixels.shape[2:]), np.uint8)
    for row, (upper, lower, (more, less)) in enumerate(zip(above, below, down.T)):
        lines = [pixels[line, left] * first + pixels[line, right] * second >> 4 for line in (upper, lower)]
        resized[row] = (lines[0] * more >> 16) + (lines[1] * less >> 16) + 2 >> 2
    return resized


def _from_the_corner(pixels: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """Resize to a width and height as MediaPipe's ImageToTensorCalculator does: the first pixel stays, no matter how large the new ones are.

    Numerics: OpenCV's warpPerspective with INTER_LINEAR, which places pixels in steps of 1/32 and rounds their sum.
    """
    width, height = size

    def nearest(length: int, wanted: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int32]]:
        steps = np.rint(np.arange(wanted) * (32 * length / wanted)).astype(np.intp)
        first = steps >> 5
        return first.clip(0, length - 1), (first + 1).clip(0, length - 1), (steps & 31).astype(np.int32)

    left, right, across = nearest(pixels.shape[1], width)
    above, below, down = nearest(pixels.shape[0], height)
    across = across.reshape(-1, *[1] * (pixels.ndim - 2))
    resized = np.empty((height, width, *pixels.shape[2:]), np.uint8)
    for row, (upper, lower, part) in enumerate(zip(above, below, down)):
        lines = [pixels[line, left] * (32 - across) + pixels[line, right] * across for line in (upper, lower)]
        resized[row] = lines[0] * (32 - part) + lines[1] * part + 512 >> 10
    return resized


def _neighbours(length: int, wanted: int) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], NDArray[np.int32]]:
    """Return for each new pixel of a side: the old one before it, also beyond the edge; both neighbours that there are; and their shares."""
    at = ((np.arange(wanted) + 0.5) * (length / wanted) - 0.5).astype(np.float32)
    before = np.floor(at).astype(np.intp)
    part = at - before.astype(np.float32)
    shares = np.rint(np.stack([1 - part, part]) * np.float32(2048)).astype(np.int32)
    return before, before.clip(0, length - 1), (before + 1).clip(0, length - 1), shares
