"""The modules in which programs look for LiteRT's interpreter, answered with the interpreter of another engine.

Programs import it from `tflite_runtime.interpreter`, `ai_edge_litert.interpreter` or `tensorflow.lite`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

#: The names that such a module has.
NAMES = ("Interpreter", "OpResolverType", "Delegate", "load_delegate", "SignatureRunner", "InterpreterWithCustomOps")


class StandIn(MetaPathFinder, Loader):
    """Answers `module`, and the packages around it that are not there, with the names of `members`.

    Args:
        module: the module that the program imports.
        members: what the module holds, by name.
    """

    def __init__(self, module: str, members: dict[str, Any]) -> None:
        self._module = module
        self._members = members

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of the module, or of a package around it that is not installed; None for every other module."""
        if fullname == self._module:
            return ModuleSpec(fullname, self)
        if self._module.startswith(f"{fullname}.") and PathFinder.find_spec(fullname, path) is None:
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        if name == self._module:
            module.__dict__.update(self._members)
            return
        inner = self._module[len(name) + 1 :].partition(".")[0]

        def __getattr__(wanted: str) -> ModuleType:
            if wanted != inner:
                raise AttributeError(f"the stand-in for {name} has {inner}, and nothing of the name {wanted!r}")
            return import_module(f"{name}.{inner}")

        module.__dict__["__getattr__"] = __getattr__


def of_oplet(**arguments: Any) -> dict[str, Any]:
    """oplet's names; every Interpreter gets the arguments."""
    from oplet import interpreter

    class Interpreter(interpreter.Interpreter):
        __init__ = _with(interpreter.Interpreter.__init__, arguments)

    return {name: getattr(interpreter, name) for name in NAMES} | {"Interpreter": Interpreter}


def of_litert(way: str) -> dict[str, Any]:
    """LiteRT's names; every Interpreter takes the kernels of `way`, a name of OpResolverType."""
    from ai_edge_litert import interpreter as litert

    kernels = {"experimental_op_resolver_type": litert.OpResolverType[way]}

    class Interpreter(litert.Interpreter):
        __init__ = _with(litert.Interpreter.__init__, kernels)

    return {name: getattr(litert, name) for name in NAMES} | {"Interpreter": Interpreter}


def _with(initialize: Callable[..., None], arguments: dict[str, Any]) -> Any:
    def __init__(self: Any, *given: Any, **named: Any) -> None:
        initialize(self, *given, **(named | arguments))

    return __init__


def engine(name: str) -> Callable[[], dict[str, Any]]:
    """What makes the names of an engine: "numpy", "compiled", or a way of LiteRT."""
    if name == "numpy":
        return partial(of_oplet, plugins=["builtin_ops"])
    if name == "compiled":
        return partial(of_oplet, plugins=["builtin_ops", "compiled_ops"])
    return partial(of_litert, name)


def install(module: str) -> None:
    """Have `module` answered by a stand-in, before everything that is installed; `switch` gives it its names."""
    sys.modules.pop(module, None)
    sys.meta_path.insert(0, StandIn(module, {}))


def switch(module: str, name: str) -> None:
    """Give the stand-in the names of another engine; programs look `Interpreter` up in the module when they make one."""
    import_module(module).__dict__.update(engine(name)())
