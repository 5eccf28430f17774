"""IntelOpenVinoOptions: LiteRT's options of Intel's accelerators."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

from oplet_compiled_model.options.option_utils import optional_bool_to_int, optional_enum_to_int

__all__ = ["IntelOpenVinoGraphBackend", "IntelOpenVinoOptions", "IntelOpenVinoPerformanceMode"]


class IntelOpenVinoGraphBackend(enum.IntEnum):
    """The devices that OpenVINO can run a graph on; the members' values are LiteRT's."""

    CPU = 0
    GPU = 1
    NPU = 2


class IntelOpenVinoPerformanceMode(enum.IntEnum):
    """The goals that an OpenVINO device can optimize for; the members' values are LiteRT's."""

    LATENCY = 0
    THROUGHPUT = 1
    CUMULATIVE_THROUGHPUT = 2


@dataclasses.dataclass
class IntelOpenVinoOptions:
    """Options of Intel's accelerators, accepted for compatibility: oplet's delegate `openvino` has options of its own.

    Attributes:
        graph_backend: the device.
        performance_mode: the goal that the device optimizes for.
        configs_map: OpenVINO's properties by name.
        enable_weight_sharing: share weights between partitions.
    """

    GRAPH_BACKEND = IntelOpenVinoGraphBackend
    PERFORMANCE_MODE = IntelOpenVinoPerformanceMode

    graph_backend: IntelOpenVinoGraphBackend | None = None
    performance_mode: IntelOpenVinoPerformanceMode | None = None
    configs_map: dict[str, str] = dataclasses.field(default_factory=dict)
    enable_weight_sharing: bool | None = None

    def _as_flat_kwargs(self) -> dict[str, Any]:
        return {
            "intel_openvino_graph_backend": optional_enum_to_int(self.graph_backend),
            "intel_openvino_performance_mode": optional_enum_to_int(self.performance_mode),
            "intel_openvino_configs_map": dict(self.configs_map),
            "intel_openvino_enable_weight_sharing": optional_bool_to_int(self.enable_weight_sharing),
        }
