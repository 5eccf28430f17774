"""The operating system's description of the processor: /proc/cpuinfo on Linux. Machine code on disk is used only where it is the
same.
"""

from __future__ import annotations

import functools
from contextlib import suppress

__all__ = ["description"]

#: The lines of Linux's description of a processor that tell what it can do.
_TELLING = (
    "vendor_id",
    "cpu family",
    "model",
    "model name",
    "stepping",
    "flags",
    "features",
    "cpu implementer",
    "cpu part",
    "cpu variant",
)


@functools.cache
def description() -> str:
    """Return the lines of /proc/cpuinfo that tell the first processor's model and features; "" on systems without such a file."""
    with suppress(OSError):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(16384).partition("\n\n")[0]
        return "\n".join(line for line in first.splitlines() if line.partition(":")[0].strip().lower() in _TELLING)
    return ""
