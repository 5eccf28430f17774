"""oplet runs .tflite models; every operator and delegate is a package that pip installs.

Example:
    >>> from oplet import Interpreter  # in place of ai_edge_litert.interpreter or tf.lite
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oplet.delegates.delegate import Delegate, DelegateKernel, DelegateParams, DelegateRegistry, SimpleDelegate
    from oplet.model.builder import ModelBuilder
    from oplet.model.model import Model
    from oplet.ops.callee import Callee
    from oplet.ops.context import Context, Node, ensure, ensure_eq, ensure_type
    from oplet.ops.registration import Registration
    from oplet.ops.resolver import MutableOpResolver, OpResolver
    from oplet.ops.tensor import Allocation, Quantization, Tensor, TensorBuilder
    from oplet.plugins.hookspecs import hookimpl
    from oplet.plugins.manager import PluginManager
    from oplet.runtime.delegation import load_delegate
    from oplet.runtime.interpreter import Interpreter, InterpreterWithCustomOps, OpResolverType, SignatureRunner
    from oplet.schema.enums import BuiltinOperator, TensorType

__version__ = "0.1.0"

#: Where each public name lives. Names load when they are first used, so that a plugin which needs a hook marker does
#: not pay for the interpreter, nor a program that runs a model for the model writer.
_HOMES = {
    "Allocation": "oplet.ops.tensor",
    "BuiltinOperator": "oplet.schema.enums",
    "Callee": "oplet.ops.callee",
    "Context": "oplet.ops.context",
    "Delegate": "oplet.delegates.delegate",
    "DelegateKernel": "oplet.delegates.delegate",
    "DelegateParams": "oplet.delegates.delegate",
    "DelegateRegistry": "oplet.delegates.delegate",
    "Interpreter": "oplet.runtime.interpreter",
    "InterpreterWithCustomOps": "oplet.runtime.interpreter",
    "Model": "oplet.model.model",
    "ModelBuilder": "oplet.model.builder",
    "MutableOpResolver": "oplet.ops.resolver",
    "Node": "oplet.ops.context",
    "OpResolver": "oplet.ops.resolver",
    "OpResolverType": "oplet.runtime.interpreter",
    "PluginManager": "oplet.plugins.manager",
    "Quantization": "oplet.ops.tensor",
    "Registration": "oplet.ops.registration",
    "SignatureRunner": "oplet.runtime.interpreter",
    "SimpleDelegate": "oplet.delegates.delegate",
    "Tensor": "oplet.ops.tensor",
    "TensorBuilder": "oplet.ops.tensor",
    "TensorType": "oplet.schema.enums",
    "ensure": "oplet.ops.context",
    "ensure_eq": "oplet.ops.context",
    "ensure_type": "oplet.ops.context",
    "hookimpl": "oplet.plugins.hookspecs",
    "load_delegate": "oplet.runtime.delegation",
}

__all__ = [
    "Allocation",
    "BuiltinOperator",
    "Callee",
    "Context",
    "Delegate",
    "DelegateKernel",
    "DelegateParams",
    "DelegateRegistry",
    "Interpreter",
    "InterpreterWithCustomOps",
    "Model",
    "ModelBuilder",
    "MutableOpResolver",
    "Node",
    "OpResolver",
    "OpResolverType",
    "PluginManager",
    "Quantization",
    "Registration",
    "SignatureRunner",
    "SimpleDelegate",
    "Tensor",
    "TensorBuilder",
    "TensorType",
    "__version__",
    "ensure",
    "ensure_eq",
    "ensure_type",
    "hookimpl",
    "load_delegate",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'oplet' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
