"""Memory of requests that are gone goes back to the system: the C library keeps it for the next ones, as many as had come at once."""

from __future__ import annotations

import asyncio
import ctypes
import os
from collections.abc import Callable

__all__ = ["give_back_memory"]

#: Seconds between two looks, and the bytes that the process must have grown by since memory was given back.
_EVERY, _GROWN = 2.0, 32 << 20


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
    """Look every few seconds whether the process has grown, and give back what it does not use; never ends if that is possible."""
    trim = _trim()
    last = 0 if trim is None else _resident()
    while trim is not None:
        await asyncio.sleep(_EVERY)
        if _resident() > last + _GROWN:
            await asyncio.to_thread(trim, 0)
            last = _resident()
