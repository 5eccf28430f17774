"""Memory use of the process."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["peak_bytes", "resident_bytes"]

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int | None:
    """Return the resident set size of the process, in bytes; None if the system does not report it."""
    try:
        return int(_STATM.read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError):
        return None


def peak_bytes() -> int | None:
    """Return the largest resident set size that the process ever had, in bytes; None if the system does not report it."""
    try:
        import resource
    except ModuleNotFoundError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Some systems update the peak lazily, so that it can be below the present size.
    return max(most if sys.platform == "darwin" else most * 1024, resident_bytes() or 0)
