"""Metadata of installed distributions: versions, licences and requirements.

The files of an installed package, found without importing it.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path, PurePosixPath

import importlib_metadata

from oplet.toolkit import GROUP, normalised
from oplet_build.building.error import BuildError

__all__ = ["Distribution", "distribution", "licence_texts", "op_packages", "requirements_beyond"]

_LIBRARY = re.compile(r".+\.(so(\.\d+)*|dylib|dll)")


@dataclass
class Package:
    """A top-level Python package, or a single-file module, with the paths of its files."""

    name: str  #: The name under which Python imports it.
    #: The source file of each module by its full name; None for a folder without `__init__.py`.
    modules: dict[str, Path | None] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)  #: Names of the modules that are packages.
    #: Files that are not Python, by their path from the package's folder, with "/"; shared libraries are among them.
    data: dict[str, Path] = field(default_factory=dict)
    native: set[str] = field(default_factory=set)  #: Full names of modules that are compiled (extension modules).

    @cached_property
    def texts(self) -> str:
        """The source texts of all modules, joined to one."""
        files = (path for path in self.modules.values() if path is not None)
        return "\n".join(path.read_text(encoding="utf-8-sig", errors="replace") for path in files)

    @property
    def libraries(self) -> list[str]:
        """The paths of those data files that are shared libraries."""
        return [path for path in self.data if is_library(path)]

    def reference(self, text: str) -> tuple[str, str] | None:
        """Parse a text such as "package.module:NAME" into module and attribute; None if it names no module of this package.

        A text that ends in "." is a prefix of such a name. The bare name of the package is not a reference: it may be any word.
        """
        match = re.fullmatch(r"(\w+(?:\.\w+)*)(\.?)(?::(\w+(?:\.\w+)*))?", text)
        if match is None or match[1] not in self.modules or (match[1] == self.name and not match[2] and not match[3]):
            return None
        return match[1], match[3] or ""


def find_package(name: str) -> Package:
    """Return the package that Python would import as `name`.

    Raises:
        BuildError: there is none, or it does not consist of files.
    """
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise BuildError(f"The package {name} cannot be found; is it still installed?")
    package = Package(name)
    if spec.submodule_search_locations is None:
        if spec.origin is None or not Path(spec.origin).is_file() or not spec.origin.endswith(".py"):
            raise BuildError(f"The module {name} has no source file to cut from ({spec.origin}).")
        package.modules[name] = Path(spec.origin)
        return package
    for folder in spec.submodule_search_locations:
        if not Path(folder).is_dir():
            raise BuildError(f"The package {name} is not in a folder ({folder}); install it unpacked.")
        _scan(package, Path(folder))
    package.modules.setdefault(name, None)
    package.packages.add(name)
    return package


def is_library(path: str) -> bool:
    """Return whether a data file is a shared library, by its name."""
    return _LIBRARY.fullmatch(path) is not None


def _is_extension_module(path: Path) -> bool:
    """Return whether a compiled file is an extension module of Python; a shared library that only C can open ends in .so too."""
    suffix = next((suffix for suffix in sorted(EXTENSION_SUFFIXES, key=len, reverse=True) if path.name.endswith(suffix)), "")
    return suffix.count(".") > 1 or (bool(suffix) and f"PyInit_{path.stem}".encode() in path.read_bytes())


def _scan(package: Package, root: Path) -> None:
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if "__pycache__" in parts or not path.is_file():
            continue
        dotted = ".".join((package.name, *parts[:-1]))
        stem = path.name.partition(".")[0]
        if path.suffix == ".py":
            name = dotted if stem == "__init__" else f"{dotted}.{stem}"
            package.modules[name] = path
        elif _is_extension_module(path):
            package.native.add(f"{dotted}.{stem}")
        elif path.name != "py.typed" and path.suffix not in (".pyc", ".pyi"):
            package.data["/".join(parts)] = path
            continue
        else:
            continue
        for length in range(1, len(parts)):
            folder = ".".join((package.name, *parts[:length]))
            package.packages.add(folder)
            package.modules.setdefault(folder, None)


@dataclass(frozen=True)
class Distribution:
    """Metadata of an installed pip package."""

    name: str
    version: str
    license: str  #: Its licence, an SPDX expression or free text; "" if it names none.
    license_files: tuple[tuple[str, bytes], ...]  #: Names and contents of its licence files.
    requires: tuple[str, ...]  #: Its requirements, without extras.
    requires_python: str  #: The versions of Python that it supports.
    platforms: tuple[str, ...] = ()  #: The platform tags of its wheel, sorted; empty if it is for any platform.


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
