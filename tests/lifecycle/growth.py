"""How the memory of a process grows, measured in it or in one of its own, which imports this module by its name."""

from __future__ import annotations

import gc
from pathlib import Path

from oplet import Interpreter

__all__ = ["growth_by_interpreters", "resident"]


def resident() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def open_and_close(path: Path, times: int) -> None:
    for _ in range(times):
        interpreter = Interpreter(model_path=str(path))
        interpreter.allocate_tensors()
        interpreter.close()


def growth_by_interpreters(path: Path) -> int:
    """By how many bytes 10,000 interpreters, made and closed, let the process grow."""
    open_and_close(path, 1000)
    before = resident()
    open_and_close(path, 10_000)
    return resident() - before
