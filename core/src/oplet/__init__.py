"""oplet runs .tflite models; every operator and delegate is a package that pip installs.

Examples:
    >>> from oplet import Interpreter  # in place of ai_edge_litert.interpreter or tf.lite
"""

from __future__ import annotations

from oplet.companions import KNOWN, companion, find_companions, is_attribute

#: The version of every package of this repository: their `pyproject.toml` read it here when they are built.
__version__ = "0.1.0"

#: The module of each public name. Names are imported when they are first used, so that a plugin which needs a hook marker does
#: not import the interpreter, nor a program that runs a model the model writer. `python -m scripts.stubs` writes `__init__.pyi`
#: for type checkers from this table.
_HOMES = {
    "Allocation": "oplet.ops.tensor",
    "BuiltinOperator": "oplet.schema.enums",
    "CacheFolder": "oplet.model.files.cache_folder",
    "Callee": "oplet.ops.callee",
    "CommandRegistry": "oplet.plugins.commands",
    "Composite": "oplet.ops.serving.provenance",
    "Context": "oplet.ops.context",
    "Delegate": "oplet.delegates.delegate",
    "DelegateContext": "oplet.delegates.delegate",
    "DelegateFlags": "oplet.delegates.delegate",
    "DelegateKernel": "oplet.delegates.delegate",
    "DelegateParams": "oplet.delegates.delegate",
    "DelegateRegistry": "oplet.delegates.registry",
    "Interpreter": "oplet.runtime.interpreter",
    "Joiner": "oplet.ops.serving.joining",
    "Limits": "oplet.runtime.memory.accounting",
    "Model": "oplet.model.model",
    "ModelBuilder": "oplet.model.builders.model_builder",
    "MutableOpResolver": "oplet.ops.serving.resolver",
    "Node": "oplet.ops.node",
    "NodeLimits": "oplet.ops.serving.node_limits",
    "NodeSubset": "oplet.delegates.partition",
    "OpResolver": "oplet.ops.serving.resolver",
    "OpResolverType": "oplet.runtime.interpreter",
    "PluginManager": "oplet.plugins.manager",
    "Profiler": "oplet.runtime.describe.profiler",
    "Provenance": "oplet.ops.serving.provenance",
    "Quantization": "oplet.ops.tensor",
    "Registration": "oplet.ops.serving.registration",
    "SimpleDelegate": "oplet.delegates.delegate",
    "StalePlanError": "oplet.ops.serving.joining",
    "StoredThunks": "oplet.ops.serving.joining",
    "Tensor": "oplet.ops.tensor",
    "TensorBuilder": "oplet.ops.tensor",
    "TensorType": "oplet.schema.enums",
    "TypeLimit": "oplet.ops.serving.registration",
    "Work": "oplet.ops.serving.work",
    "WorkTable": "oplet.ops.serving.work",
    "charge": "oplet.ops.ensure",
    "checkpoint": "oplet.ops.ensure",
    "decline": "oplet.ops.ensure",
    "ensure": "oplet.ops.ensure",
    "ensure_fits": "oplet.ops.ensure",
    "ensure_type": "oplet.ops.context",
    "hookimpl": "oplet.plugins.hookspecs",
    "kernel_registration": "oplet.delegates.delegate",
    "largest_partitions": "oplet.delegates.partition",
    "load_delegate": "oplet.runtime.delegation.load",
    "write_atomically": "oplet.model.files.atomic_write",
}

__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    import importlib

    if home is not None:
        from oplet.collector import collecting_rarely

        value = getattr(collecting_rarely(importlib.import_module)(home), name)
    else:
        if not name.isidentifier() or name.startswith("_"):
            raise AttributeError(f"module 'oplet' has no attribute {name!r}")
        if not name.islower():
            value = companion(name)
        else:
            try:  # a companion of oplet's, as `oplet.ray`
                return importlib.import_module(f"oplet.{name}")
            except ModuleNotFoundError as error:
                if error.name not in (f"oplet.{name}", KNOWN.get(name, "").replace("-", "_")):
                    raise
                if not is_attribute(name):
                    raise AttributeError(f"module 'oplet' has no attribute {name!r} ({error})") from None
            value = companion(name)
    globals()[name] = value
    return value


find_companions()


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
