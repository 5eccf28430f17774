"""exp and what builds on it: LOGISTIC, SOFTMAX, LOG_SOFTMAX of floats and of integers. Normalizations of rows are here, too.

The kernel of LOGISTIC is declared here, those of whole rows in `ops`; they are explained where their sources are.
"""

from __future__ import annotations

from oplet_compiled_ops.library.kernels import Kernel

__all__ = ["LOGISTIC"]

LOGISTIC = Kernel("softmax.exponentials:LOGISTIC", "void(f4[::1], f4[::1])")
