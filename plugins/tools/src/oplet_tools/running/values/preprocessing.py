"""Preprocessing of pictures as `--preprocess` asks for it: how they are fitted to the input, and how pixels become values.

resize=stretch|crop|pad   stretch to the input's size (the default, unless the model's file says otherwise), or keep the proportions and cut off, or fill up, both sides alike
filter=box|nearest|bilinear|bicubic|lanczos
fill=PIXEL                what `pad` fills up with, 0..255; 0 by default
order=rgb|bgr             the order of the channels
mean=X, std=X             pixels become (pixel - mean) / std; several numbers, one for each channel, are separated by colons
scale=X, offset=X         pixels become pixel * scale + offset
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from oplet.errors import TensorError
from oplet_tools.running.values.normalization import Normalization

__all__ = ["FILTERS", "Preprocessing", "parse_preprocessing"]

RESIZES = ("stretch", "crop", "pad")
FILTERS = ("box", "nearest", "bilinear", "bicubic", "lanczos")
ORDERS = ("rgb", "bgr")
_KEYS = ("resize", "filter", "fill", "order", "mean", "std", "scale", "offset")
_EXAMPLE = "resize=crop,mean=123.7:116.3:103.5,std=58.4:57.1:57.4"


@dataclass(frozen=True)
class Preprocessing:
    """The preprocessing of pictures that the user specifies; the defaults leave a choice to the model's metadata."""

    resize: str = ""  #: "stretch", "crop" or "pad"; "" for the rule in the model's metadata, or "stretch" without one.
    #: A name of `FILTERS`, "" for area averaging when a picture shrinks and bilinear interpolation when it grows.
    filter: str = ""
    fill: int = 0  #: The value of the pixels that padding adds.
    order: str = "rgb"  #: "rgb" or "bgr".
    normalization: Normalization | None = None  #: Real = (pixel - mean) / std; None for the one in the model's metadata.
    scale: float | None = None  #: Real = pixel * scale + offset, in place of `normalization`; None for no such scale.
    offset: float | None = None  #: See `scale`; None for 0 if a scale is given.


def parse_preprocessing(text: str) -> Preprocessing:
    """Parse a text such as "resize=crop,mean=127.5,std=127.5"; the module's docstring lists the keys.

    Raises:
        TensorError: the text is malformed, or asks for two things that exclude each other.
    """
    given: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in _KEYS or not value:
            raise TensorError(
                f"--preprocess has '{part.strip()}', which is none of {', '.join(f'{key}=' for key in _KEYS)}; write it as in {_EXAMPLE}."
            )
        if key in given:
            raise TensorError(f"--preprocess has '{key}' twice; give one.")
        given[key] = value
    scaled, normalized = given.keys() & {"scale", "offset"}, given.keys() & {"mean", "std"}
    if scaled and normalized:
        raise TensorError(
            f"--preprocess has '{min(scaled)}' and '{min(normalized)}', which both say what becomes of pixels; give either."
        )
    resize = _choice(given, "resize", RESIZES, "")
    if "fill" in given and resize != "pad":
        raise TensorError("--preprocess has 'fill', which goes with resize=pad; leave it out, or pad.")
    return Preprocessing(
        resize=resize,
        filter=_choice(given, "filter", FILTERS, ""),
        fill=_pixel(given.get("fill", "0")),
        order=_choice(given, "order", ORDERS, "rgb"),
        normalization=_normalization(given) if normalized else None,
        scale=_numbers("scale", given["scale"], 1)[0] if "scale" in given else None,
        offset=_numbers("offset", given["offset"], 1)[0] if "offset" in given else None,
    )


def _choice(given: dict[str, str], key: str, choices: Sequence[str], default: str) -> str:
    value = given.get(key, default)
    if value not in (*choices, default):
        raise TensorError(f"--preprocess has '{key}={value}'; give {', '.join(choices[:-1])} or {choices[-1]}.")
    return value


def _pixel(text: str) -> int:
    if not text.isdecimal() or len(text) > 3 or int(text) > 255:
        raise TensorError(f"--preprocess has 'fill={text}'; give a pixel of 0 to 255.")
    return int(text)


def _numbers(key: str, text: str, most: int) -> tuple[float, ...]:
    try:
        numbers = tuple(float(part) for part in text.split(":"))
    except ValueError:
        numbers = ()
    if not 0 < len(numbers) <= most or not all(map(math.isfinite, numbers)):
        several = ", or several with colons between them" if most > 1 else ""
        raise TensorError(f"--preprocess has '{key}={text}'; give a finite number{several}.")
    return numbers


def _normalization(given: dict[str, str]) -> Normalization:
    mean, std = (_numbers(key, given.get(key, default), 4) for key, default in (("mean", "0"), ("std", "1")))
    if not all(std):
        raise TensorError(f"--preprocess has 'std={given['std']}', by which nothing can be divided; give numbers other than 0.")
    return Normalization(mean, std)
