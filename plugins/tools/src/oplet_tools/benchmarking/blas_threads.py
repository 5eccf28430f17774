"""Sets the number of threads of numpy's BLAS, by environment variables that are read when numpy is imported."""

from __future__ import annotations

import os
import sys

__all__ = ["limit_blas_threads"]

_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS")


def limit_blas_threads(count: int) -> bool:
    """Set the number of BLAS threads, unless the environment sets one already.

    Returns:
        False if numpy is imported already, which is too late.
    """
    if "numpy" in sys.modules:
        return False
    for variable in _VARIABLES:
        os.environ.setdefault(variable, str(count))
    return True
