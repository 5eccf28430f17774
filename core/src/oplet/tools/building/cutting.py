"""Cutting what some ops need out of the installed packages: the files of a package that holds them alone."""

from __future__ import annotations

import keyword
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from oplet.plugins.manager import API_VERSION, PluginManager
from oplet.tools.building.closure import Closure, Reached
from oplet.tools.building.error import BuildError
from oplet.tools.building.packages import Package, find_package
from oplet.tools.building.registering import registering_module
from oplet.tools.building.relocating import relocated
from oplet.tools.building.shaking import shaken
from oplet.tools.building.sources import Distribution, Kernel, distribution, kernels, op_packages
from oplet.tools.selection.needs import OpNeed

__all__ = ["Cut", "cut"]

#: Licences ask for it.
_NOTICE = "# Changed by oplet build.\n"


@dataclass
class Cut:
    """A package of some ops.

    Attributes:
        name: what Python imports.
        needs: the ops that it was made for.
        kernels: what serves them.
        sources: the pip packages that it was cut out of, by name.
        files: what is in the package, by path.
        modules: the path in `files` of each module that was kept, and its name in its source.
        external: the top-level modules that it imports from elsewhere.
    """

    name: str
    needs: list[OpNeed]
    kernels: list[Kernel]
    sources: list[Distribution]
    files: dict[str, bytes] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    external: set[str] = field(default_factory=set)


def cut(needs: Sequence[OpNeed], name: str, plugins: PluginManager, *, keep_comments: bool = False, types: bool = False) -> Cut:
    """Cut the kernels of some ops, with all that they import, out of the installed packages.

    Args:
        needs: the ops.
        name: what the new package is called in Python.
        plugins: the plugins that may serve them.
        keep_comments: copy each module that is needed as it is, instead of only those statements that are needed.
        types: serve only the types of tensors that the needs name, and leave out what only others need.

    Raises:
        BuildError: the name cannot be used, or a package cannot be cut.
        OpNotFoundError, UnresolvedOpError: nothing installed serves an op.
    """
    _check_name(name)
    chosen = kernels(needs, plugins)
    owners = op_packages()
    for kernel in chosen:
        owners.setdefault(kernel.module.partition(".")[0], kernel.distribution)
    if owners.pop(name, None) and not any(
        i.tier == "selection" and i.module.partition(":")[0] == name for i in plugins.plugins()
    ):
        raise BuildError(f"'{name}' cannot be the package's name: a package that is called so is installed.")
    closure = Closure(
        [find_package(top) for top in sorted(owners)], shake=not keep_comments, types=_types(needs) if types else None
    )
    for kernel in chosen:
        closure.require(kernel.module, kernel.attribute)
    used = sorted({owners[reached.package.name] for reached in closure.modules.values()} | {k.distribution for k in chosen})
    result = Cut(name, list(needs), chosen, [distribution(each) for each in used])
    homes = {top: f"{name}._{top}" for top in owners}
    limits = {(need.name, need.custom): need.types for need in needs} if types else {}
    words = ", ".join(f"{source.name} {source.version}" for source in result.sources)
    result.files[f"{name}/__init__.py"] = registering_module(chosen, homes, words, API_VERSION, limits).encode()
    for module, reached in sorted(closure.modules.items()):
        text = _source(reached, closure, keep_comments)
        path = _path(module, reached.package, name)
        if text:
            text = _NOTICE + relocated(text, closure.packages, homes)
        elif reached.package.modules[module] is None:
            continue
        result.files[path] = text.encode()
        result.modules[path] = module
    for top, data in sorted(closure.data):
        result.files[f"{name}/_{top}/{data}"] = closure.packages[top].data[data].read_bytes()
    result.external = closure.external
    return result


def _types(needs: Sequence[OpNeed]) -> set[str] | None:
    """The names of all types that tensors of the nodes have, None if they may have any."""
    return {type.name for need in needs for type in need.types} if all(need.types for need in needs) else None


def _source(reached: Reached, closure: Closure, keep_comments: bool) -> str:
    if keep_comments or reached.module.whole:
        return reached.module.text
    return shaken(reached.module, reached.kept, closure.reads_docstrings, closure.left_out(reached.module))


def _path(module: str, package: Package, name: str) -> str:
    top, _, rest = module.partition(".")
    path = "/".join([name, f"_{top}", *rest.split(".")]).rstrip("/")
    return f"{path}/__init__.py" if module in package.packages else f"{path}.py"


def _check_name(name: str) -> None:
    if not (name.isidentifier() and name.isascii()) or keyword.iskeyword(name) or name.startswith("_"):
        raise BuildError(f"'{name}' cannot be the package's name: give a name that Python can import, such as my_app_ops.")
    if name == "oplet" or name in sys.stdlib_module_names:
        raise BuildError(f"'{name}' cannot be the package's name: Python would import it in place of the {name} that is there.")
