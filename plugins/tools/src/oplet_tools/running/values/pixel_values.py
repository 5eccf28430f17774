"""What pixels become: the user's scale or normalization, what the model's file says, or the usual range of the input's type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.errors import TensorError
from oplet_tools.running.values.normalization import Normalization
from oplet_tools.running.values.picture_rules import Picture, PictureRules
from oplet_tools.running.values.quantization import Quantization, integer_limits, quantization_of

__all__ = ["scale_pixels"]


def scale_pixels(
    picture: Picture,
    pixels: NDArray[np.uint8],
    details: Mapping[str, Any],
    name: str,
    scale: float | None,
    offset: float | None,
    channels: int,
    normalization: Normalization | None,
    rules: PictureRules,
) -> None:
    """Set `picture.pixels` to scaled or normalized `pixels`, as the input takes them; `channels` is the dimension of channels."""
    dtype = np.dtype(details["dtype"])
    quantization = quantization_of(details)
    if scale is not None or offset is not None:
        factor, added = 1.0 if scale is None else scale, offset or 0.0
        if not np.isfinite(factor) or not np.isfinite(added):
            raise TensorError(f"Pixels of '{picture.path}' cannot become pixel * {factor} + {added}; give finite numbers.")
        real = pixels * np.float64(factor) + added
        picture.pixels = real if quantization is not None or dtype.kind in "fVc" else np.rint(real)
        picture.did(f"pixels * {factor:.6g} + {added:.6g}", scale=factor, offset=added)
    elif normalization is not None:
        real = normalization.apply(pixels, channels)
        picture.pixels = real if quantization is not None or dtype.kind in "fVc" else np.rint(real)
        how = f"pixels became (pixel - mean) / std with {normalization}"
        picture.did(how, mean=list(normalization.mean), std=list(normalization.std))
    elif _normalized(picture, pixels, details, quantization, channels, rules):
        pass
    elif dtype.kind in "fV":
        picture.pixels = pixels / np.float64(255)
        picture.did("pixels 0..255 became 0..1", scale=1 / 255, offset=0.0)
    elif dtype.kind in "iu" and dtype.itemsize == 1 and "limits" not in details:  # 0..255 becomes the range of the type
        least = int(np.iinfo(details["dtype"]).min)
        picture.pixels, picture.raw = (pixels.astype(np.int16) + least).astype(dtype), True
        real_range = ""
        if quantization is not None and len(quantization.scales) == 1:
            low, high = quantization.range()
            real_range = f", real values {low:.6g} to {high:.6g}"
            picture.facts["real"] = [low, high]
        picture.did(f"pixels 0..255 became {dtype.name} {least}..{least + 255}{real_range}", raw=[least, least + 255])
    elif dtype.kind in "iu" and quantization is None:
        picture.pixels = pixels
        picture.did(f"pixels 0..255 as {dtype.name}", raw=[0, 255])
    else:
        raise TensorError(f"Input '{name}' is {dtype.name}; say how pixels become its numbers, with a scale and an offset.")


def _normalized(
    picture: Picture,
    pixels: NDArray[np.uint8],
    details: Mapping[str, Any],
    quantization: Quantization | None,
    channels: int,
    rules: PictureRules,
) -> bool:
    """Normalize the pixels as the model's file says; return False, and do nothing, if it says nothing or what the input cannot hold.

    Metadata of quantized models have the mean and std of the float model, and the tensor's own scale does the rest. Some have those of no
    model, which is seen from the range: real values that are beyond the tensor's, or that take less than a quarter of it. MediaPipe gives
    uint8 tensors the pixels themselves, which is done where the numbers differ by rounding alone.
    """
    said, dtype = rules.normalization, np.dtype(details["dtype"])
    if said is None or dtype.kind not in "iufV":
        return False
    if dtype.kind in "iu":
        low, high = map(float, integer_limits(details))
        step = 1.0
        if quantization is not None:
            if len(quantization.scales) != 1 or quantization.problem:
                return False
            (low, high), step = quantization.range(), float(quantization.scales[0])
        ends = said.apply(np.array([0.0, 255.0]).reshape(-1, 1).repeat(pixels.shape[channels], 1), 1)
        least, most = float(ends.min()), float(ends.max())
        if least < low - 2 * step or most > high + 2 * step or most - least < (high - low) / 4:
            picture.did(
                f"{said} of the model's metadata left out, as it makes real values {least:.6g} to {most:.6g} for a tensor of {low:.6g} to "
                f"{high:.6g}"
            )
            return False
        if dtype == np.uint8 and quantization is not None and _leads_back(ends, quantization):
            picture.pixels, picture.raw = pixels, True
            how = f"pixels stayed as they are, as MediaPipe has it where quantizing undoes (pixel - mean) / std with {said}, {rules.source}"
            picture.did(how, raw=[0, 255])
            return True
        real = np.clip(said.apply(pixels, channels), low, high)
        picture.pixels = real if quantization is not None else np.rint(real)
    else:
        picture.pixels = said.apply(pixels, channels)
    how = f"pixels became (pixel - mean) / std with {said}, {rules.source}"
    picture.did(how, mean=list(said.mean), std=list(said.std))
    return True


def _leads_back(ends: NDArray[np.float64], quantization: Quantization) -> bool:
    """Return whether quantizing leads back to pixels, but for two steps: `ends` has what 0 and 255 became, for each channel."""
    steps = ends / float(quantization.scales[0]) + float(quantization.zero_points.reshape(-1)[0])
    return bool(np.abs(steps - np.array([[0.0], [255.0]])).max() <= 2)
