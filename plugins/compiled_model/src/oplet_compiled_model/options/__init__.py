"""The options of a CompiledModel: what hardware it may run on, and how. The names are those of `ai_edge_litert.options`.

Options of LiteRT's own delegates and vendors are accepted and have no effect: oplet's delegates have options of their own.
"""

from oplet_compiled_model.options.cpu_options import CpuKernelMode, CpuOptions
from oplet_compiled_model.options.gpu_options import GpuOptions
from oplet_compiled_model.options.grouped import Options
from oplet_compiled_model.options.hardware_accelerator import HardwareAccelerator
from oplet_compiled_model.options.intel_openvino_options import (
    IntelOpenVinoGraphBackend,
    IntelOpenVinoOptions,
    IntelOpenVinoPerformanceMode,
)
from oplet_compiled_model.options.qualcomm_options import (
    QualcommBackend,
    QualcommDspPerformanceMode,
    QualcommGraphIOTensorMemType,
    QualcommGraphPriority,
    QualcommHtpPerformanceMode,
    QualcommLogLevel,
    QualcommOptimizationLevel,
    QualcommOptions,
    QualcommProfiling,
)

__all__ = [
    "CpuKernelMode",
    "CpuOptions",
    "GpuOptions",
    "HardwareAccelerator",
    "IntelOpenVinoGraphBackend",
    "IntelOpenVinoOptions",
    "IntelOpenVinoPerformanceMode",
    "Options",
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
