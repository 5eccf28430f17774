"""Extraction of some ops' kernels, with everything that they depend on, into a package of their own."""

from __future__ import annotations

import functools
import keyword
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from oplet import Model, PluginManager
from oplet.toolkit import API_VERSION, Preference
from oplet_build.building.cutting.cut_core import PACKAGES
from oplet_build.building.cutting.dependencies import DependencyClosure, SourceModule
from oplet_build.building.cutting.import_rewriting import rewrite_imports
from oplet_build.building.distributions import Distribution, Package, distribution, find_package, is_library, op_packages
from oplet_build.building.error import BuildError
from oplet_build.building.kernels import Kernel, Origin
from oplet_build.building.packing.plugin_module import plugin_module
from oplet_build.building.providers import PassedOver, ProviderChoice, choose_providers, indispensable_providers
from oplet_build.selection.needs import OpNeed, Use

__all__ = ["CutPackage", "cut_kernels"]

#: Licences require that changed files say so.
_NOTICE = "# Changed by oplet build.\n"


@dataclass
class CutPackage:
    """A package of kernels that were extracted from installed packages."""

    name: str  #: The package's name in Python.
    needs: list[OpNeed]  #: The ops that it was made for.
    kernels: list[Kernel]  #: The kernels that it has for these ops.
    sources: list[Distribution]  #: The pip packages that the kernels come from, sorted by name.
    files: dict[str, bytes] = field(default_factory=dict)  #: The package's files, by path.
    #: For each path in `files` that is a kept module, the module's name in its source package.
    modules: dict[str, str] = field(default_factory=dict)
    external: set[str] = field(default_factory=set)  #: The top-level modules of other packages that it imports.
    #: Packages that precede the taken one for an op, and why they were not taken.
    passed_over: list[PassedOver] = field(default_factory=list)
    #: For each path in `files` that is a compiled library, the pip package that it comes from.
    libraries: dict[str, str] = field(default_factory=dict)


def cut_kernels(
    needs: Sequence[OpNeed],
    name: str,
    plugins: PluginManager,
    *,
    keep_comments: bool = False,
    types: bool = False,
    prefer: Preference = Preference(),  # noqa: B008 (frozen)
    models: Sequence[Model] = (),
) -> CutPackage:
    """Extract the kernels of some ops, with everything that they import, from the installed packages.

    Args:
        needs: the ops, with their versions and tensor types.
        name: the new package's name in Python.
        plugins: the plugins that may have kernels for them.
        keep_comments: copy needed modules unchanged, with all variants; by default without docstrings, comments and type-checking code.
        types: let kernels accept only tensor types that the needs name.
        prefer: plugins to take first where several have kernels for an op.
        models: the models of the needs. A kernel that fails to prepare their nodes does not replace one with more requirements.

    Raises:
        BuildError: the name is invalid, or a package's code cannot be extracted.
        OpNotFoundError, UnresolvedOpError: no installed package has a kernel for an op.
    """
    _check_name(name)
    owners = op_packages()
    if owners.pop(name, None) and not any(
        i.tier == "selection" and i.module.partition(":")[0] == name for i in plugins.plugins()
    ):
        raise BuildError(f"'{name}' cannot be the package's name: a package that is called so is installed.")
    sources = _Sources(owners, needs, keep_comments)
    choice, closure = _cuttable(needs, plugins, prefer, sources)
    again = functools.partial(choose_providers, needs, plugins, prefer, {})
    if costly := indispensable_providers(models, choice, again, plugins.resolver(prefer)):
        choice, closure = _cuttable(needs, plugins, prefer, sources, costly)
    chosen = choice.kernels
    for kernel in chosen:
        owners.setdefault(kernel.module.partition(".")[0], kernel.distribution)
    used = sorted({owners[module.package.name] for module in closure.modules.values()} | {k.distribution for k in chosen})
    result = CutPackage(name, list(needs), chosen, [distribution(each) for each in used])
    homes = _homes(name, closure, chosen)
    limits = {need.key: need.types for need in needs} if types else {}
    words = ", ".join(f"{source.name} {source.version}" for source in result.sources)
    result.files[f"{name}/__init__.py"] = plugin_module(chosen, homes, words, API_VERSION, limits).encode()
    for module, source in sorted(closure.modules.items()):
        text = source.text if keep_comments and module in closure.kept else closure.source(module, name)
        path = _path(module, source.package, homes)
        if path in result.files:
            continue  # the empty `__init__.py` of the source package, which the new one replaces
        if text:
            text = _NOTICE + rewrite_imports(text, closure.packages, homes)
        elif source.package.modules[module] is None:
            continue
        result.files[path] = text.encode()
        result.modules[path] = module
    for top, data in sorted(closure.data):
        path = f"{homes[top].replace('.', '/')}/{data}"
        result.files[path] = closure.packages[top].data[data].read_bytes()
        if is_library(data):
            result.libraries[path] = owners[top]
    result.external = closure.external
    result.passed_over = choice.passed_over
    return result


class _Sources:
    """The installed packages that kernels are cut out of. What is read of them is kept: kernels are tried in several combinations.

    Args:
        owners: the distribution of each op package.
        all_variants: keep variants of kernels that no node of the needs uses.
    """

    def __init__(self, owners: Mapping[str, str], needs: Sequence[OpNeed], all_variants: bool) -> None:
        self._owners = owners
        self._uses = {need.key: frozenset() if all_variants else need.uses for need in needs}
        self._everything = _together(self._uses.values())
        self._read: dict[str, SourceModule] = {}
        self._package = functools.cache(find_package)
        self._mentioned_by = functools.cache(self._find_mentioned)

    def closure(self, chosen: Sequence[Kernel]) -> DependencyClosure:
        """Return the kernels' dependencies; modules imported only for certain nodes are in it if the needs have such nodes.

        Raises:
            BuildError: a kernel cannot be cut.
        """
        packages = self._packages(chosen)
        modules = {kernel.module for kernel in chosen}
        uses_of = {
            module: _together(self._uses[kernel.key] for kernel in chosen if kernel.module == module) for module in modules
        }
        while True:
            closure = DependencyClosure(packages, self._everything, uses_of, self._read)
            for kernel in chosen:
                closure.require(kernel.module)
            # A kernel that other kernels call also needs the variants for their nodes.
            shared = closure.shared & set(uses_of)
            if not shared:
                return closure
            uses_of = {module: each for module, each in uses_of.items() if module not in shared}

    def _packages(self, chosen: Iterable[Kernel]) -> list[Package]:
        """Return the packages that these kernels are in, and other op packages whose names occur in their sources."""
        found = {kernel.module.partition(".")[0] for kernel in chosen}
        waiting = sorted(found)
        while waiting:
            more = self._mentioned_by(waiting.pop()) - found
            found |= more
            waiting += more
        return [self._package(top) for top in sorted(found)]

    def _find_mentioned(self, name: str) -> frozenset[str]:
        """Return the other op packages whose names occur in the sources of one.

        A mentioned package with a compiled library is left out: it is not cut, and stays a requirement.
        """
        texts = self._package(name).texts
        found = set()
        for top in self._owners.keys() - {name}:
            if top in texts and re.search(rf"\b{top}\b", texts):
                with suppress(BuildError):  # then it stays a requirement
                    if not self._package(top).libraries:
                        found.add(top)
        return frozenset(found)


def _cuttable(
    needs: Sequence[OpNeed],
    plugins: PluginManager,
    prefer: Preference,
    sources: _Sources,
    costly: Iterable[Origin] = (),
) -> tuple[ProviderChoice, DependencyClosure]:
    """Choose for each op the first package whose kernel can be cut; return the choice and what its kernels depend on."""
    refused: dict[Origin, str] = {}
    while True:
        choice = choose_providers(needs, plugins, prefer, refused, costly)
        try:
            return choice, sources.closure(choice.kernels)
        except BuildError:
            found = len(refused)
            for kernel in choice.kernels:
                try:
                    sources.closure([kernel])
                except BuildError as error:
                    refused[kernel.origin] = str(error)
            if len(refused) == found:
                raise


def _together(uses: Iterable[frozenset[Use]]) -> frozenset[Use] | None:
    """Return the union of sets of uses; None, which stands for any use, if a set is empty."""
    each = list(uses)
    return frozenset().union(*each) if all(each) else None


def _homes(name: str, closure: DependencyClosure, chosen: Iterable[Kernel]) -> dict[str, str]:
    """Map the source packages to their new names. A single package with an empty `__init__.py` becomes the new package itself;
    others become subpackages of it.
    """
    used = {module.package.name for module in closure.modules.values()}
    if len(used) == 1:
        [top] = used
        root = closure.modules[top]
        names = {module.split(".")[1] for module in root.package.modules if "." in module}
        taken = names & {"register_ops", "OPLET_TIER", "OPLET_API", "hookimpl", "MutableOpResolver", "TensorType", "TypeLimit"}
        empty = top in root.package.packages and not closure.source(top)
        if empty and not taken and not any(kernel.by_hook for kernel in chosen):
            return {each: name if each == top else f"{name}._{each}" for each in closure.packages}
    return {top: f"{name}._{top}" for top in closure.packages}


def _path(module: str, package: Package, homes: Mapping[str, str]) -> str:
    top, dot, rest = module.partition(".")
    path = (homes[top] + dot + rest).replace(".", "/")
    return f"{path}/__init__.py" if module in package.packages else f"{path}.py"


def _check_name(name: str) -> None:
    if not (name.isidentifier() and name.isascii()) or keyword.iskeyword(name) or name.startswith("_"):
        raise BuildError(f"'{name}' cannot be the package's name: give a name that Python can import, such as my_app_ops.")
    if name in PACKAGES or name in sys.stdlib_module_names:
        raise BuildError(f"'{name}' cannot be the package's name: Python would import it in place of the {name} that is there.")
