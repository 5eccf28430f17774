"""Wheels of this repository's packages for tests that need them installed: each is built once a run, whichever process asks first.

A test of how a package is built builds it itself. What else pip fetches it keeps in one cache, the user's own (see the root's conftest.py).
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from packaging.requirements import Requirement
from scripts import packages
from scripts.requirements import tomllib
from tests.places import ROOT

__all__ = ["needed", "wheel"]

#: In the run's own folder of caches, which all its processes share.
FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or tempfile.gettempdir()) / "oplet-tests-wheelhouse"


def _folder(package: str) -> Path:
    return ROOT / package if package in ("core", "metapackage") else ROOT / "plugins" / package


def _project(package: str) -> dict[str, object]:
    return dict(tomllib.loads((_folder(package) / "pyproject.toml").read_text("utf-8"))["project"])


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Hold a lock on a file, which ends with the process that holds it; nothing where the system has no such locks."""
    with file.open("w") as held:
        try:
            import fcntl
        except ImportError:
            pass
        else:
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _built(package: str) -> Path | None:
    name = re.sub(r"[-_.]+", "_", str(_project(package)["name"]))
    return next(iter(FOLDER.glob(f"{name}-*.whl")), None)


def wheel(package: str) -> Path:
    """The wheel of a package, by the name of its folder: "core", "atan_op"."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with _alone(FOLDER / f"{package}.lock"):
        if found := _built(package):
            return found
        with tempfile.TemporaryDirectory(dir=FOLDER) as place:
            [made] = (file for file in packages.build(_folder(package), Path(place)) if file.suffix == ".whl")
            return made.replace(FOLDER / made.name)


def needed(*names: str) -> list[Path]:
    """The wheels of these packages, and of what they require of this repository, the core with them."""
    folders = {str(_project(folder.name)["name"]): folder.name for folder in packages.folders()}
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        package = waiting.pop()
        if package not in found:
            found.add(package)
            required = _project(package)["dependencies"]
            waiting += [folders[name] for text in required if (name := Requirement(text).name) in folders]  # type: ignore[attr-defined]
    return [wheel(package) for package in sorted(found)]
