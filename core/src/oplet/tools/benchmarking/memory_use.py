"""What the process takes of the machine's memory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["peak_bytes", "resident_bytes"]

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int | None:
    """The bytes of the process that are in memory now; None where the system does not tell."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError):
        return None


def peak_bytes() -> int | None:
    """The most bytes of the process that were ever in memory; None where the system does not tell."""
    try:
        import resource
    except ModuleNotFoundError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Systems that count pages lazily can lag behind what is resident now.
    return max(most if sys.platform == "darwin" else most * 1024, resident_bytes() or 0)
