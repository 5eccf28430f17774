"""Memory of requests that are gone goes back to the system: the C library keeps it for the next ones, as many as had come at once."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
from collections.abc import Callable

__all__ = ["give_back_memory"]

#: Seconds between two looks, the most of them when a look gained nothing, and the bytes by which the process must be larger than it was.
_EVERY, _SELDOM, _GROWN = 2.0, 8.0, 8 << 20
#: M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, and their bytes: else large blocks that are freed raise them to 64 and 32 MiB, and as much stays at
#: the end of each arena, where malloc_trim does not look.
_THRESHOLDS = {-1: 1 << 20, -3: 4 << 20}
#: Looks that are put off, one after the other, while the server is busy.
_PUT_OFF = 10


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as told:
        return int(told.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def give_back_memory(is_busy: Callable[[], bool] = lambda: False) -> None:
    """Check every few seconds whether the process's memory has grown, and return unused memory to the system (malloc_trim); loop
    forever, or return at once where the C library cannot do so.

    Args:
        is_busy: whether large requests are in progress: malloc_trim stops all threads from allocating for some time, so that it runs
            seldom then.
    """
    gc.collect()
    gc.freeze()
    library = ctypes.CDLL(None)
    if not os.path.exists("/proc/self/statm") or not hasattr(library, "malloc_trim"):
        return
    for parameter, size in _THRESHOLDS.items():
        library.mallopt(parameter, size)
    least, pause, put_off = _resident(), _EVERY, 0
    while True:
        await asyncio.sleep(pause)
        put_off = put_off + 1 if put_off < _PUT_OFF and is_busy() else 0
        if put_off:
            continue
        found = _resident()
        if found > least + _GROWN:
            gc.collect()  # what refers to itself; all that was there at the start is frozen, so that it takes a few milliseconds
            await asyncio.to_thread(library.malloc_trim, 0)
            pause = _EVERY if _resident() < found - _GROWN // 4 else min(2 * pause, _SELDOM)
        else:
            least, pause = min(least, found), _EVERY
