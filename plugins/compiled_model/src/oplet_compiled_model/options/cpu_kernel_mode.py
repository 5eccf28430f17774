"""CpuKernelMode: what runs a model on the CPU."""

from __future__ import annotations

import enum

__all__ = ["CpuKernelMode"]


class CpuKernelMode(enum.IntEnum):
    """What runs nodes on the CPU; the numbers are LiteRT's.

    Attributes:
        DELEGATE: a delegate that says it is for CPUs, where one is installed; oplet's kernels run what it leaves.
        XNNPACK: another name of DELEGATE.
        REFERENCE: the kernels of the installed packages, with the numbers of LiteRT's own kernels where its default has others
            (see `oplet.OpResolverType`).
        BUILTIN: the same.
    """

    DELEGATE = 0
    XNNPACK = 0
    REFERENCE = 1
    BUILTIN = 2
