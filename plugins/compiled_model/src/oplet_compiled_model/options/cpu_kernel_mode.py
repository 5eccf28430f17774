"""CpuKernelMode: what runs a model on the CPU."""

from __future__ import annotations

import enum

__all__ = ["CpuKernelMode"]


class CpuKernelMode(enum.IntEnum):
    """Which code runs nodes on the CPU; the members' values are LiteRT's.

    Attributes:
        DELEGATE: a delegate registered for CPUs, where one is installed; oplet's kernels run the nodes that it does not claim.
        XNNPACK: another name of DELEGATE.
        REFERENCE: kernels with the results of LiteRT's reference kernels (`oplet.OpResolverType.BUILTIN_REF`).
        BUILTIN: kernels with the results of LiteRT's own kernels without XNNPACK (`BUILTIN_WITHOUT_DEFAULT_DELEGATES`).
    """

    DELEGATE = 0
    XNNPACK = 0
    REFERENCE = 1
    BUILTIN = 2
