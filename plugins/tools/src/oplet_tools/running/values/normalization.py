"""Normalization of pixels by a model's metadata: real = (pixel - mean) / std, with one mean and std or one for each channel."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet.errors import TensorError
from oplet_tools.metadata.tables import NormalizationOptions, TensorMetadata

__all__ = ["Normalization", "normalization_of"]


class Normalization(NamedTuple):
    """Normalization of pixels: real = (pixel - mean) / std."""

    mean: tuple[float, ...]  #: One mean, or one for each channel.
    std: tuple[float, ...]  #: One standard deviation, or one for each channel.

    def __str__(self) -> str:
        return f"mean {_short(self.mean)}, std {_short(self.std)}"

    def apply(self, pixels: NDArray[Any], axis: int) -> NDArray[Any]:
        """Normalize pixels: return (pixel - mean) / std.

        Args:
            pixels: values of 0..255.
            axis: the dimension of the channels.

        Raises:
            TensorError: the number of means is neither one nor that of the channels.
        """
        across = [1] * pixels.ndim
        arrays = []
        for numbers in self:
            if len(numbers) not in (1, pixels.shape[axis]):
                raise TensorError(
                    f"The model's metadata have {len(numbers)} numbers for {pixels.shape[axis]} channels ({self}); "
                    "give --scale and --offset."
                )
            across[axis] = len(numbers)
            arrays.append(np.array(numbers, np.float64).reshape(across))
        mean, std = arrays
        real: NDArray[Any] = (pixels - mean) / std
        return real


def normalization_of(said: TensorMetadata | None) -> Normalization | None:
    """Return the pixel normalization in an input's metadata; None if there is none.

    Args:
        said: the input's metadata, which `tensor_metadata` returns.

    Raises:
        TensorError: the metadata's means or standard deviations cannot be used.
    """
    for unit in (said.process_units or ()) if said is not None else []:
        if isinstance(unit.options, NormalizationOptions):
            mean, std = (
                () if numbers is None else tuple(map(float, numbers)) for numbers in (unit.options.mean, unit.options.std)
            )
            found = Normalization(mean, std)
            if not mean or not std or not np.all(np.isfinite([*mean, *std])) or not all(std):
                raise TensorError(f"The model's metadata give no usable numbers for pixels ({found}); give --scale and --offset.")
            return found
    return None


def _short(numbers: tuple[float, ...]) -> str:
    told = [f"{number:.6g}" for number in numbers[:4]] + (["..."] if len(numbers) > 4 else [])
    return told[0] if len(told) == 1 else f"[{', '.join(told)}]"
