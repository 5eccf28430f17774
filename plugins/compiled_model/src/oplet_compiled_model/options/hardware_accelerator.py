"""HardwareAccelerator: the hardware that a model may run on."""

from __future__ import annotations

import enum

__all__ = ["HardwareAccelerator"]


class HardwareAccelerator(enum.IntFlag):
    """Kinds of hardware, to be combined with `|`; the members' values are LiteRT's.

    Attributes:
        CPU: the kernels of the installed packages.
        GPU: a delegate registered for GPUs.
        NPU: a delegate registered for NPUs.
    """

    CPU = 1
    GPU = 2
    NPU = 4
