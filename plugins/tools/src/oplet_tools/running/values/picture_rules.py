"""What a model's file says of the pictures that it takes: by its TFLITE_METADATA, or as ultralytics' models take them.

A picture as the value of an input, with the steps of its conversion.

Parts that a picture's file consists of, counted before Pillow decodes it.

Pixels tell how much memory a picture takes, and not how long it takes: a JPEG may go over all of them thousands of times, in 26 bytes each,
and Pillow unpacks each text and colour profile that a file has, 1 KB to 1 MB. Decoding cannot be interrupted.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import Model
from oplet.errors import OpletError, TensorError
from oplet_tools.metadata.tables import ColorSpaceType, ImageProperties, tensor_metadata
from oplet_tools.metadata.ultralytics import ultralytics_of
from oplet_tools.running.values.normalization import Normalization, normalization_of
from oplet_tools.running.values.notices import Notice

__all__ = ["METADATA", "PictureRules", "picture_rules_of"]


@dataclass
class Picture:
    """A picture, converted to the value of an input."""

    path: Path  #: The file.
    done: list[str] = field(default_factory=list)  #: The steps of its conversion, in words.
    facts: dict[str, Any] = field(default_factory=dict)  #: The same steps as data, for JSON.
    pixels: NDArray[Any] = field(default_factory=lambda: np.empty(0))  #: The array for the input.
    raw: bool = False  #: Whether `pixels` are integers as the input's tensor holds them, not real values.
    #: Left, top, right and bottom of the area that was resized to the input, in pixels of the picture after EXIF rotation; the
    #: part beyond the picture is padding.
    area: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)

    def did(self, what: str, **facts: Any) -> None:
        """Record a step of the conversion, in words and as data."""
        self.done.append(what)
        self.facts.update(facts)

    def notice(self, name: str) -> Notice:
        """Return a notice of the steps of the conversion, for the user; `name` is the input's."""
        return Notice("picture", name, f"'{self.path}': {', '.join(self.done)}", {**self.facts, "area": list(self.area)})


#: Who says it, in messages.
METADATA, ULTRALYTICS = "as the model's metadata say", "as ultralytics' models take pictures"
#: The grey that ultralytics fills up with, and tasks whose pictures are fitted so; classifiers take the middle.
_GREY, _FITTED = 114, ("detect", "segment", "pose", "obb")


class PictureRules(NamedTuple):
    """The preprocessing of pictures that a model's file prescribes for an input."""

    normalization: Normalization | None = None  #: Real = (pixel - mean) / std; None if not given.
    greyscale: bool = False  #: Whether pictures are grey, also where the input has three channels.
    size: tuple[int, int] | None = None  #: Height and width for dimensions that the input leaves free; None if not given.
    resize: str = ""  #: How a picture of other proportions is fitted, "stretch", "crop" or "pad"; "" if not given.
    fill: int = 0  #: The value of the pixels that padding adds.
    #: The resampling filter, one of `Preprocessing.filter`, "linear" (between the nearest four pixels) or "corner" (MediaPipe's);
    #: "" if not given.
    filter: str = ""
    source: str = METADATA  #: Where these rules come from, in words.


def picture_rules_of(model: Model, subgraph: int, position: int) -> PictureRules:
    """Return the preprocessing of pictures that the model's file prescribes for an input.

    Args:
        subgraph: the subgraph's index.
        position: the input's position among the subgraph's inputs.

    Raises:
        TensorError: the metadata are damaged, or their means or standard deviations cannot be used.
    """
    try:
        said = tensor_metadata(model, subgraph, position)
    except OpletError as error:
        raise TensorError(_unread(error)) from error
    normalization = normalization_of(said)
    try:
        exported = None if position else ultralytics_of(model)
    except OpletError as error:
        if said is None:
            raise TensorError(_unread(error)) from error
        exported = None
    content = said.content.content_properties if said is not None and said.content is not None else None
    rules = PictureRules(normalization)
    if isinstance(content, ImageProperties):
        size = content.default_size
        fixed = (size.height, size.width) if size is not None and size.height and size.width else None
        rules = PictureRules(normalization, content.color_space == ColorSpaceType.GRAYSCALE, fixed, filter="corner")
    if exported is None:
        return rules
    square = exported.size is None or exported.size[0] == exported.size[1]
    classifies = exported.task == "classify"
    return PictureRules(
        normalization or Normalization((0.0,), (255.0,)),
        rules.greyscale,
        rules.size or exported.size,
        "pad" if exported.task in _FITTED else ("crop" if square else "stretch") if classifies else "",
        _GREY,
        "linear" if exported.task in _FITTED else "bilinear" if classifies else "",
        ULTRALYTICS,
    )


def _unread(error: OpletError) -> str:
    return (
        f"The model's metadata, which may say what becomes of pictures, cannot be read: {str(error).rstrip('.')}; "
        "give --scale and --offset."
    )


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
