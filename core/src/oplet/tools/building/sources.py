"""Which installed packages serve the ops that models need, and from where in them."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import NamedTuple

import importlib_metadata

from oplet.ops.serving.registration import Provenance, Registration
from oplet.ops.serving.resolver import ResolverEntry
from oplet.plugins.manager import GROUP
from oplet.plugins.plugin import PluginInfo
from oplet.plugins.selection import normalised
from oplet.tools.building.error import BuildError
from oplet.tools.selection.needs import Key, OpNeed

__all__ = ["Distribution", "Kernel", "Origin", "distribution", "kernel_of", "licence_texts", "op_packages", "requirements_beyond"]


class Origin(NamedTuple):
    """A plugin as the provider of an op.

    Attributes:
        key: the op.
        distribution: the plugin's package.
        plugin: its name.
    """

    key: Key
    distribution: str
    plugin: str


@dataclass(frozen=True)
class Kernel:
    """What serves some versions of an op.

    Attributes:
        op: the op's name.
        custom: whether it is a custom op.
        min_version: the first version.
        max_version: the last version.
        module: the module that holds the registration, or the hook that makes it.
        attribute: the registration's name there, or the hook's.
        by_hook: `attribute` is the plugin's `register_ops`, as the registration has no name.
        distribution: the pip package that it comes in.
        composite: whether `op` is a composite's name.
        fallback: whether it is asked only where the one before it declines a node.
        plugin: the plugin's name.
    """

    op: str
    custom: bool
    min_version: int
    max_version: int
    module: str
    attribute: str
    by_hook: bool
    distribution: str
    composite: bool = False
    fallback: bool = False
    plugin: str = ""

    @property
    def key(self) -> Key:
        """What tells its op from others."""
        return self.op, self.custom, self.composite

    @property
    def origin(self) -> Origin:
        """The op, and the plugin that brings it."""
        return Origin(self.key, self.distribution, self.plugin)

    def among(self, first: int, last: int) -> Kernel:
        """The same for other versions."""
        return replace(self, min_version=first, max_version=last)

    def after(self, fallback: bool) -> Kernel:
        """The same as the first that is asked, or as a later one."""
        return replace(self, fallback=fallback)


@dataclass(frozen=True)
class Distribution:
    """What is known of an installed pip package.

    Attributes:
        name: its name.
        version: its version.
        license: its licence, an SPDX expression or other words; "" if it names none.
        license_files: the names of its licence files, and what is in them.
        requires: what it requires, without extras.
        requires_python: the Pythons that it runs on.
    """

    name: str
    version: str
    license: str
    license_files: tuple[tuple[str, bytes], ...]
    requires: tuple[str, ...]
    requires_python: str


def kernel_of(need: OpNeed, version: int, entry: ResolverEntry, infos: Iterable[PluginInfo]) -> Kernel:
    """The kernel of a plugin's entry, for one version.

    Raises:
        BuildError: it comes from no installed package.
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
        info = next(i for i in infos if (i.name, i.distribution) == (entry.provenance.plugin, entry.provenance.distribution))
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
    """The module and the name that hold a registration object, None if it has no name."""
    top = provenance.module.partition(".")[0]
    names = [name for name in sys.modules if name == top or name.startswith(f"{top}.")]
    for name in sorted(names, key=lambda name: (name != provenance.module, name)):
        for attribute, value in list(vars(sys.modules[name]).items()):
            if value is registration:
                return name, attribute
    return None


def op_packages() -> dict[str, str]:
    """The top-level packages of all installed plugins, and the distributions that bring them."""
    found: dict[str, str] = {}
    for entry_point in importlib_metadata.entry_points(group=GROUP):
        dist = entry_point.dist
        if dist is None:
            continue
        tops = {entry_point.module.partition(".")[0]}
        for file in dist.files or ():
            path = PurePosixPath(file)
            if path.suffix == ".py" and ".." not in path.parts:
                tops.add(path.parts[0] if len(path.parts) > 1 else path.stem)
        found.update(dict.fromkeys(tops - {"oplet"}, dist.name))
    return found


def distribution(name: str) -> Distribution:
    """What pip knows of an installed package.

    Raises:
        BuildError: it is not installed.
    """
    try:
        dist = importlib_metadata.distribution(name)
    except importlib_metadata.PackageNotFoundError:
        raise BuildError(f"The package {name} is not installed.") from None
    metadata = dist.metadata
    files = []
    for file in sorted(set(metadata.get_all("License-File") or ())):
        text = dist.read_text(f"licenses/{file}") or dist.read_text(file)
        if text is not None:
            files.append((file, text.encode()))
    requires = [text for text in dist.requires or () if "extra ==" not in text.partition(";")[2]]
    return Distribution(
        dist.name,
        dist.version,
        (metadata.get("License-Expression") or metadata.get("License") or "").strip(),
        tuple(files),
        tuple(requires),
        metadata.get("Requires-Python") or "",
    )


@functools.cache
def requirements_beyond(name: str, op_packages: frozenset[str]) -> frozenset[str]:
    """The names of what a package of ops requires besides oplet and what that requires; other packages of ops are looked into."""
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        seen.add(current)
        for required in _required(current):
            if required not in op_packages:
                found.add(required)
            elif required not in seen:
                waiting.append(required)
    return frozenset(found - {"oplet", "numpy", *_required("oplet")})


def _required(name: str) -> set[str]:
    try:
        requires = importlib_metadata.requires(name) or ()
    except importlib_metadata.PackageNotFoundError:
        return set()
    texts = [text for text in requires if "extra ==" not in text.partition(";")[2]]
    return {normalised(re.split(r"[\s<>=!~;\[(@]", text, maxsplit=1)[0]) for text in texts}


def licence_texts(sources: Iterable[Distribution]) -> dict[str, bytes]:
    """The licence files of packages, each in a folder of its package's name; of equal texts the first."""
    texts = {data: f"{source.name}/{name}" for source in [*sources][::-1] for name, data in source.license_files[::-1]}
    return {path: data for data, path in texts.items()}
