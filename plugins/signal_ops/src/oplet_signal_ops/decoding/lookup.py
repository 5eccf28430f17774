"""Values by their numbers in a table, for each channel one; a number takes 1 to 7 bits.

Numerics: tensorflow/lite/micro/kernels/decode_state_lut.cc of tflite-micro
"""

from __future__ import annotations

import numpy as np

from oplet import TensorType, charge, checkpoint, ensure
from oplet_signal_ops.decoding.coded import Coded, channels_of

__all__ = ["TYPES", "look_up"]

TYPES = (
    TensorType.BOOL, TensorType.FLOAT32, TensorType.INT8, TensorType.INT16, TensorType.INT32, TensorType.INT64,
)  # fmt: skip
#: Values that are read at once: a number of them that fills whole bytes in every width.
_AT_ONCE = 1 << 16


def look_up(coded: Coded) -> None:
    """Decode a tensor of packed 1-bit to 7-bit indices into per-channel look-up tables, and write the values into its output.

    Raises:
        EnsureError: there are fewer indices than values, or an index is beyond its table.
    """
    coded.ensure_version()
    output = coded.output
    count = output.size
    width, stride = int(coded.telling[5]) & 7, int(coded.telling[6])
    ensure(width > 0, lambda: f"the numbers for {output} have 0 bits; they must have 1 to 7.")
    ensure(
        8 * coded.source.size >= count * width,
        lambda: f"there are {coded.source.size} bytes for {count} numbers of {width} bits.",
    )
    channels, last = channels_of(output)
    charge(coded.telling.size)
    values = coded.table(np.dtype(np.uint8) if output.type == TensorType.BOOL else output.dtype)
    flat = output.data.reshape(-1)
    each = max(1, count // channels)
    weights = (1 << np.arange(width - 1, -1, -1)).astype(np.intp)
    for start in range(0, count, _AT_ONCE):
        checkpoint()
        stop = min(count, start + _AT_ONCE)
        packed = coded.source[start * width // 8 : -(-stop * width // 8)]
        bits = np.unpackbits(packed, count=(stop - start) * width).reshape(-1, width)
        places = np.arange(start, stop)
        numbers = bits @ weights + stride * (places % channels if last else places // each)
        high = int(numbers.max())
        ensure(high < values.size, lambda: f"the value {high} of {values.size} in the tables for {output} is asked for.")  # noqa: B023 # at once
        flat[start:stop] = values[numbers]
