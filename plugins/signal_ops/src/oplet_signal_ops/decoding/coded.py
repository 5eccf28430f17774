"""A compressed tensor: its bytes, the bytes that tell how to read them, and the tensor that they become.

Format: tensorflow/lite/micro/compression/decode.py of tflite-micro. What tells how to read begins with 16 bytes: the kind, the version of
these bytes, two that are reserved, and then what each kind has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from oplet import Tensor, ensure
from oplet.kernels.arrays import Array

__all__ = ["HEADER", "Coded", "channels_of"]

#: Bytes before the tables.
HEADER = 16


class Coded(NamedTuple):
    """One compressed tensor: the encoded bytes, the bytes of header and tables that tell how to decode them, and the output."""

    source: Array  #: bytes
    telling: Array  #: bytes, `HEADER` of them at least
    output: Tensor

    def table(self, dtype: np.dtype[np.generic]) -> Array:
        """Return the tables after the header as an array of `dtype`; trailing bytes that make no whole element are dropped."""
        rest = self.telling[HEADER:]
        whole = rest[: rest.size // dtype.itemsize * dtype.itemsize]
        return np.frombuffer(whole.tobytes(), dtype)

    def ensure_version(self) -> None:
        """Check that the version of the codec's tables, the header's fifth byte, is 1.

        Raises:
            EnsureError: the version is another one.
        """
        ensure(
            self.telling[4] == 1, lambda: f"the tables for {self.output} are of version {self.telling[4]}, and only 1 is known."
        )


def channels_of(output: Tensor) -> tuple[int, bool]:
    """Return the number of channels that a tensor is quantized in (1 if per tensor), and whether they are its last dimension.

    Raises:
        EnsureError: the quantized dimension is neither the first nor the last, or does not have one scale per channel.
    """
    quantization = output.quantization
    count = len(quantization.scales) if quantization is not None else 0
    if quantization is None or count == 0:
        return 1, False
    axis = quantization.quantized_dimension
    last = count > 1 and axis == output.ndim - 1
    ensure(last or axis == 0, lambda: f"{output} is quantized along dimension {axis}, neither its first nor its last.")
    size = output.shape[-1 if last else 0] if output.ndim else 1
    ensure(count in (1, size), lambda: f"{output} is quantized in {count} channels, and has {size}.")
    return count, last
