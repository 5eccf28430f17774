"""Commands that install packages of this project, for advice in messages.

Packages come from an index, or from the clone of the repository that oplet was installed from. A clone's packages may not be on an index
yet, so that commands then name the clone's folders. Where oplet came from neither, from a folder of wheels that `scripts/wheels.sh` made, the
constraints there give pip the project's packages, and an index all others, until the names are the project's on PyPI (`NAMES_ARE_OURS`):
elsewhere they may be anybody's.
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

from oplet.plugins import known_packages

__all__ = ["CORE", "clone", "install_command", "install_first", "upgrade_command"]

#: The distribution of the package `oplet`; that of the name `oplet` only asks for it and for the built-in operators.
CORE: Final = "oplet-core"
_WHOLE: Final = "oplet"
_PREFIX: Final = "oplet-"
#: What WHEELS is in a command, where pip has not been shown that folder.
_WHEELS: Final = " (WHEELS: the folder that scripts/wheels.sh of oplet's repository makes)"


def install_command(package: str, extra: str = "", *, upgrade: bool = False, version: str = "") -> str:
    """Return the command that installs a package: from its folder if oplet was installed from a clone that has it, else by its name (while
    the project's names on PyPI are not its own, from the folder of wheels that PIP_FIND_LINKS names, or that the user puts for WHEELS).

    Args:
        package: the package's name.
        extra: an extra of the package.
        upgrade: whether to upgrade an installed package; a clone must then be updated first.
        version: the required version, "" for any; if the clone has another one, the command uses the index.
    """
    root = clone()
    folders = [] if root is None else _folders(root, package, extra)
    if version and folders and metadata.version(CORE) != version:  # all packages of a clone have one version
        folders = []
    from_wheels = not folders and known_packages.is_ours(package) and not known_packages.NAMES_ARE_OURS
    shown = os.environ.get("PIP_FIND_LINKS", "").split()
    wheels = next((folder for folder in shown if f"{CORE} @ file:" in _text(Path(folder) / "constraints.txt")), "WHEELS")
    wanted = folders or [f"{package}=={version}" if version else package]
    if from_wheels and extra:  # pip takes extras of a file beside constraints, and none of a name that these give a file to
        wanted = [f"{wheels}/{package.replace('-', '_')}-{version or metadata.version(CORE)}-py3-none-any.whl"]
    if extra:
        wanted[-1] = f"{wanted[-1]}[{extra}]"
    first = "with the clone up to date, " if upgrade and folders else ""
    source = ["--constraint", f"{wheels}/constraints.txt"] if from_wheels else []
    words = " ".join(map(_quoted, ["--upgrade"] * upgrade + source + wanted))
    return f"{first}pip install {words}{_WHEELS if source and wheels == 'WHEELS' else ''}"


def upgrade_command() -> str:
    """Return the command that installs a newer `oplet` (which requires a matching core) if that is installed, else a newer core."""
    return install_command(_WHOLE if _installed(_WHOLE) else CORE, upgrade=True)


def install_first(*packages: str) -> str:
    """Return a command prefix ("pip install ... && ") that installs required packages from the clone first; "" if not
    necessary.
    """
    root = clone()
    if root is None:
        return ""
    folders = dict.fromkeys(folder for package in packages if not _installed(package) for folder in _folders(root, package))
    return f"pip install {' '.join(map(_quoted, folders))} && " if folders else ""


def clone() -> Path | None:
    """Return the root of the git clone that oplet was installed from, editable or not; None if it came from an index or the clone
    is gone.
    """
    try:
        told = json.loads(_direct_url() or "{}")
        if not isinstance(told, dict) or "dir_info" not in told:
            return None
        parts = urlsplit(str(told.get("url", "")))
        path = unquote(parts.path)
        root = Path(path[1:] if os.name == "nt" else path).parent  # on Windows a slash precedes the drive letter
    except ValueError:
        return None
    return root if parts.scheme == "file" and _field(root / "core", "name") == CORE else None


def _direct_url() -> str:
    """Read pip's record of the origin of this oplet (PEP 610, direct_url.json); "" if it came from an index."""
    try:
        return metadata.distribution(CORE).read_text("direct_url.json") or ""
    except (metadata.PackageNotFoundError, OSError, ValueError):
        return ""


def _folders(root: Path, package: str, extra: str = "") -> list[str]:
    """Return the folders of a clone to install for a package: those of its missing requirements (and of theirs), then its own."""
    if _field(_folder(root, package), "name") != package:
        return []
    found: list[str] = []
    seen = {package}

    def visit(name: str, extra: str = "") -> None:
        for other in _required(_folder(root, name), extra):
            if other not in seen and _field(_folder(root, other), "name") == other:
                seen.add(other)
                visit(other)
        found.append(name)

    visit(package, extra)
    return [str(_folder(root, name)) for name in found if name == package or not _installed(name)]


def _folder(root: Path, package: str) -> Path:
    """Return the folder of a package in a clone: the one of the usual name, or the one whose pyproject.toml names the package."""
    if package in (CORE, _WHOLE):
        return root / ("core" if package == CORE else "metapackage")
    usual = root / "plugins" / package.removeprefix(_PREFIX).replace("-", "_")
    if usual.exists():
        return usual
    return next((path.parent for path in root.glob("plugins/*/pyproject.toml") if _field(path.parent, "name") == package), usual)


@lru_cache(maxsize=64)
def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return ""


def _field(folder: Path, field: str) -> str:
    """Read a field of the pyproject.toml in a folder; "" if it has none."""
    found = re.search(rf'^{field} = "([^"]+)"', _text(folder / "pyproject.toml"), re.MULTILINE)
    return found[1] if found else ""


def _required(folder: Path, extra: str) -> list[str]:
    """Return the packages of this repository, but for the core, that the project, and this extra of it, require."""
    field = rf"^(?:dependencies|{re.escape(extra)}) = \[(.*?)\]$"
    lists = re.findall(field, _text(folder / "pyproject.toml"), re.MULTILINE | re.DOTALL)
    return [name for text in lists for name in re.findall(rf'"({_PREFIX}[a-z-]+)', text) if name != CORE]


def _installed(package: str) -> bool:
    return any(metadata.distributions(name=package))


def _quoted(word: str) -> str:
    """Quote a word for the shell of this system if necessary."""
    if re.fullmatch(r"[\w./:=\\-]+", word) and (os.name == "nt" or "\\" not in word):
        return word
    # Brackets need only double quotes, in every shell; other special characters need the quoting of sh.
    return f'"{word}"' if os.name == "nt" or re.fullmatch(r"[\w ./:=\[\]-]+", word) else shlex.quote(word)
