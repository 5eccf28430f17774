"""Locates kernels: the module and name of the registration of an op in an installed package."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from oplet import Provenance, Registration
from oplet.toolkit import PluginInfo, ResolverEntry
from oplet_build.building.error import BuildError
from oplet_build.selection.needs import Key, OpNeed

__all__ = ["Kernel", "Origin", "kernel_of"]


class Origin(NamedTuple):
    """An op and the plugin that provides its kernel."""

    key: Key  #: The op: its name, whether it is a custom op, and whether it is a composite.
    distribution: str  #: The pip package of the plugin.
    plugin: str


@dataclass(frozen=True)
class Kernel:
    """A kernel for some versions of an op, and the place of its code."""

    op: str
    custom: bool  #: Whether the op is a custom op.
    min_version: int  #: The first version.
    max_version: int  #: The last version.
    module: str  #: The module that defines the registration, or the hook that makes it.
    attribute: str  #: The name of the registration, or of the hook, in that module.
    by_hook: bool  #: Whether `attribute` is the plugin's hook `register_ops`, as the registration has no name of its own.
    distribution: str  #: The pip package of the kernel.
    composite: bool = False  #: Whether `op` is a composite's name.
    fallback: bool = False  #: Whether it serves only nodes that the kernel before it declines.
    plugin: str = ""

    @property
    def key(self) -> Key:
        """The op's name, whether it is a custom op, and whether it is a composite."""
        return self.op, self.custom, self.composite

    @property
    def origin(self) -> Origin:
        """The op and the plugin that provides it."""
        return Origin(self.key, self.distribution, self.plugin)

    def with_versions(self, first: int, last: int) -> Kernel:
        """Return a copy for the versions `first` to `last` of the op."""
        return replace(self, min_version=first, max_version=last)

    def as_fallback(self, fallback: bool) -> Kernel:
        """Return a copy with this `fallback`: whether it serves only nodes that the kernel before it declines."""
        return replace(self, fallback=fallback)


def kernel_of(need: OpNeed, version: int, entry: ResolverEntry, infos: Iterable[PluginInfo]) -> Kernel:
    """Return the kernel, with the place of its code, of a plugin's resolver entry in one version of the op.

    Raises:
        BuildError: the entry comes from no installed package.
    """
    if not entry.provenance.distribution:
        raise BuildError(
            f"{need.name} is served by {entry.provenance}, which no installed package brings; build from packages only."
        )
    by_hook = False
    if isinstance(entry.target, str):
        module, _, attribute = entry.target.partition(":")
        attribute = attribute or "REGISTRATION"
    elif (place := _place(entry.target, entry.provenance)) is not None:
        module, attribute = place
    else:
        plugin, package = entry.provenance.plugin, entry.provenance.distribution
        info = next((i for i in infos if (i.name, i.distribution) == (plugin, package)), None)
        if info is None:  # a file that a plugin opened
            raise BuildError(
                f"{need.name} is served by the file {plugin}, which no installed package brings; build from packages only, and put the "
                "file into one (`oplet native new-op` writes such a package)."
            )
        module, _, holder = info.module.partition(":")
        attribute, by_hook = f"{holder}.register_ops".lstrip("."), True
    package = entry.provenance.distribution
    return Kernel(
        need.name,
        need.custom,
        version,
        version,
        module,
        attribute,
        by_hook,
        package,
        need.composite,
        plugin=entry.provenance.plugin,
    )


def _place(registration: Registration, provenance: Provenance) -> tuple[str, str] | None:
    """Return the module and the name of a variable that holds the registration object; None if there is none."""
    top = provenance.module.partition(".")[0]
    names = [name for name in sys.modules if name == top or name.startswith(f"{top}.")]
    for name in sorted(names, key=lambda name: (name != provenance.module, name)):
        for attribute, value in list(vars(sys.modules[name]).items()):
            if value is registration:
                return name, attribute
    return None
