"""How many threads numpy's BLAS takes, which it is told through the environment, before numpy is imported."""

from __future__ import annotations

import os
import sys

__all__ = ["limit_blas_threads"]

_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS")


def limit_blas_threads(count: int) -> bool:
    """Have BLAS use so many threads, where the environment does not say otherwise already.

    Returns:
        False if it is too late: numpy is imported.
    """
    if "numpy" in sys.modules:
        return False
    for variable in _VARIABLES:
        os.environ.setdefault(variable, str(count))
    return True
