"""The mark of hooks (`hookimpl`), and the hooks that a plugin may implement; each is called at most once per plugin.

A usual plugin is a module of functions with plain marks, which are called here; pluggy, which takes long to import, serves the others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, overload

if TYPE_CHECKING:
    from oplet.delegates.registry import DelegateRegistry
    from oplet.ops.serving.resolver import MutableOpResolver
    from oplet.ops.serving.work import WorkTable
    from oplet.plugins.commands import CommandRegistry
    from oplet.schema.enums import BuiltinOperator
    from oplet.versions.runtime_version import RuntimeVersions

__all__ = ["hookimpl", "hooks_of_pluggy", "plain_hooks"]

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def hookimpl(function: Function) -> Function: ...
@overload
def hookimpl(function: None = None, **options: Any) -> Callable[[Function], Function]: ...
def hookimpl(function: Any = None, **options: Any) -> Any:
    """Mark a function as the implementation of the hook of its name. The mark is that of `pluggy.HookimplMarker("oplet")`, which
    may be used as well, but pluggy is not imported here, as a process may run a model without calling any hook.

    Args:
        function: the function.
        options: pluggy's: `optionalhook`, `specname`, `tryfirst`, `trylast`, `wrapper`.
    """

    def marked(function: Any) -> Any:
        function.oplet_impl = options
        return function

    return marked if function is None else marked(function)


#: The arguments of each hook.
_HOOKS: dict[str, tuple[str, ...]] = {}


def hookspec(function: Any, firstresult: bool = False) -> Any:
    """Mark a function as a hook, as `pluggy.HookspecMarker("oplet")` does."""
    function.oplet_spec = {"firstresult": firstresult, "historic": False, "warn_on_impl": None, "warn_on_impl_args": None}
    _HOOKS[function.__name__] = _arguments(function)
    return function


def _arguments(function: FunctionType) -> tuple[str, ...]:
    return function.__code__.co_varnames[: function.__code__.co_argcount]


def plain_hooks(plugin: object, note: Callable[[str], None]) -> dict[str, Callable[..., Any]] | None:
    """Return a plugin module's hook functions by name; None if it needs pluggy (classes, options) or has errors. `note` is called with
    remarks on functions of its own that are named as hooks are and lack the mark.
    """
    if type(plugin) is not ModuleType:
        return None
    found: dict[str, Callable[..., Any]] = {}
    for name, function in sorted(vars(plugin).items()):
        marks = getattr(function, "oplet_impl", None) if isinstance(function, (FunctionType, MethodType)) else None
        if marks is None:
            if name in _HOOKS and isinstance(function, FunctionType) and function.__module__ == plugin.__name__:
                note(f"its function '{name}' is no hook before @hookimpl stands above it")
            continue
        if not isinstance(function, FunctionType) or not isinstance(marks, dict) or any(marks.values()):
            return None
        names = _arguments(function)
        # The flags say that it takes *arguments or **keywords.
        unusual = function.__code__.co_flags & 12 or function.__code__.co_kwonlyargcount or function.__defaults__
        if unusual or hasattr(function, "__wrapped__") or not {*names} <= {*_HOOKS.get(name, ())} or name not in _HOOKS:
            return None
        found[name] = _called_with(function, names)
    return found


def _called_with(function: FunctionType, names: tuple[str, ...]) -> Callable[..., Any]:
    """Return a function that passes on those of the hook's arguments that the plugin's function takes."""
    return lambda **arguments: function(**{name: arguments[name] for name in names})


def hooks_of_pluggy(plugin: object, name: str, note: Callable[[str], None]) -> dict[str, Callable[..., Any]]:
    """Return the hooks of a plugin by name, called through pluggy; `note` is called with remarks on functions of no hook."""
    import pluggy

    # Each plugin has a manager of its own, isolated from all others.
    manager = pluggy.PluginManager("oplet")
    manager.add_hookspecs(sys.modules[__name__])
    manager.register(plugin, name)
    implemented = sorted(caller.name for caller in manager.get_hookcallers(plugin) or ())
    known = [each for each in implemented if getattr(manager.hook, each).has_spec()]
    for each in implemented:
        optional = all(impl.optionalhook for impl in getattr(manager.hook, each).get_hookimpls())
        if each in known or optional:
            continue
        import difflib  # imported late: most plugins have no such hook

        close = difflib.get_close_matches(each, sorted(_HOOKS), 1)
        meant = f" (meant: '{close[0]}'?)" if close else ""
        note(f"it implements the hook '{each}', which oplet does not have{meant}")
    return {each: getattr(manager.hook, each) for each in known}


@hookspec
def register_ops(resolver: MutableOpResolver) -> None:
    """Add operators to `resolver` with `add_builtin`, `add_custom`, `add_custom_prefix` and `add_composite`; "module:NAME" imports kernels late."""


@hookspec
def register_delegates(registry: DelegateRegistry) -> None:
    """Add delegates to `registry` by the names for `load_delegate`, or with `add_loader` a function that loads shared libraries.

    A delegate that `serves` custom ops is applied by interpreters themselves where such an op has no kernel.
    """


@hookspec
def register_runtime_versions(table: RuntimeVersions) -> None:
    """Add to `table` the first release that runs each version of the plugin's own ops, for model writers and `oplet versions`."""


@hookspec
def register_work(table: WorkTable) -> None:
    """Add to `table` functions that count the work of the plugin's ops, for profiles: `table.add("Wave", function)` (returns a `Work`)."""


@hookspec
def register_commands(registry: CommandRegistry) -> None:
    """Add commands to `oplet` with `registry.add(name, command, help)`; give "module:NAME" to import a command late."""


def open_op_library(path: str, operators: Mapping[str | BuiltinOperator, str] | str | None) -> MutableOpResolver | None:
    """Return the operators of a file that is no Python package, as `--custom-op-library` names it; None if the plugin does not
    open such files.

    `operators` are the file's functions by the ops that they serve, one function's name, or None for all that it has. Raise a
    `PluginError` where the file is of the plugin's kind and cannot be used.
    """


def open_bundle(path: str) -> Mapping[str, Any] | None:
    """Return what is in a file that has models and other parts, for `oplet inspect` and `oplet doctor`; None if the plugin does
    not open such files.

    The keys: "kind", the format; "about", further facts by name; "parts", a list of (name, kind, number of bytes); "models", open
    `Model`s by name. Raise an `OpletError` where the file is of the plugin's kind and damaged.
    """


hookspec(open_op_library, firstresult=True)
hookspec(open_bundle, firstresult=True)
