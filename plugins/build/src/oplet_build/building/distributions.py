"""Metadata of installed distributions: versions, licences and requirements."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

import importlib_metadata

from oplet.toolkit import GROUP, normalised
from oplet_build.building.error import BuildError

__all__ = ["Distribution", "distribution", "licence_texts", "op_packages", "requirements_beyond"]


@dataclass(frozen=True)
class Distribution:
    """Metadata of an installed pip package.

    Attributes:
        name: its name.
        version: its version.
        license: its licence, an SPDX expression or free text; "" if it names none.
        license_files: names and contents of its licence files.
        requires: its requirements, without extras.
        requires_python: the versions of Python that it supports.
        platforms: the platform tags of its wheel, sorted; empty if it is for any platform.
    """

    name: str
    version: str
    license: str
    license_files: tuple[tuple[str, bytes], ...]
    requires: tuple[str, ...]
    requires_python: str
    platforms: tuple[str, ...] = ()


def op_packages() -> dict[str, str]:
    """Return the top-level packages of all installed plugins but this one, each with the distribution that it belongs to."""
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
        found.update(dict.fromkeys(tops - {"oplet", "oplet_build"}, dist.name))
    return found


def distribution(name: str) -> Distribution:
    """Read the metadata of an installed package.

    Raises:
        BuildError: the package is not installed.
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
        _platforms(dist.read_text("WHEEL") or ""),
    )


def _platforms(wheel: str) -> tuple[str, ...]:
    tags = re.findall(r"^Tag: .+-(\S+)$", wheel, re.MULTILINE)
    return tuple(sorted(set(tags) - {"any"}))


@functools.cache
def requirements_beyond(name: str, op_packages: frozenset[str]) -> frozenset[str]:
    """Return the names of the distributions that an op package requires, except oplet and what oplet requires itself.

    Requirements on other op packages are followed; those packages themselves do not count.
    """
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
    return frozenset(found - {"oplet", "oplet-core", "numpy", *_required("oplet-core")})


def _required(name: str) -> set[str]:
    try:
        requires = importlib_metadata.requires(name) or ()
    except importlib_metadata.PackageNotFoundError:
        return set()
    texts = [text for text in requires if "extra ==" not in text.partition(";")[2]]
    return {normalised(re.split(r"[\s<>=!~;\[(@]", text, maxsplit=1)[0]) for text in texts}


def licence_texts(sources: Iterable[Distribution]) -> dict[str, bytes]:
    """Return the licence files of packages by path, each in a folder named after its package; of equal texts only the first."""
    texts = {data: f"{source.name}/{name}" for source in [*sources][::-1] for name, data in source.license_files[::-1]}
    return {path: data for data, path in texts.items()}
