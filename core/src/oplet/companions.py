"""Companion modules: names under `oplet` that other packages provide, such as `oplet.testing` (the module `oplet_testing`) and
`oplet.Predictor` (a class).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder

__all__ = ["GROUP", "KNOWN", "companion", "find_companions", "is_attribute"]

#: The entry-point group of companions. `ray = "oplet_ray"` makes the module `oplet_ray` and its submodules reachable as `oplet.ray`,
#: `Predictor = "oplet_predictor.predictor:Predictor"` makes that class reachable as `oplet.Predictor`.
GROUP: Final = "oplet.modules"

#: Companions of this project by name, and their packages, for advice where they are not installed.
KNOWN: Final = {
    name: package
    for package, names in {
        "oplet-beam": "beam",
        "oplet-compiled-model": "compiled_model cpu_kernel_mode cpu_options environment gpu_options hardware_accelerator "
        "intel_openvino_options option_utils options qualcomm_options tensor_buffer",
        "oplet-predictor": "Predictor predictor AsyncKernel AsyncSignatureRunner BackendBuffer BufferAttribute ExecutionTask IoType "
        "NO_SYNC_OBJECT NUMPY_BUFFER Reconciliation Synchronization SynchronizationAttribute THREADING_EVENT TaskStatus "
        "ThreadedAsyncKernel reconcile_attributes uncovered_attributes",
        "oplet-ray": "ray",
        "oplet-testing": "testing",
        "oplet-tools": "metrics_interface metrics_portable processes python_process schema_py_generated tools tuning",
    }.items()
    for name in names.split()
}


def companion(name: str) -> Any:
    """Return the object that another installed package provides as the attribute `name` of `oplet`.

    Raises:
        ImportError: several packages provide the name, or none does and the package that would is known.
        AttributeError: no package is known to provide the name.
    """
    if target := _target(name):
        module, _, attribute = target.partition(":")
        if attribute:
            return getattr(importlib.import_module(module), attribute)
    if name in KNOWN:
        raise ImportError(f"cannot import name {name!r} from 'oplet': {_command(name)} brings it.", name="oplet")
    raise AttributeError(f"module 'oplet' has no attribute {name!r}")


def is_attribute(name: str) -> bool:
    """Return whether an installed package provides this name of `oplet` as an attribute, such as a function, and not as a module."""
    return ":" in _target(name)


def _command(name: str) -> str:
    """Return the shell command that installs the package which provides this name of `oplet`."""
    from oplet.plugins.install_commands import install_command  # imported late: only for advice

    return install_command(KNOWN[name])


def _target(name: str) -> str:
    """Return the "module" or "module:NAME" that a package's entry point gives for a name of `oplet`; "" if no package has one.

    Raises:
        ImportError: several packages provide the name.
    """
    try:
        import importlib_metadata
    except ModuleNotFoundError:  # in what `oplet build --with-core` makes, which looks for no other packages
        return ""
    found = {entry.value: entry for entry in importlib_metadata.entry_points(group=GROUP, name=name)}
    if len(found) > 1:
        packages = " and ".join(sorted(entry.dist.name if entry.dist else value for value, entry in found.items()))
        raise ImportError(f"oplet.{name} is claimed by {packages}; uninstall one of them.", name=f"oplet.{name}")
    return next(iter(found), "")


class _Forward:
    """Module loader of `oplet.NAME` where another package provides it: the loaded module gets every attribute of that package's.

    Args:
        target: the name of the other package's module.
    """

    def __init__(self, target: str) -> None:
        self._target = target

    def create_module(self, spec: ModuleSpec) -> None:
        """Return None, so that Python creates an ordinary module object."""

    def exec_module(self, module: ModuleType) -> None:
        """Import the other package's module and copy its attributes into `module`."""
        target = importlib.import_module(self._target)
        forwarded = {"__doc__": target.__doc__, "__getattr__": lambda name: getattr(target, name), "__dir__": lambda: dir(target)}
        module.__dict__.update(forwarded)


class _Finder:  # not a MetaPathFinder: importing importlib.abc imports thirty modules more
    """Import finder (`sys.meta_path`) for modules under `oplet` that other packages provide; asked after those of oplet's own."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return the module spec of `oplet.NAME` or of a module within it; None if no other package provides the name.

        Raises:
            ImportError: several packages provide it.
            ModuleNotFoundError: none does, and it is known which one would.
        """
        oplet, _, rest = fullname.partition(".")
        name, _, inner = rest.partition(".")
        if oplet != "oplet" or not name:
            return None
        module, _, attribute = _target(name).partition(":")
        if module and not attribute:
            found = f"{module}.{inner}".rstrip(".")
            if inner:
                from importlib.util import find_spec  # imported late: running a model does not need it

                try:
                    if find_spec(found) is None:
                        return None
                except ModuleNotFoundError as error:  # the module that it would be in is no package
                    if error.name != found:
                        raise
                    return None
            # Every companion may have submodules; on no path they are found by nobody but this finder.
            return ModuleSpec(fullname, cast("Loader", _Forward(found)), is_package=True)
        if name in KNOWN and not module:
            # The module that is missing is the package's: of `from oplet import NAME`, Python is silent where it is that name.
            brought = KNOWN[name].replace("-", "_")
            raise ModuleNotFoundError(f"No module named '{fullname}': {_command(name)} brings it.", name=brought)
        return None


def find_companions() -> None:
    """Install the import finder, so that `import oplet.NAME` finds modules of other packages; it reads their metadata then."""
    if not any(type(finder).__name__ == _Finder.__name__ and type(finder).__module__ == __name__ for finder in sys.meta_path):
        sys.meta_path.append(cast("MetaPathFinder", _Finder()))
