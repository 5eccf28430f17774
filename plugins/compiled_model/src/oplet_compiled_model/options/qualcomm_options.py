"""QualcommOptions: LiteRT's options of Qualcomm's accelerators."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from typing import Any

from oplet_compiled_model.options.option_utils import optional_bool_to_int, optional_enum_to_int

__all__ = [
    "QualcommBackend",
    "QualcommDspPerformanceMode",
    "QualcommGraphIOTensorMemType",
    "QualcommGraphPriority",
    "QualcommHtpPerformanceMode",
    "QualcommLogLevel",
    "QualcommOptimizationLevel",
    "QualcommOptions",
    "QualcommProfiling",
]


class QualcommLogLevel(enum.IntEnum):
    """The log levels of Qualcomm's SDK."""

    OFF = 0
    ERROR = 1
    WARN = 2
    INFO = 3
    VERBOSE = 4
    DEBUG = 5


class QualcommHtpPerformanceMode(enum.IntEnum):
    """The performance modes of Qualcomm's tensor processor (HTP)."""

    DEFAULT = 0
    SUSTAINED_HIGH_PERFORMANCE = 1
    BURST = 2
    HIGH_PERFORMANCE = 3
    POWER_SAVER = 4
    LOW_POWER_SAVER = 5
    HIGH_POWER_SAVER = 6
    LOW_BALANCED = 7
    BALANCED = 8
    EXTREME_POWER_SAVER = 9


class QualcommDspPerformanceMode(enum.IntEnum):
    """The performance modes of Qualcomm's signal processor (DSP)."""

    DEFAULT = 0
    SUSTAINED_HIGH_PERFORMANCE = 1
    BURST = 2
    HIGH_PERFORMANCE = 3
    POWER_SAVER = 4
    LOW_POWER_SAVER = 5
    HIGH_POWER_SAVER = 6
    LOW_BALANCED = 7
    BALANCED = 8


class QualcommProfiling(enum.IntEnum):
    """The levels of profiling on Qualcomm's accelerators."""

    OFF = 0
    BASIC = 1
    DETAILED = 2
    LINTING = 3
    OPTRACE = 4


class QualcommOptimizationLevel(enum.IntEnum):
    """The optimization goals of Qualcomm's graph compiler."""

    OPTIMIZE_FOR_INFERENCE = 0
    OPTIMIZE_FOR_PREPARE = 1
    OPTIMIZE_FOR_INFERENCE_O3 = 2


class QualcommGraphPriority(enum.IntEnum):
    """The priorities of a graph on a Qualcomm device."""

    DEFAULT = 0
    LOW = 1
    NORMAL = 2
    NORMAL_HIGH = 3
    HIGH = 4


class QualcommBackend(enum.IntEnum):
    """The Qualcomm processors that can run a graph."""

    UNDEFINED = 0
    GPU = 1
    HTP = 2
    DSP = 3
    IR = 4


class QualcommGraphIOTensorMemType(enum.IntEnum):
    """The kinds of memory for a graph's inputs and outputs on a Qualcomm device."""

    RAW = 0
    MEM_HANDLE = 1


@dataclasses.dataclass
class QualcommOptions:
    """Options of Qualcomm's accelerators, accepted for compatibility: LiteRT's vendor libraries read them, oplet has none.

    Attributes:
        log_level: the SDK's log level.
        htp_performance_mode: the tensor processor's performance mode.
        dsp_performance_mode: the signal processor's performance mode.
        use_int64_bias_as_int32: narrow biases of int64.
        enable_weight_sharing: share weights between graphs.
        use_conv_hmx: run convolutions on the matrix unit.
        use_fold_relu: fuse RELUs into the layers before them.
        profiling: the level of profiling.
        dump_tensor_ids: the tensors to dump.
        ir_json_dir: the folder for the graph as JSON.
        dlc_dir: the folder for the compiled graph.
        vtcm_size: the size of fast memory (VTCM) to use, in MB.
        num_hvx_threads: the number of vector units (HVX) to use.
        optimization_level: the goal of the graph compiler.
        graph_priority: the graph's priority.
        backend: the processor.
        saver_output_dir: the folder for recorded calls.
        graph_io_tensor_mem_type: the memory of inputs and outputs.
    """

    LOG_LEVEL = QualcommLogLevel
    HTP_PERFORMANCE_MODE = QualcommHtpPerformanceMode
    DSP_PERFORMANCE_MODE = QualcommDspPerformanceMode
    PROFILING = QualcommProfiling
    OPTIMIZATION_LEVEL = QualcommOptimizationLevel
    GRAPH_PRIORITY = QualcommGraphPriority
    BACKEND = QualcommBackend
    GRAPH_IO_TENSOR_MEM_TYPE = QualcommGraphIOTensorMemType

    log_level: QualcommLogLevel | None = None
    htp_performance_mode: QualcommHtpPerformanceMode | None = None
    dsp_performance_mode: QualcommDspPerformanceMode | None = None
    use_int64_bias_as_int32: bool | None = None
    enable_weight_sharing: bool | None = None
    use_conv_hmx: bool | None = None
    use_fold_relu: bool | None = None
    profiling: QualcommProfiling | None = None
    dump_tensor_ids: Sequence[int] | None = None
    ir_json_dir: str = ""
    dlc_dir: str = ""
    vtcm_size: int | None = None
    num_hvx_threads: int | None = None
    optimization_level: QualcommOptimizationLevel | None = None
    graph_priority: QualcommGraphPriority | None = None
    backend: QualcommBackend | None = None
    saver_output_dir: str = ""
    graph_io_tensor_mem_type: QualcommGraphIOTensorMemType | None = None

    def _as_flat_kwargs(self) -> dict[str, Any]:
        return {
            "qualcomm_log_level": optional_enum_to_int(self.log_level),
            "qualcomm_htp_performance_mode": optional_enum_to_int(self.htp_performance_mode),
            "qualcomm_dsp_performance_mode": optional_enum_to_int(self.dsp_performance_mode),
            "qualcomm_use_int64_bias_as_int32": optional_bool_to_int(self.use_int64_bias_as_int32),
            "qualcomm_enable_weight_sharing": optional_bool_to_int(self.enable_weight_sharing),
            "qualcomm_use_conv_hmx": optional_bool_to_int(self.use_conv_hmx),
            "qualcomm_use_fold_relu": optional_bool_to_int(self.use_fold_relu),
            "qualcomm_profiling": optional_enum_to_int(self.profiling),
            "qualcomm_has_dump_tensor_ids": self.dump_tensor_ids is not None,
            "qualcomm_dump_tensor_ids": list(self.dump_tensor_ids or []),
            "qualcomm_ir_json_dir": self.ir_json_dir,
            "qualcomm_dlc_dir": self.dlc_dir,
            "qualcomm_vtcm_size": -1 if self.vtcm_size is None else self.vtcm_size,
            "qualcomm_num_hvx_threads": -1 if self.num_hvx_threads is None else self.num_hvx_threads,
            "qualcomm_optimization_level": optional_enum_to_int(self.optimization_level),
            "qualcomm_graph_priority": optional_enum_to_int(self.graph_priority),
            "qualcomm_backend": optional_enum_to_int(self.backend),
            "qualcomm_saver_output_dir": self.saver_output_dir,
            "qualcomm_graph_io_tensor_mem_type": optional_enum_to_int(self.graph_io_tensor_mem_type),
        }
