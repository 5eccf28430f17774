"""Where pip finds the packages of this project: on an index, or beside this oplet in the clone that it was installed from.

Only for advice in messages. Until the packages are on an index, what helps somebody who has a clone is a command that names its folders.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

__all__ = ["clone", "install_command", "install_first"]

_CORE: Final = "oplet"
_PREFIX: Final = "oplet-"


def install_command(package: str, extra: str = "", *, upgrade: bool = False, version: str = "") -> str:
    """The command that installs a package: with its folder where oplet came from a clone that has it, else with its name.

    Args:
        package: the package's name, `oplet` or another; one that the clone does not have is taken from the index.
        extra: an extra of the package.
        upgrade: whether the package is there and a newer one is wanted, which in a clone takes a newer clone first.
        version: the one that is wanted; where the clone has another, only an index may have it.
    """
    root = clone()
    folders = [] if root is None else _folders(root, package)
    if version and folders and metadata.version(_CORE) != version:  # all packages of a clone have one version
        folders = []
    wanted = folders or [f"{package}=={version}" if version else package]
    if extra:
        wanted[-1] = f"{wanted[-1]}[{extra}]"
    first = "with the clone up to date, " if upgrade and folders else ""
    return f"{first}pip install {'--upgrade ' if upgrade else ''}{' '.join(map(_quoted, wanted))}"


def install_first(package: str) -> str:
    """What goes before a command that would have pip look for a package by its name, where only the clone may have it; else ""."""
    root = clone()
    if root is None or not package or _installed(package) or not _folders(root, package):
        return ""
    return f"{install_command(package)} && "


def clone() -> Path | None:
    """The root of the clone that oplet was installed from, editable or not; None if it came from an index, or the clone is gone."""
    try:
        told = json.loads(_direct_url() or "{}")
        if not isinstance(told, dict) or "dir_info" not in told:
            return None
        parts = urlsplit(str(told.get("url", "")))
        path = unquote(parts.path)
        root = Path(path[1:] if os.name == "nt" else path).parent  # a drive's letter stands behind a slash
    except ValueError:
        return None
    return root if parts.scheme == "file" and _field(root / "core", "name") == _CORE else None


def _direct_url() -> str:
    """What pip noted of where this oplet came from, "" if it came from an index."""
    try:
        return metadata.distribution(_CORE).read_text("direct_url.json") or ""
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return ""


def _folders(root: Path, package: str) -> list[str]:
    """The folders of a clone that a package takes: its own, last, and before it those that it requires and that are not installed."""
    folder = _folder(root, package)
    if _field(folder, "name") != package:
        return []
    missing = [other for other in _required(folder) if not _installed(other)]
    needed = [_folder(root, other) for other in missing]
    return [*(str(other) for other, name in zip(needed, missing) if _field(other, "name") == name), str(folder)]


def _folder(root: Path, package: str) -> Path:
    return root / "core" if package == _CORE else root / "plugins" / package.removeprefix(_PREFIX).replace("-", "_")


@lru_cache(maxsize=64)
def _project(folder: Path) -> str:
    try:
        return (folder / "pyproject.toml").read_text("utf-8")
    except (OSError, ValueError):
        return ""


def _field(folder: Path, field: str) -> str:
    """A field of a project, "" where there is none."""
    found = re.search(rf'^{field} = "([^"]+)"', _project(folder), re.MULTILINE)
    return found[1] if found else ""


def _required(folder: Path) -> list[str]:
    """The packages of this project that one requires."""
    found = re.search(r"^dependencies = \[(.*?)\]$", _project(folder), re.MULTILINE | re.DOTALL)
    return re.findall(rf'"({_PREFIX}[a-z-]+)', found[1]) if found else []


def _installed(package: str) -> bool:
    try:
        metadata.distribution(package)
    except metadata.PackageNotFoundError:
        return False
    return True


def _quoted(word: str) -> str:
    """A word for the shell of this system."""
    if re.fullmatch(r"[\w./:=\\-]+", word) and (os.name == "nt" or "\\" not in word):
        return word
    # In double quotes brackets are plain to every shell; what else is special there takes sh's own rules.
    return f'"{word}"' if os.name == "nt" or re.fullmatch(r"[\w ./:=\[\]-]+", word) else shlex.quote(word)
