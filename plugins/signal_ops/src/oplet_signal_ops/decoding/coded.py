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
    """One tensor to decode."""

    source: Array  #: bytes
    telling: Array  #: bytes, `HEADER` of them at least
    output: Tensor

    def table(self, dtype: np.dtype[np.generic]) -> Array:
        """Return what follows the header as values of a type; bytes that are left over are no part of it."""
        rest = self.telling[HEADER:]
        whole = rest[: rest.size // dtype.itemsize * dtype.itemsize]
        return np.frombuffer(whole.tobytes(), dtype)

    def ensure_version(self) -> None:
        """Refuse the node unless the kind's own version, the fifth byte, is 1.

        Raises:
            EnsureError: it is another one.
        """
        ensure(
            self.telling[4] == 1, lambda: f"the tables for {self.output} are of version {self.telling[4]}, and only 1 is known."
        )


def channels_of(output: Tensor) -> tuple[int, bool]:
    """Return how many channels a tensor is quantized in, 1 where it is not, and whether they are its last dimension, not its first.

    Raises:
        EnsureError: they are another one, or do not divide the tensor.
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
