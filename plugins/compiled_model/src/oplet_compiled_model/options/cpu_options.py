"""CpuOptions: how a model runs on the CPU."""

from __future__ import annotations

import dataclasses
from typing import Any

from oplet_compiled_model.options.cpu_kernel_mode import CpuKernelMode

__all__ = ["CpuKernelMode", "CpuOptions"]


@dataclasses.dataclass
class CpuOptions:
    """Options of the CPU.

    Attributes:
        num_threads: the threads that kernels may use, at most as many as the machine has processors; 0 or less for one.
        kernel_mode: which code runs nodes; None for kernels with the results of LiteRT's default (`oplet.OpResolverType.AUTO`).
        enable_ynnpack: accepted for compatibility; it has no effect, as in a LiteRT without YNNPACK.
        xnnpack_flags: accepted for compatibility.
        xnnpack_weight_cache_path: accepted for compatibility.
    """

    num_threads: int = 0
    kernel_mode: CpuKernelMode | None = None
    enable_ynnpack: bool = False
    xnnpack_flags: int | None = None
    xnnpack_weight_cache_path: str = ""

    def _as_flat_kwargs(self) -> dict[str, Any]:
        return {
            "cpu_num_threads": self.num_threads,
            "cpu_kernel_mode": -1 if self.kernel_mode is None else int(self.kernel_mode),
            "cpu_enable_ynnpack": self.enable_ynnpack,
            "xnnpack_flags": -1 if self.xnnpack_flags is None else self.xnnpack_flags,
            "xnnpack_weight_cache_path": self.xnnpack_weight_cache_path,
        }
