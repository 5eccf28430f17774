"""Builds the libraries of kernels of a platform: each kernel is compiled once for each level, in several processes, and only if it
has changed since the last build.
"""

from __future__ import annotations

import gc
import logging
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from oplet_compiled_ops.compiling.fingerprints import fingerprint, identity
from oplet_compiled_ops.compiling.linking import link_library, link_probe
from oplet_compiled_ops.compiling.machine_code import object_of
from oplet_compiled_ops.compiling.members import kernels_of
from oplet_compiled_ops.compiling.numba_ir import ir_of
from oplet_compiled_ops.compiling.platforms import Platform
from oplet_compiled_ops.library.levels import LEVELS, Level, using

__all__ = ["build"]

_logger = logging.getLogger("oplet.compiling")
#: The kernels that a process compiles at a time.
_PORTION = 4


class _Wanted(NamedTuple):
    """An object file to make: of a kernel, for a level, in the format of a platform."""

    kernel: str
    level: str
    triple: str
    path: Path


def build(platform: Platform, levels: Sequence[Level], objects: Path, made: Path) -> None:
    """Compile and link the libraries of kernels for a platform, and its probe (the library that detects the processor's level).

    Args:
        platform: the platform.
        levels: the processor levels (instruction sets) to build for.
        objects: the folder of object files; those of earlier builds are reused if their kernels are unchanged.
        made: the folder to write the libraries into.

    Raises:
        RuntimeError: the linker fails.
    """
    found = {level.name: _wanted(level, platform.triple, objects) for level in levels}
    with _alone(objects):
        _compile([one for wanted in found.values() for one in wanted if not one.path.exists()])
    for name, wanted in found.items():
        files = [one.path for one in wanted]
        link_library(files, identity([path.stem for path in files]), platform, made / f"{name}{platform.suffix}")
    link_probe(platform, made / f"probe{platform.suffix}")


@contextmanager
def _alone(objects: Path) -> Iterator[None]:
    """Wait until no other build compiles into the folder, which then has what both want; nothing where the system has no such locks."""
    objects.mkdir(parents=True, exist_ok=True)
    with (objects / "lock").open("wb") as held:
        try:
            import fcntl
        except ImportError:
            pass
        else:
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _wanted(level: Level, triple: str, objects: Path) -> list[_Wanted]:
    folder = objects / f"{triple}-{level.name}"
    return [_Wanted(kernel.name, level.name, triple, folder / f"{fingerprint(kernel, level)}.o") for kernel in kernels_of(level)]


def _compile(wanted: Sequence[_Wanted]) -> None:
    by_kernel: dict[str, list[_Wanted]] = {}
    for one in wanted:
        by_kernel.setdefault(one.kernel, []).append(one)
        one.path.parent.mkdir(parents=True, exist_ok=True)
    names = sorted(by_kernel, key=lambda name: ("lstm" not in name, "taps" not in name, name))  # what takes longest comes first
    portions = [[by_kernel[name] for name in names[at : at + _PORTION]] for at in range(0, len(names), _PORTION)]
    start, done = time.monotonic(), 0
    if not portions:
        return
    workers = min(len(portions), len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for count in pool.map(_compile_portion, portions):
            done += count
            _logger.info("%d of %d kernels compiled, %.0f s", done, len(names), time.monotonic() - start)


def _compile_portion(portion: Sequence[Sequence[_Wanted]]) -> int:
    gc.set_threshold(100_000, 20, 20)  # numba makes so many objects that stay that collecting often takes a tenth of the time
    for files in portion:
        neutral = ""  # the IR of a kernel that is the same for every level
        for one in files:
            level = LEVELS[one.level]
            code = neutral
            if not code:
                kernel = next(kernel for kernel in kernels_of(level) if kernel.name == one.kernel)
                with using(level) as asked:
                    code = ir_of(kernel)
                neutral = "" if asked else code
            fresh = one.path.with_suffix(f".{os.getpid()}.new")
            fresh.write_bytes(object_of(code, level, one.triple))
            fresh.replace(one.path)
    return len(portion)
