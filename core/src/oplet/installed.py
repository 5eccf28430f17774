"""Entry points of the installed packages, read without importlib_metadata where their folders are plain.

Importing importlib_metadata and reading the metadata of every package takes longer than opening a model. What plugins need is the
`entry_points.txt` of each package, and the name and version of the few that have an entry point of theirs.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator
from functools import reduce
from importlib import import_module
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, cast

from oplet.records import Row

if TYPE_CHECKING:
    from importlib_metadata import EntryPoint

__all__ = ["entry_points"]

_SUFFIXES = (".dist-info", ".egg-info")


class _Unusual(Exception):
    """The installed packages are laid out in a way that only importlib_metadata reads."""


class _Distribution(Row):
    name: str
    version: str


class _EntryPoint(Row):
    """An entry point, with what plugins use of importlib_metadata's class of that name."""

    name: str
    value: str
    group: str
    module: str
    attr: str
    dist: _Distribution

    def load(self) -> Any:
        return reduce(getattr, filter(None, self.attr.split(".")), import_module(self.module))


def entry_points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group from all packages on the import path; if a package is installed twice, those of the first.

    Args:
        group: the group's name.
    """
    # A program that has importlib_metadata already may also have told it where packages are.
    if "importlib_metadata" not in sys.modules:
        try:
            return cast("tuple[EntryPoint, ...]", tuple(_read(group, sys.path)))
        except (_Unusual, OSError, ValueError):  # UnicodeDecodeError is a ValueError
            pass
    import importlib_metadata

    return tuple(importlib_metadata.entry_points(group=group))


def _read(group: str, paths: Iterable[str]) -> Iterator[_EntryPoint]:
    """Yield what `entry_points` returns, read from the folders `paths` without importlib_metadata.

    Raises:
        _Unusual: packages may lie elsewhere than in folders, or a folder has two of the same name.
        OSError: a file cannot be read.
        ValueError: a file is no text.
    """
    # A finder may say that it has none but those that it is asked for by name (oplet-litert-shim's).
    others = [finder for finder in sys.meta_path if finder is not PathFinder and getattr(finder, "lists_distributions", True)]
    if any(hasattr(finder, "find_distributions") for finder in others):
        raise _Unusual
    seen: dict[str, tuple[str, str]] = {}  # the folders of packages by name: where they are, and that of the package
    header = f"[{group}]"
    for folder in dict.fromkeys(paths):
        try:
            children = os.listdir(folder or ".")
        except FileNotFoundError:
            continue
        except NotADirectoryError:
            raise _Unusual from None
        for child in children:
            if child.lower().endswith(_SUFFIXES):
                name = re.sub("[-_.]+", "-", child.rpartition(".")[0].partition("-")[0]).lower()
                if name not in seen:
                    seen[name] = folder, child
                    yield from _of(os.path.join(folder, child), group, header)
                elif seen[name][0] == folder or not os.path.isfile(_metadata(os.path.join(*seen[name]))):
                    raise _Unusual


def _of(info: str, group: str, header: str) -> Iterator[_EntryPoint]:
    """Yield the entry points of `group` in one package's `.dist-info` or `.egg-info` folder `info`; `header` is "[group]"."""
    try:
        with open(os.path.join(info, "entry_points.txt"), "rb", buffering=0) as file:
            content = file.read()
    except (FileNotFoundError, NotADirectoryError):
        return
    if header.encode() not in content:
        return
    section, dist = "", None
    for line in filter(None, map(str.strip, content.decode(errors="replace").splitlines())):
        if line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            section = line
        elif section == header:
            name, equals, value = (part.strip() for part in line.partition("="))
            module, _, attribute = (part.strip() for part in value.partition("[")[0].partition(":"))  # without extras
            if equals:  # what names no module cannot be imported, and is told as any package that cannot
                dist = dist or _distribution(info)
                yield _EntryPoint(name, value, group, module, attribute, dist)


def _metadata(info: str) -> str:
    return os.path.join(info, "METADATA" if info.lower().endswith(_SUFFIXES[0]) else "PKG-INFO")


def _distribution(info: str) -> _Distribution:
    """Return the name and version in a package's metadata."""
    found: dict[str, str] = {}
    with open(_metadata(info), encoding="utf-8") as file:
        for line in file:
            field, colon, value = line.partition(":")
            if not colon or line[:1].isspace():  # the end of the fields, or a field of several lines
                break
            found.setdefault(field.lower(), value.strip())
    if not (found.get("name") and found.get("version")):
        raise _Unusual
    return _Distribution(found["name"], found["version"])
