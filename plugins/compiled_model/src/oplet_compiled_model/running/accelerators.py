"""The choice of delegates by the hardware that they say they are for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from oplet import OpResolverType
from oplet.errors import DelegateApplicationError, DelegateLoadError, OpletError, PluginError, text_of
from oplet.toolkit import default_manager
from oplet_compiled_model.errors import CompiledModelError
from oplet_compiled_model.options.cpu_kernel_mode import CpuKernelMode
from oplet_compiled_model.options.hardware_accelerator import HardwareAccelerator

if TYPE_CHECKING:
    from oplet import Delegate, Interpreter
    from oplet_compiled_model.options import Options

__all__ = ["accelerate", "kernels_of", "leftover_node", "threads_of"]

_CPU, _GPU, _NPU = HardwareAccelerator.CPU, HardwareAccelerator.GPU, HardwareAccelerator.NPU


def threads_of(options: Options) -> int:
    """Return the number of threads for kernels: `cpu_options.num_threads`, limited to 1 .. number of processors.

    Raises:
        TypeError: `num_threads` is not an int.
    """
    threads = options.cpu_options.num_threads if options._cpu_options is not None else 0
    if not isinstance(threads, int):
        raise TypeError(f"num_threads is {threads!r}; give a whole number.")
    return max(1, min(threads, os.cpu_count() or 1))


def kernels_of(options: Options) -> OpResolverType:
    """Return the kind of op resolver that the options' CPU kernel mode asks for: the LiteRT kernels whose results are reproduced.

    Raises:
        CompiledModelError: the kernel mode is not one of `CpuKernelMode`.
    """
    kinds = {
        CpuKernelMode.REFERENCE: OpResolverType.BUILTIN_REF,
        CpuKernelMode.BUILTIN: OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    }
    mode = _mode(options)
    return OpResolverType.AUTO if mode is None else kinds.get(mode, OpResolverType.AUTO)


def accelerate(interpreter: Interpreter, options: Options) -> list[Delegate]:
    """Apply delegates for the hardware that the options ask for, NPUs before GPUs; return the delegates that were applied.

    Of several delegates for the same hardware, the first in alphabetical order that can be applied is used.

    Raises:
        CompiledModelError: the options name no hardware, or they exclude the CPU and no delegate runs the whole model.
        ValueError: the options' hardware is not a number.
    """
    wanted, mode = int(options.hardware_accelerators), _mode(options)
    if not wanted:
        raise CompiledModelError("No acceleration provided.", "give hardware_accel, as HardwareAccelerator.CPU.")
    if wanted & ~int(_CPU | _GPU | _NPU):
        raise CompiledModelError(
            "Failed to compile the model.",
            f"hardware_accel is {wanted}, and the hardware is CPU, GPU and NPU (1, 2 and 4, or sums).",
        )
    kinds = [kind for kind in (_NPU, _GPU) if wanted & kind]
    if wanted & _CPU and mode is CpuKernelMode.DELEGATE:
        kinds.append(_CPU)
    applied: list[Delegate] = []
    reasons: list[str] = []
    for kind in kinds:
        _apply_for(interpreter, kind, applied, reasons)
    if not wanted & _CPU:
        if not applied:
            names = " and ".join(str(kind.name) for kind in kinds)
            raise CompiledModelError(
                f"No installed package runs nodes on {names} here. {_CPU_HINT}", *(reasons or [_INSTALL.format(names=names)])
            )
        left = leftover_node(interpreter, applied)
        if left is not None:
            raise CompiledModelError(f"Some ops are not accelerated. {_CPU_HINT}", left)
    return applied


_CPU_HINT = (
    "Add kLiteRtHwAcceleratorCpu to the compilation accelerator set to allow using the CPU to run those "
    "(HardwareAccelerator.CPU with |)."
)
_INSTALL = "no installed package has a delegate for {names}; oplet-openvino-delegate has one for Intel's."


def _mode(options: Options) -> CpuKernelMode | None:
    mode = None if options._cpu_options is None else options.cpu_options.kernel_mode
    if mode is None:
        return None
    try:
        return CpuKernelMode(mode)
    except ValueError:
        raise CompiledModelError(
            "Failed to compile the model.", f"kernel_mode is {mode!r}; CpuKernelMode has {', '.join(CpuKernelMode.__members__)}."
        ) from None


def _apply_for(interpreter: Interpreter, kind: HardwareAccelerator, applied: list[Delegate], reasons: list[str]) -> None:
    """Apply the first installed delegate for a kind of hardware that claims a node, and add it to `applied`; note why others do not."""
    hardware = str(kind.name).lower()
    for entry in default_manager().registry().accelerating(hardware):
        try:
            delegate = entry.create(entry.accelerates[hardware])
            interpreter.modify_graph_with_delegate(delegate)
        except OpletError as error:
            reasons.append(f"{entry.name}: {text_of(error)}")
            # After any other error the graph is without delegates.
            if not isinstance(error, DelegateLoadError | DelegateApplicationError | PluginError):
                for earlier in applied:
                    interpreter.modify_graph_with_delegate(earlier)
            continue
        if any(report.partitions for report in interpreter.delegation_reports() if report.delegate == delegate.name):
            applied.append(delegate)
            return
        reasons.append(f"{entry.name}: it claims no node")


def leftover_node(interpreter: Interpreter, delegates: list[Delegate]) -> str | None:
    """Return a sentence that names a node which none of these delegates runs; None if they run all nodes of all signatures."""
    runners = [interpreter.get_signature_runner(key).subgraph_index for key in interpreter.get_signature_list()]
    for index in dict.fromkeys(runners or [0]):
        subgraph = interpreter.subgraphs[index]
        for position in subgraph.execution_plan:
            node = subgraph.nodes[position]
            if position not in subgraph.folded and node.delegate not in delegates:
                reports = [report.unsupported.get(position, "") for report in subgraph.delegated.reports.values()]
                why = next(filter(None, reports), "")
                return f"{node} is left to the CPU" + (f": {why}." if why else ".")
    return None
