"""Hash of an installed distribution's code, which is the same for a wheel and an editable install of the same files."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import importlib_metadata

from oplet.errors import OpletError

__all__ = ["FingerprintError", "Installed", "installed"]

_GROUP = "oplet"


class FingerprintError(OpletError, ValueError):
    """The files of a distribution cannot be found, so they cannot be hashed."""


class Installed(NamedTuple):
    """An installed distribution.

    Attributes:
        name: its name.
        version: its version.
        hash: hash of its code, "sha256:...".
    """

    name: str
    version: str
    hash: str


def installed(name: str) -> Installed | None:
    """Return the installed distribution of a name, with a hash of its code; None if there is none.

    The hash is SHA-256 over the sorted lines "path,sha256=..." of the wheel's RECORD, without `*.dist-info`, scripts and compiled files. An
    editable install has no such lines; they are computed from the files of its import packages.

    Raises:
        FingerprintError: its files cannot be found.
    """
    try:
        dist = importlib_metadata.distribution(name)
    except importlib_metadata.PackageNotFoundError:
        return None
    lines = [] if _is_editable(dist) else sorted(_recorded(dist))
    lines = lines or sorted(_walked(dist))
    if not lines:
        raise FingerprintError(f"The files of {dist.name} {dist.version} cannot be found; install it again.")
    digest = hashlib.sha256("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")).hexdigest()
    return Installed(dist.name, dist.version, f"sha256:{digest}")


def _is_editable(dist: Any) -> bool:
    try:
        origin = json.loads(dist.read_text("direct_url.json") or "{}")
        return bool(origin.get("dir_info", {}).get("editable"))
    except (ValueError, AttributeError):
        return False


def _recorded(dist: Any) -> Iterator[str]:
    for file in dist.files or ():
        path = file.as_posix()
        if file.parts[0].endswith((".dist-info", ".egg-info")) or ".." in file.parts or not _counts(path):
            continue
        if file.hash is not None and file.hash.mode == "sha256":
            yield f"{path},sha256={file.hash.value}"
        else:
            yield _line(path, Path(str(file.locate())))


def _walked(dist: Any) -> Iterator[str]:
    modules = [entry.module for entry in dist.entry_points if entry.group == _GROUP]
    for name in sorted({module.partition(".")[0] for module in modules}):
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            spec = None
        if spec is None:
            continue
        for place in spec.submodule_search_locations or ():
            folder = Path(place)
            yield from _files(folder.parent, folder.rglob("*"))
        if not spec.submodule_search_locations and spec.origin is not None:
            yield from _files(Path(spec.origin).parent, [Path(spec.origin)])


def _files(root: Path, files: Iterable[Path]) -> Iterator[str]:
    for file in files:
        path = file.relative_to(root).as_posix()
        if file.is_file() and _counts(path):
            yield _line(path, file)


def _counts(path: str) -> bool:
    """Return whether a file in RECORD is code or data of the package, and not made by an installer or by Python."""
    return not path.endswith((".pyc", ".pyo", ".pth")) and "__pycache__" not in path


def _line(path: str, file: Path) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest()).rstrip(b"=").decode()
    return f"{path},sha256={digest}"
