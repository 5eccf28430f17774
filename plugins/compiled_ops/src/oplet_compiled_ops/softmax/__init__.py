"""exp and what builds on it: LOGISTIC, SOFTMAX, LOG_SOFTMAX of floats and of integers. Normalizations of rows are here, too.

The kernels of whole rows are declared here, and explained where their sources are.
"""

from __future__ import annotations

from oplet_compiled_ops.library.kernels import Kernel

__all__ = ["LOGISTIC", "LOG_SOFTMAX", "LOG_SOFTMAX_8", "LONGEST_ROW", "SOFTMAX", "SOFTMAX_8", "SOFTMAX_16"]

LOGISTIC = Kernel("softmax.exponentials:LOGISTIC", "void(f4[::1], f4[::1])")
SOFTMAX = Kernel("softmax.exponentials:SOFTMAX", "void(f4[::1], f4[::1], i8, f4)")
LOG_SOFTMAX = Kernel("softmax.exponentials:LOG_SOFTMAX", "void(f4[::1], f4[::1], i8)")
SOFTMAX_8 = Kernel("softmax.quantized_softmax:SOFTMAX_8", "void(u1[::1], u1[::1], i8, i8[::1], i8[::1], i8)")
LOG_SOFTMAX_8 = Kernel("softmax.quantized_softmax:LOG_SOFTMAX_8", "void(u1[::1], u1[::1], i8, i8[::1], i8[::1], i8)")
SOFTMAX_16 = Kernel("softmax.quantized_softmax:SOFTMAX_16", "void(i2[::1], i2[::1], i8, i8[::1], i2[::1])")
#: The longest row of integers whose sums surely are within 32 bits.
LONGEST_ROW = 8191
