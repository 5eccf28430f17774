"""What requests took is the system's again once they are gone, also where something small lies behind it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.children import run_child

#: Pieces that are smaller than what the C library maps by itself, and a few that stay.
CHILD = """
import asyncio
from oplet_serve.doors import spare_memory

spare_memory._EVERY = spare_memory._SELDOM = 0.01

async def main():
    giving = asyncio.ensure_future(spare_memory.give_back_memory())
    await asyncio.sleep(0.05)
    before = spare_memory._resident()
    pieces = [b"x" * 100_000 for _ in range(3000)]
    kept = pieces[::50]
    full = spare_memory._resident()
    await asyncio.sleep(1.0)  # in which memory that is used is looked at
    del pieces
    for _ in range(1000):
        await asyncio.sleep(0.01)
        if spare_memory._resident() < before + (full - before) / 4:
            break
    print(full - before > 250e6, spare_memory._resident() < before + (full - before) / 4)
    giving.cancel()

asyncio.run(main())
"""


#: Blocks that the C library maps by themselves unless a larger one was freed, after which it keeps the end of the memory that they lie in.
WITHOUT_A_LOOK = """
import asyncio
from oplet_serve.doors import spare_memory

async def main():
    giving = asyncio.ensure_future(spare_memory.give_back_memory())
    await asyncio.sleep(0.05)
    b"x" * (24 << 20)
    before = spare_memory._resident()
    pieces = [b"x" * (5 << 20) for _ in range(4)]
    full = spare_memory._resident()
    del pieces
    print(full - before > 18e6, spare_memory._resident() < before + 4e6)
    giving.cancel()

asyncio.run(main())
"""


@pytest.mark.environment
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the process's memory is read from /proc")
@pytest.mark.parametrize("child", [CHILD, WITHOUT_A_LOOK])
def test_memory_is_given_back(child: str) -> None:
    assert run_child([sys.executable, "-c", child], env=None).stdout.split() == ["True", "True"]
