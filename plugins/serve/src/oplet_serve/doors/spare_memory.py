"""Memory of requests that are gone goes back to the system: the C library keeps it for the next ones, as many as had come at once."""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable

__all__ = ["give_back_memory"]

#: Seconds between two looks, the most of them when a look gained nothing, and the bytes by which the process must be larger than it was.
_EVERY, _SELDOM, _GROWN = 2.0, 8.0, 32 << 20


def _trim() -> Callable[[int], int] | None:
    """Return the C library's function that gives back memory; None if it has none, or there is no telling how much the process has."""
    try:
        return ctypes.CDLL(None).malloc_trim if os.path.exists("/proc/self/statm") else None
    except (OSError, AttributeError, TypeError):
        return None


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as told:
        return int(told.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def give_back_memory() -> None:
    """Check every few seconds whether the process's memory has grown, and return unused memory to the system (malloc_trim); loop
    forever, or return at once where the C library cannot do so.

    Memory in use by requests cannot be returned, so a process that is still large is checked again later.
    """
    trim = _trim()
    least = 0 if trim is None else _resident()
    pause = _EVERY
    while trim is not None:
        await asyncio.sleep(pause)
        found = _resident()
        if found > least + _GROWN:
            await asyncio.to_thread(trim, 0)
            pause = _EVERY if _resident() < found - _GROWN // 4 else min(2 * pause, _SELDOM)
        else:
            least, pause = min(least, found), _EVERY
