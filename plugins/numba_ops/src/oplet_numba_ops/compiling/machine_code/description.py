"""The operating system's description of the processor."""

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
    """Return the lines of /proc/cpuinfo that describe the first processor's features; "" on other systems."""
    with suppress(OSError):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            first = file.read(16384).partition("\n\n")[0]
        return "\n".join(line for line in first.splitlines() if line.partition(":")[0].strip().lower() in _TELLING)
    return ""
