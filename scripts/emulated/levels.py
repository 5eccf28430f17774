"""The processors that oplet is run on: levels of instructions, each as an emulated processor that has them and no more.

Two x86-64 levels are also had without an emulator, by settings that keep libraries from instructions which the machine has.
"""

from __future__ import annotations

import importlib
from typing import Any, NamedTuple

__all__ = ["LEVELS", "Level"]


class Level(NamedTuple):
    """A level of instructions.

    Attributes:
        architecture: the kernel's name of the architecture.
        cpu: QEMU's name of a processor that has this level and nothing of the next one.
        features: what it has, by numpy's names, for a test that it does.
        lacks: the same of what it has not.
        openblas: OpenBLAS' name of the kernels for this level.
        numpy: numpy's names, of all its versions, of what it can be kept from using where there is more.
    """

    architecture: str
    cpu: str
    features: frozenset[str]
    lacks: frozenset[str]
    openblas: str
    numpy: tuple[str, ...] = ()

    @property
    def by_settings(self) -> bool:
        """Whether libraries of a machine that has more can be kept to this level."""
        return bool(self.numpy)

    def settings(self) -> dict[str, str]:
        """The variables that keep numpy and OpenBLAS of this machine to this level, in a process without an emulator."""
        known = [name for name in _umath().__cpu_dispatch__ if name in self.numpy]
        return {"NPY_DISABLE_CPU_FEATURES": " ".join(known), "OPENBLAS_CORETYPE": self.openblas}


def _umath() -> Any:
    """The module in which numpy says what it was built for; its place is another one before numpy 2."""
    try:
        return importlib.import_module("numpy._core._multiarray_umath")
    except ModuleNotFoundError:
        return importlib.import_module("numpy.core._multiarray_umath")


_V4 = (
    "X86_V4",
    "AVX512F",
    "AVX512CD",
    "AVX512_SKX",
    "AVX512_CLX",
    "AVX512_CNL",
    "AVX512_ICL",
    "AVX512_SPR",
    "AVX512_KNL",
    "AVX512_KNM",
)
_V3 = ("X86_V3", "FMA3", "AVX2")

#: Without what the emulator has none of and would warn of, none of which a program is concerned with.
_HASWELL = "Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid"

#: By name: the floor of x86-64 wheels and the level with AVX2, and aarch64 without and with dot products.
LEVELS = {
    "aarch64-neon": Level("aarch64", "cortex-a57", frozenset({"ASIMD"}), frozenset({"ASIMDDP", "SVE"}), "CortexA57"),
    "aarch64-dotprod": Level("aarch64", "neoverse-n1", frozenset({"ASIMD", "ASIMDDP"}), frozenset({"SVE"}), "NeoverseN1"),
    "x86_64-v2": Level("x86_64", "Nehalem", frozenset({"SSE42"}), frozenset({"X86_V3", "AVX2", "FMA3"}), "Nehalem", _V3 + _V4),
    "x86_64-v3": Level("x86_64", _HASWELL, frozenset({"AVX2", "FMA3"}), frozenset({"X86_V4", "AVX512F"}), "Haswell", _V4),
}
