"""Levels of processors: for each there is a shared library of kernels, and layouts of data that its kernels are made for.

x86-64's levels are those of the System V ABI's supplement; the last adds AVX-512 VNNI. aarch64's second level adds dot products of
bytes (FEAT_DotProd).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from oplet_compiled_ops.library.opening import chosen_level

__all__ = [
    "LANES",
    "LEVELS",
    "Level",
    "adds_128",
    "current",
    "has_byte_products",
    "has_masks",
    "tile_rows",
    "using",
    "windows_together",
]

#: The 32-bit numbers of the vectors that kernels are laid out for, which LLVM divides into the processor's registers.
LANES = 16
#: Rows (convolution windows) that a tile of a matrix product has, by its number of vectors of 16 filters: so many sums just stay in
#: 32 registers of 512 bits; in 16 of 256 bits, twelve of which hold sums, as two vectors would need more of them for filters.
_WIDE: Mapping[int, int] = MappingProxyType({4: 6, 3: 8, 2: 10, 1: 12})
_NARROW: Mapping[int, int] = MappingProxyType({1: 6})


class Level(NamedTuple):
    """What a processor can do, and how kernels' data is laid out for it.

    Attributes:
        name: its name, which is also that of its library's file.
        machine: the architecture, in LLVM's words.
        processor: LLVM's name of the processor whose instructions may be used.
        features: LLVM's names of further features, with signs, separated by commas.
        flags: the names in /proc/cpuinfo of the features that distinguish it from the level before.
        tile_rows: rows of a tile of a matrix product, by its number of vectors of 16 filters.
        windows_together: windows of a depthwise convolution that are accumulated in registers at a time.
        has_masks: whether masked loads and stores are as fast as whole ones.
        byte_products: the instruction for sums of four products of bytes: "vpdpbusd" (unsigned by signed), "sdot" (signed), or ""
            for none.
    """

    name: str
    machine: str
    processor: str
    features: str = ""
    flags: tuple[str, ...] = ()
    tile_rows: Mapping[int, int] = _NARROW
    windows_together: int = 2
    has_masks: bool = False
    byte_products: str = ""


#: All levels, the lowest of each architecture first. `probe.c` numbers them in this order.
LEVELS = {
    level.name: level
    for level in (
        Level("x86-64-v2", "x86_64", "x86-64-v2"),
        Level("x86-64-v3", "x86_64", "x86-64-v3", flags=("avx2", "fma", "bmi2", "f16c")),
        Level(
            "x86-64-v4",
            "x86_64",
            "x86-64-v4",
            flags=("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
            tile_rows=_WIDE,
            windows_together=4,
            has_masks=True,
        ),
        Level(
            "x86-64-v4-vnni",
            "x86_64",
            "x86-64-v4",
            "+avx512vnni",
            flags=("avx512_vnni",),
            tile_rows=_WIDE,
            windows_together=4,
            has_masks=True,
            byte_products="vpdpbusd",
        ),
        Level("aarch64", "aarch64", "generic", "+neon"),
        Level("aarch64-dotprod", "aarch64", "generic", "+neon,+dotprod", flags=("asimddp",), byte_products="sdot"),
    )
}
#: The level that kernels are compiled for, with a list that is not empty once it has been asked for.
_used: list[tuple[Level, list[Level]]] = []


@contextlib.contextmanager
def using(level: Level) -> Iterator[list[Level]]:
    """Lay out for a level that need not be this processor's, while its kernels are compiled.

    The list that `as` gives stays empty as long as nobody asks for the level (`current`).
    """
    asked: list[Level] = []
    _used.append((level, asked))
    try:
        yield asked
    finally:
        _used.pop()


def current() -> Level:
    """Return the level whose library is open in this process, or the one that kernels are compiled for (`using`).

    Raises:
        MissingKernelError: there is no library for this machine.
    """
    if not _used:
        return LEVELS[chosen_level()]
    level, asked = _used[-1]
    asked.append(level)
    return level


def has_byte_products() -> bool:
    """Return whether the processor has sums of four products of bytes."""
    return bool(current().byte_products)


def adds_128() -> bool:
    """Return whether byte products take activations that are 128 more than int8 numbers."""
    return current().byte_products == "vpdpbusd"


def tile_rows() -> Mapping[int, int]:
    """Return how many rows (convolution windows) a tile of a matrix product has, by its number of vectors of 16 filters."""
    return current().tile_rows


def windows_together() -> int:
    """Return how many windows of a depthwise convolution are accumulated in registers at a time."""
    return current().windows_together


def has_masks() -> bool:
    """Return whether masked loads and stores are as fast as whole ones."""
    return current().has_masks
