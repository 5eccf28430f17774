"""GpuOptions: LiteRT's options of its GPU delegate."""

from __future__ import annotations

import dataclasses
from typing import Any

__all__ = ["GpuOptions"]


@dataclasses.dataclass
class GpuOptions:
    """Options of LiteRT's GPU delegate, accepted for compatibility: oplet's delegates have options of their own.

    Attributes:
        enforce_f32: compute in float32.
        constant_tensor_sharing: share constants between models.
        infinite_float_capping: replace infinite constants by finite ones.
        benchmark_mode: wait for the device after each run.
        allow_src_quantized_fc_conv_ops: take quantized layers too.
        hint_waiting_for_completion: expect the program to wait for the device.
    """

    enforce_f32: bool = False
    constant_tensor_sharing: bool = False
    infinite_float_capping: bool = False
    benchmark_mode: bool = False
    allow_src_quantized_fc_conv_ops: bool = False
    hint_waiting_for_completion: bool = False

    def _as_flat_kwargs(self) -> dict[str, Any]:
        return {
            "gpu_enforce_f32": self.enforce_f32,
            "gpu_share_constant_tensors": self.constant_tensor_sharing,
            "enable_constant_tensor_sharing": self.constant_tensor_sharing,
            "enable_infinite_float_capping": self.infinite_float_capping,
            "enable_benchmark_mode": self.benchmark_mode,
            "enable_allow_src_quantized_fc_conv_ops": self.allow_src_quantized_fc_conv_ops,
            "enable_hint_waiting_for_completion": self.hint_waiting_for_completion,
        }
