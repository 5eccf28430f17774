"""CompiledModel: LiteRT's newer Python API, for every model that oplet runs.

Also reached as `oplet.compiled_model`. The submodules have the names of those of `ai_edge_litert`, and are reached as `oplet.tensor_buffer`,
`oplet.environment`, `oplet.options` and so on, so that a program only changes the package's name.
"""

from oplet_compiled_model.compiled_model import CompiledModel
from oplet_compiled_model.environment import Environment, EnvironmentOptions
from oplet_compiled_model.errors import CompiledModelError
from oplet_compiled_model.options import CpuOptions, GpuOptions, IntelOpenVinoOptions, Options, QualcommOptions
from oplet_compiled_model.options.cpu_kernel_mode import CpuKernelMode
from oplet_compiled_model.options.hardware_accelerator import HardwareAccelerator
from oplet_compiled_model.tensor_buffer import TensorBuffer

__all__ = [
    "CompiledModel",
    "CompiledModelError",
    "CpuKernelMode",
    "CpuOptions",
    "Environment",
    "EnvironmentOptions",
    "GpuOptions",
    "HardwareAccelerator",
    "IntelOpenVinoOptions",
    "Options",
    "QualcommOptions",
    "TensorBuffer",
]
