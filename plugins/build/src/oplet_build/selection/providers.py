"""Finds the installed packages that serve ("provide") the ops that models need."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from oplet import Registration
from oplet.toolkit import ResolverEntry, op_label
from oplet_build.selection.declining_kernels import may_decline
from oplet_build.selection.needs import OpNeed, SelectionError

if TYPE_CHECKING:
    from oplet import PluginManager
    from oplet.toolkit import MergedResolver

__all__ = ["MissingOpsError", "ServedOp", "find_providers", "kernel_path"]


class MissingOpsError(SelectionError):
    """No installed package has a kernel for some of the needed ops.

    Attributes:
        ops: the names of the ops.
    """

    def __init__(self, message: str, ops: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.ops = ops


class ServedOp(NamedTuple):
    """An op that models need, with the kernels for it (as entries of the plugins' resolver)."""

    need: OpNeed  #: The op with the needed versions and types.
    entries: tuple[ResolverEntry, ...]  #: The kernels that are tried first, in ascending ranges of needed versions.
    #: The kernels that are tried, in this order, for nodes that those of `entries` decline.
    fallbacks: tuple[tuple[ResolverEntry, ...], ...] = ()

    @property
    def versions(self) -> tuple[int, ...]:
        """The versions with a kernel: the needed ones, or all that exist if the need names none."""
        return tuple(v for entry in self.entries for v in range(entry.min_version, entry.max_version + 1))


def find_providers(
    needs: Iterable[OpNeed], plugins: PluginManager, *, load: bool = True, prefer: Iterable[str] | None = None
) -> list[ServedOp]:
    """Find the kernel that an interpreter with these plugins takes for each op; composites without a kernel are left out.

    Args:
        load: import each kernel, so that broken ones raise errors now.
        prefer: plugins to take where several have kernels for an op.

    Raises:
        MissingOpsError: some ops have no kernel; the message names all of them.
        OpConflictError: several plugins have kernels for an op, and no preference decides.
        ResolverError: a kernel cannot be imported.
    """
    resolver = plugins.resolver(prefer)
    found, missing, names = [], [], []
    for need in needs:
        by_version = {v: c for c in resolver.entries(need.op) for v in range(c.min_version, c.max_version + 1)}
        wanted = need.versions or tuple(sorted(by_version))
        if need.composite:  # without a provider its decomposition runs, whose ops are separate needs
            wanted = tuple(version for version in wanted if version in by_version)
            if not wanted:
                continue
        absent = [version for version in wanted if version not in by_version]
        if absent or not wanted:
            which = f" version{'s' if len(absent) > 1 else ''} {', '.join(map(str, absent))}" if absent else ""
            who = f", which {' and '.join(need.models)} need{'s' if len(need.models) == 1 else ''}" if need.models else ""
            missing.append(f"No installed package serves {need.name}{which}{who}: {plugins.advice(need.op)}")
            names.append(need.name)
            continue
        entries = tuple(_ranges(wanted, by_version))
        if load:
            for entry in entries:
                entry.load(entry.min_version)
        found.append(ServedOp(need, entries, tuple(_fallbacks(resolver, need, wanted))))
    if missing:
        raise MissingOpsError(" ".join(missing), tuple(names))
    return found


def _fallbacks(resolver: MergedResolver, need: OpNeed, versions: Sequence[int]) -> Iterator[tuple[ResolverEntry, ...]]:
    """Yield the kernels asked about nodes that the first ones decline, then those after these, until plugins conflict."""
    places: list[dict[int, ResolverEntry]] = []
    for version in versions:
        before: ResolverEntry | None = None
        for at, entry in enumerate(resolver.in_order(need.op, version)):
            if not entry.target or (before is not None and not may_decline(before)):
                break
            if at == len(places):
                places.append({})
            places[at][version] = before = entry
    for place in places[1:]:
        yield tuple(_ranges(sorted(place), place))


def _ranges(versions: Sequence[int], by_version: dict[int, ResolverEntry]) -> Iterator[ResolverEntry]:
    """Yield each entry with the versions that `by_version` has it for; consecutive versions of an entry are one range."""
    current: ResolverEntry | None = None
    for version in versions:
        entry = by_version[version]
        if current is not None and current.max_version == version - 1 and _same(current, entry):
            current = replace(current, max_version=version)
            continue
        if current is not None:
            yield current
        current = replace(entry, min_version=version, max_version=version)
    if current is not None:
        yield current


def _same(a: ResolverEntry, b: ResolverEntry) -> bool:
    return a.target is b.target or (isinstance(a.target, str) and a.target == b.target and a.provenance == b.provenance)


def kernel_path(entry: ResolverEntry) -> str:
    """Return the "module:NAME" from which an entry's registration can be imported.

    Raises:
        SelectionError: the registration is bound to no name in a module of its package.
    """
    target = entry.target
    if isinstance(target, str):
        module, _, name = target.partition(":")
        return f"{module}:{name or 'REGISTRATION'}"
    for home in _modules(entry, target):
        for attribute, value in vars(home).items():
            if value is target and attribute.isidentifier():
                return f"{home.__name__}:{attribute}"
    if target.library:
        raise SelectionError(
            f"{op_label(entry.op)} is served by the compiled library {os.path.basename(target.library)} of {entry.provenance}, which "
            "generated code cannot import; leave out --output: --lock pins it, and `oplet build` takes a package's library along."
        )
    raise SelectionError(
        f"The registration of {op_label(entry.op)} of {entry.provenance} has no name that generated code could import it by: "
        f"it must be an attribute of the module {entry.provenance.module}, or be registered as 'module:NAME'."
    )


def _modules(entry: ResolverEntry, target: Registration) -> Iterator[ModuleType]:
    """Yield the modules in which to look for the registration's name: the plugin's module, those of its methods, the rest of the
    package.
    """
    home = entry.provenance.module
    methods = (target.prepare, target.bind, target.invoke, target.init)
    top = home.partition(".")[0]
    names = [home, *(getattr(method, "__module__", None) or "" for method in methods)]
    names += sorted(name for name in list(sys.modules) if name == top or name.startswith(f"{top}."))
    for name in dict.fromkeys(filter(None, names)):
        module = sys.modules.get(name)
        if module is None and name == home:
            module = importlib.import_module(name)
        if module is not None:
            yield module
