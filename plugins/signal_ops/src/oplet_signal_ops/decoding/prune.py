"""Values without those that are zero: a bit for each value says whether it is left.

Numerics: tensorflow/lite/micro/kernels/decode_state_prune.cc of tflite-micro
"""

from __future__ import annotations

import numpy as np

from oplet import TensorType, charge, checkpoint, ensure
from oplet_signal_ops.decoding.coded import Coded, channels_of

__all__ = ["put_back"]

#: Values that are written at once, whole bytes of bits.
_AT_ONCE = 1 << 16


def put_back(coded: Coded) -> None:
    """Decode a pruned tensor into its output: stored values where the bit mask is set, zero (int8: the zero point) elsewhere.

    Raises:
        EnsureError: the mask has fewer bits than there are values, or more bits are set than values are stored.
    """
    coded.ensure_version()
    output = coded.output
    count = output.size
    ensure(8 * coded.source.size >= count, lambda: f"there are {coded.source.size} bytes for {count} bits.")
    channels, last = channels_of(output)
    zeros = np.zeros(channels, np.int64)
    if output.quantization is not None and len(output.quantization.zero_points) == channels:
        zeros = np.asarray(output.quantization.zero_points, np.int64)
    ensure(
        output.type == TensorType.INT8 or not zeros.any(), lambda: f"{output} must have zero points of 0, as it is not of INT8."
    )
    charge(coded.telling.size)
    values = coded.table(np.dtype(np.uint8) if output.type == TensorType.BOOL else output.dtype)
    flat = output.data.reshape(-1)
    each, used = max(1, count // channels), 0
    for start in range(0, count, _AT_ONCE):
        checkpoint()
        stop = min(count, start + _AT_ONCE)
        kept = np.unpackbits(coded.source[start // 8 : -(-stop // 8)], count=stop - start).view(bool)
        places = np.arange(start, stop)
        part = flat[start:stop]
        part[...] = zeros[places % channels if last else places // each]
        end = used + int(np.count_nonzero(kept))
        ensure(end <= values.size, lambda: f"there are {values.size} values for {output}, and more bits that are set.")
        part[kept] = values[used:end]
        used = end
