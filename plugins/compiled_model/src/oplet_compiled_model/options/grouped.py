"""Options: what a CompiledModel is made with, in groups."""

from __future__ import annotations

import dataclasses
from typing import Any

from oplet_compiled_model.options.cpu_options import CpuOptions
from oplet_compiled_model.options.gpu_options import GpuOptions
from oplet_compiled_model.options.hardware_accelerator import HardwareAccelerator
from oplet_compiled_model.options.intel_openvino_options import IntelOpenVinoOptions
from oplet_compiled_model.options.qualcomm_options import QualcommOptions

__all__ = ["Options"]


@dataclasses.dataclass(init=False)
class Options:
    """The options of one CompiledModel.

    Args:
        hardware_accelerators: the hardware that it may run on.
        cpu_options: options of the CPU.
        gpu_options: options of LiteRT's GPU delegate, accepted for compatibility.
        qualcomm_options: options of Qualcomm's accelerators, accepted for compatibility.
        intel_openvino_options: options of Intel's accelerators, accepted for compatibility.

    Attributes:
        hardware_accelerators: the hardware that it may run on.

    Examples:
        >>> Options(cpu_options=CpuOptions(num_threads=4)).cpu_options.num_threads
        4
    """

    hardware_accelerators: HardwareAccelerator = HardwareAccelerator.CPU
    _cpu_options: CpuOptions | None = None
    _gpu_options: GpuOptions | None = None
    _qualcomm_options: QualcommOptions | None = None
    _intel_openvino_options: IntelOpenVinoOptions | None = None

    def __init__(
        self,
        hardware_accelerators: HardwareAccelerator = HardwareAccelerator.CPU,
        cpu_options: CpuOptions | None = None,
        gpu_options: GpuOptions | None = None,
        qualcomm_options: QualcommOptions | None = None,
        intel_openvino_options: IntelOpenVinoOptions | None = None,
    ) -> None:
        self.hardware_accelerators = hardware_accelerators
        self._cpu_options = cpu_options
        self._gpu_options = gpu_options
        self._qualcomm_options = qualcomm_options
        self._intel_openvino_options = intel_openvino_options

    @classmethod
    def create(cls) -> Options:
        """Return options with default values."""
        return cls()

    @property
    def cpu_options(self) -> CpuOptions:
        """The options of the CPU, made when they are first read."""
        if self._cpu_options is None:
            self._cpu_options = CpuOptions()
        return self._cpu_options

    @property
    def gpu_options(self) -> GpuOptions:
        """The options of LiteRT's GPU delegate, made when they are first read."""
        if self._gpu_options is None:
            self._gpu_options = GpuOptions()
        return self._gpu_options

    @property
    def qualcomm_options(self) -> QualcommOptions:
        """The options of Qualcomm's accelerators, made when they are first read."""
        if self._qualcomm_options is None:
            self._qualcomm_options = QualcommOptions()
        return self._qualcomm_options

    @property
    def intel_openvino_options(self) -> IntelOpenVinoOptions:
        """The options of Intel's accelerators, made when they are first read."""
        if self._intel_openvino_options is None:
            self._intel_openvino_options = IntelOpenVinoOptions()
        return self._intel_openvino_options

    def _as_flat_kwargs(self) -> dict[str, Any]:
        groups = (
            self._cpu_options or CpuOptions(),
            self._gpu_options or GpuOptions(),
            self._qualcomm_options or QualcommOptions(),
            self._intel_openvino_options or IntelOpenVinoOptions(),
        )
        flat: dict[str, Any] = {"hardware_accel": int(self.hardware_accelerators)}
        for group in groups:
            flat.update(group._as_flat_kwargs())
        return flat
