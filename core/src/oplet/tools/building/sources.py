"""Which installed packages serve the ops that models need, and from where in them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import importlib_metadata

from oplet.errors import OpNotFoundError, UnresolvedOpError
from oplet.ops.registration import Provenance, Registration
from oplet.ops.resolver import Claim
from oplet.plugins.manager import GROUP, PluginManager
from oplet.plugins.plugin import PluginInfo
from oplet.tools.building.error import BuildError
from oplet.tools.selection.needs import Key, OpNeed

__all__ = ["Distribution", "Kernel", "distribution", "kernels", "licence_texts", "op_packages"]


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

    @property
    def key(self) -> Key:
        """What tells its op from others."""
        return self.op, self.custom, self.composite


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


def kernels(needs: Iterable[OpNeed], plugins: PluginManager) -> list[Kernel]:
    """What serves each op in each version that is needed, as an interpreter would choose among the plugins.

    Of composites only those that somebody serves are there; the others run as their decomposition.

    Raises:
        OpNotFoundError, UnresolvedOpError: nothing serves an op in a version that is needed.
        OpConflictError: several plugins do, and nothing says which to take.
        BuildError: what serves it comes from no installed package.
    """
    infos = plugins.plugins()
    selections = [info.name for info in infos if info.tier == "selection"]
    if selections:
        # An earlier build is no source: the packages that it was cut from are.
        plugins = plugins.without(selections)
    resolver = plugins.resolver()
    found: list[Kernel] = []
    for need in needs:
        claims = list(resolver.claims(need.op))
        for version in need.versions or resolver.versions(need.op):
            claim = next((c for c in claims if c.min_version <= version <= c.max_version), None)
            if claim is None:
                if need.composite:
                    continue
                raise _absent(need, version, plugins)
            kernel = _kernel(need, version, claim, infos)
            last = found[-1] if found else None
            if last is not None and last.max_version == version - 1 and last == _between(kernel, last.min_version, version - 1):
                found[-1] = _between(kernel, last.min_version, version)
            else:
                found.append(kernel)
        if not claims and not need.composite:
            raise _absent(need, need.versions[0] if need.versions else 1, plugins)
    return found


def _between(kernel: Kernel, first: int, last: int) -> Kernel:
    return replace(kernel, min_version=first, max_version=last)


def _absent(need: OpNeed, version: int, plugins: PluginManager) -> Exception:
    who = f", which {need.models[0]} needs," if need.models else ""
    message = f"Nothing installed serves {need.name} version {version}{who} so there is nothing to build from. {plugins.advice(need.op)}"
    return UnresolvedOpError(message, (need.name,)) if need.custom else OpNotFoundError(message, need.name, version)


def _kernel(need: OpNeed, version: int, claim: Claim, infos: Iterable[PluginInfo]) -> Kernel:
    if not claim.target:
        claim.load(version)  # several plugins claim it: the error that names them
    if not claim.provenance.distribution:
        raise BuildError(
            f"{need.name} is served by {claim.provenance}, which no installed package brings; build from packages only."
        )
    by_hook = False
    if isinstance(claim.target, str):
        module, _, attribute = claim.target.partition(":")
        attribute = attribute or "REGISTRATION"
    elif (place := _place(claim.target, claim.provenance)) is not None:
        module, attribute = place
    else:
        info = next(i for i in infos if (i.name, i.distribution) == (claim.provenance.plugin, claim.provenance.distribution))
        module, _, holder = info.module.partition(":")
        attribute, by_hook = f"{holder}.register_ops".lstrip("."), True
    package = claim.provenance.distribution
    return Kernel(need.name, need.custom, version, version, module, attribute, by_hook, package, need.composite)


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


def licence_texts(sources: Iterable[Distribution]) -> dict[str, bytes]:
    """The licence files of packages, each in a folder of its package's name; of equal texts the first."""
    texts = {data: f"{source.name}/{name}" for source in [*sources][::-1] for name, data in source.license_files[::-1]}
    return {path: data for data, path in texts.items()}
