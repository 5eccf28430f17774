"""oplet runs .tflite models; every operator and delegate is a package that pip installs.

Example:
    >>> from oplet import Interpreter  # in place of ai_edge_litert.interpreter or tf.lite
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oplet.plugins.engine_choice import provide_chooser

if TYPE_CHECKING:
    from oplet.delegates.delegate import (
        Delegate,
        DelegateContext,
        DelegateFlags,
        DelegateKernel,
        DelegateParams,
        SimpleDelegate,
        kernel_registration,
        largest_partitions,
    )
    from oplet.delegates.partition import NodeSubset
    from oplet.delegates.registry import DelegateRegistry
    from oplet.interpreter import InterpreterWithCustomOps
    from oplet.model.builder import ModelBuilder
    from oplet.model.model import Model
    from oplet.ops.async_attributes import (
        NO_SYNC_OBJECT,
        BufferAttribute,
        Reconciliation,
        SynchronizationAttribute,
        reconcile_attributes,
        uncovered_attributes,
    )
    from oplet.ops.async_kernel import AsyncKernel, BackendBuffer
    from oplet.ops.callee import Callee
    from oplet.ops.checkpoint import charge, checkpoint
    from oplet.ops.composite import Composite
    from oplet.ops.context import Context, ensure_type
    from oplet.ops.ensure import decline, ensure, ensure_eq
    from oplet.ops.execution_task import ExecutionTask, IoType, Synchronization, TaskStatus
    from oplet.ops.limited import TypeLimit, limited
    from oplet.ops.node import Node
    from oplet.ops.node_limits import NodeLimits
    from oplet.ops.registration import Registration
    from oplet.ops.resolver import MutableOpResolver, OpResolver
    from oplet.ops.tensor import Allocation, Quantization, Tensor, TensorBuilder
    from oplet.ops.threaded_async_kernel import NUMPY_BUFFER, THREADING_EVENT, ThreadedAsyncKernel
    from oplet.plugins.engine_choice import Chooser
    from oplet.plugins.hookspecs import hookimpl
    from oplet.plugins.manager import PluginManager
    from oplet.runtime.asynchronous.async_runner import AsyncSignatureRunner
    from oplet.runtime.delegation.load import load_delegate
    from oplet.runtime.interpreter import Interpreter, OpResolverType, SignatureRunner
    from oplet.runtime.limits import Limits
    from oplet.schema.enums import BuiltinOperator, TensorType

__version__ = "0.1.0"

#: Where each public name lives. Names load when they are first used, so that a plugin which needs a hook marker does
#: not pay for the interpreter, nor a program that runs a model for the model writer.
_HOMES = {
    "Allocation": "oplet.ops.tensor",
    "AsyncKernel": "oplet.ops.async_kernel",
    "AsyncSignatureRunner": "oplet.runtime.asynchronous.async_runner",
    "BackendBuffer": "oplet.ops.async_kernel",
    "BufferAttribute": "oplet.ops.async_attributes",
    "BuiltinOperator": "oplet.schema.enums",
    "Callee": "oplet.ops.callee",
    "Composite": "oplet.ops.composite",
    "Context": "oplet.ops.context",
    "Delegate": "oplet.delegates.delegate",
    "DelegateContext": "oplet.delegates.delegate",
    "DelegateFlags": "oplet.delegates.delegate",
    "DelegateKernel": "oplet.delegates.delegate",
    "DelegateParams": "oplet.delegates.delegate",
    "DelegateRegistry": "oplet.delegates.registry",
    "ExecutionTask": "oplet.ops.execution_task",
    "Interpreter": "oplet.runtime.interpreter",
    "InterpreterWithCustomOps": "oplet.interpreter",
    "IoType": "oplet.ops.execution_task",
    "Limits": "oplet.runtime.limits",
    "Model": "oplet.model.model",
    "ModelBuilder": "oplet.model.builder",
    "MutableOpResolver": "oplet.ops.resolver",
    "NO_SYNC_OBJECT": "oplet.ops.async_attributes",
    "NUMPY_BUFFER": "oplet.ops.threaded_async_kernel",
    "Node": "oplet.ops.node",
    "NodeLimits": "oplet.ops.node_limits",
    "NodeSubset": "oplet.delegates.partition",
    "OpResolver": "oplet.ops.resolver",
    "OpResolverType": "oplet.runtime.interpreter",
    "PluginManager": "oplet.plugins.manager",
    "Quantization": "oplet.ops.tensor",
    "Reconciliation": "oplet.ops.async_attributes",
    "Registration": "oplet.ops.registration",
    "SignatureRunner": "oplet.runtime.interpreter",
    "SimpleDelegate": "oplet.delegates.delegate",
    "Synchronization": "oplet.ops.execution_task",
    "SynchronizationAttribute": "oplet.ops.async_attributes",
    "THREADING_EVENT": "oplet.ops.threaded_async_kernel",
    "TaskStatus": "oplet.ops.execution_task",
    "Tensor": "oplet.ops.tensor",
    "TensorBuilder": "oplet.ops.tensor",
    "TensorType": "oplet.schema.enums",
    "ThreadedAsyncKernel": "oplet.ops.threaded_async_kernel",
    "TypeLimit": "oplet.ops.limited",
    "charge": "oplet.ops.checkpoint",
    "checkpoint": "oplet.ops.checkpoint",
    "decline": "oplet.ops.ensure",
    "ensure": "oplet.ops.ensure",
    "ensure_eq": "oplet.ops.ensure",
    "ensure_type": "oplet.ops.context",
    "hookimpl": "oplet.plugins.hookspecs",
    "kernel_registration": "oplet.delegates.delegate",
    "largest_partitions": "oplet.delegates.delegate",
    "limited": "oplet.ops.limited",
    "load_delegate": "oplet.runtime.delegation.load",
    "reconcile_attributes": "oplet.ops.async_attributes",
    "uncovered_attributes": "oplet.ops.async_attributes",
}

__all__ = [
    "NO_SYNC_OBJECT",
    "NUMPY_BUFFER",
    "THREADING_EVENT",
    "Allocation",
    "AsyncKernel",
    "AsyncSignatureRunner",
    "BackendBuffer",
    "BufferAttribute",
    "BuiltinOperator",
    "Callee",
    "Composite",
    "Context",
    "Delegate",
    "DelegateContext",
    "DelegateFlags",
    "DelegateKernel",
    "DelegateParams",
    "DelegateRegistry",
    "ExecutionTask",
    "Interpreter",
    "InterpreterWithCustomOps",
    "IoType",
    "Limits",
    "Model",
    "ModelBuilder",
    "MutableOpResolver",
    "Node",
    "NodeLimits",
    "NodeSubset",
    "OpResolver",
    "OpResolverType",
    "PluginManager",
    "Quantization",
    "Reconciliation",
    "Registration",
    "SignatureRunner",
    "SimpleDelegate",
    "Synchronization",
    "SynchronizationAttribute",
    "TaskStatus",
    "Tensor",
    "TensorBuilder",
    "TensorType",
    "ThreadedAsyncKernel",
    "TypeLimit",
    "__version__",
    "charge",
    "checkpoint",
    "decline",
    "ensure",
    "ensure_eq",
    "ensure_type",
    "hookimpl",
    "kernel_registration",
    "largest_partitions",
    "limited",
    "load_delegate",
    "reconcile_attributes",
    "uncovered_attributes",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'oplet' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def _tuning_chooser() -> Chooser:
    """The chooser behind `experimental_delegates="auto"`: interpreters are below it, and this is above both."""
    from functools import partial

    from oplet.tuning.choosing import choose_as_told

    return partial(choose_as_told, version=__version__)


provide_chooser(_tuning_chooser)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
