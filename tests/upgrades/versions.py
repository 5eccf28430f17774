"""Versions of the packages, and places that they are installed in: an older commit's sources, or these, under another number."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from packaging.requirements import Requirement
from scripts.changes import base, export, last_release
from scripts.requirements import tomllib
from tests.places import ROOT

__all__ = ["ALL", "NUMPY", "Place", "Version", "before", "export_version", "link_dependencies"]

#: The folders of packages that are installed: what runs models, tunes them and has the command.
NUMPY = ("core", "plugins/predictor", "plugins/tools", "plugins/builtin_ops", "plugins/atan_op")
ALL = (*NUMPY, "plugins/compiled_ops")
_COMPILED = Path("plugins/compiled_ops/src/oplet_compiled_ops")
#: How many landings ago an older version may be.
_LANDINGS = 60


class Version(NamedTuple):
    """Sources, and the number that their packages have.

    Attributes:
        tree: the repository's files.
        number: the version.
        edits: what is replaced in files, by their path in the tree: texts and what stands there instead.
    """

    tree: Path
    number: str
    edits: Mapping[str, tuple[str, str]] = {}  # noqa: RUF012: a default that nobody changes


def _project(folder: Path) -> dict[str, object]:
    return dict(tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"])


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.split()


def _has_these_kernels(revision: str) -> bool:
    """Return whether a commit's compiled kernels have the sources of these, so that the libraries here are its own."""
    paths = [_COMPILED.as_posix(), f":!{(_COMPILED / 'compiling').as_posix()}"]
    return not _git("diff", "--name-only", revision, "--", *paths)


def before() -> str | None:
    """Return the commit that plays the release before: the last release, else the oldest landing with the compiled kernels of these
    sources, else the commit that the change began from; None where there is no history.
    """
    try:
        landings = _git("rev-list", "--first-parent", f"--max-count={_LANDINGS}", "HEAD~1")
    except (OSError, subprocess.CalledProcessError):
        return None
    alike = []
    for landing in landings:
        if not _has_these_kernels(landing):
            break
        alike.append(landing)
    return last_release() or (alike[-1] if alike else base())


def export_version(revision: str, folder: Path, number: str) -> Version:
    """Write a commit's tree into a folder, with the libraries of its compiled kernels where they are the ones here."""
    export(revision, folder)
    if _has_these_kernels(revision) and (ROOT / _COMPILED / "libraries").is_dir():
        shutil.copytree(ROOT / _COMPILED / "libraries", folder / _COMPILED / "libraries")
    return Version(folder, number)


def _required(names: Iterable[str]) -> Iterator[importlib.metadata.Distribution]:
    """Yield the installed distributions that others require, and what these do."""
    seen, waiting = set[str](), list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in seen or name.startswith("oplet"):
            continue
        seen.add(name)
        found = importlib.metadata.distribution(name)
        yield found
        for text in found.requires or ():
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                waiting.append(needed.name)


def link_dependencies(folder: Path) -> None:
    """Make a folder of links to what the packages require from others, as it is installed here, and to nothing else."""
    folder.mkdir()
    names = [Requirement(text).name for package in ALL for text in _project(ROOT / package)["dependencies"]]  # type: ignore[attr-defined]
    for found in _required(names):
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            with_path = Path(str(found.locate_file(top)))
            if not (folder / top).exists():
                (folder / top).symlink_to(with_path, target_is_directory=with_path.is_dir())


class Place:
    """A virtual environment whose packages are replaced as pip does: the old files go, the new ones come.

    Args:
        folder: where it is made.
        dependencies: a folder with what oplet's packages require from others.
    """

    def __init__(self, folder: Path, dependencies: Path) -> None:
        venv.create(folder, with_pip=False, symlinks=True)
        self.python = str(folder / "bin" / "python")
        [self._site] = folder.glob("lib/python*/site-packages")
        self._contents: dict[str, Version] = {}
        (self._site / "dependencies.pth").write_text(f"{dependencies}\n", "utf-8")

    @property
    def contents(self) -> str:
        """What is installed, as a text."""
        return repr(sorted(self._contents.items()))

    def install(self, version: Version, packages: Iterable[str] = ALL, dated: int | None = None) -> None:
        """Install packages of a version in place of all that are there.

        Args:
            version: the version.
            packages: their folders in the tree.
            dated: the time, in seconds, that all files get, as from an archive whose files are all dated alike; None for now.
        """
        self.remove()
        self.add(version, packages, dated)

    def remove(self, names: str = "oplet*") -> None:
        """Remove packages, and their metadata."""
        for found in self._site.glob(names):
            shutil.rmtree(found)
            self._contents.pop(found.name, None)

    def add(self, version: Version, packages: Iterable[str], dated: int | None = None) -> None:
        """Install packages beside those that are there, or in place of those of the same names."""
        for package in packages:
            [source] = (version.tree / package / "src").iterdir()
            self.remove(f"{source.name}")
            self.remove(f"{source.name}-*.dist-info")
            copied = self._site / source.name
            self._contents[source.name] = version
            shutil.copytree(source, copied, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copyfile)
            if package == "core":
                _replace(copied / "__init__.py", r'(?m)^__version__ = ".*"$', f'__version__ = "{version.number}"')
            for file, (old, new) in version.edits.items():
                if Path(file).is_relative_to(f"{package}/src/{source.name}"):
                    _replace(self._site / Path(file).relative_to(f"{package}/src"), re.escape(old), new)
            info = self._site / f"{source.name}-{version.number}.dist-info"
            info.mkdir()
            project = _project(version.tree / package)
            requires = "".join(f"Requires-Dist: {text}\n" for text in project["dependencies"])  # type: ignore[attr-defined]
            (info / "METADATA").write_text(
                f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version.number}\n{requires}", "utf-8"
            )
            groups = dict(project.get("entry-points", {}))  # type: ignore[call-overload]
            text = "".join(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in each.items()) for group, each in groups.items())
            (info / "entry_points.txt").write_text(text, "utf-8")
            if dated is not None:
                for path in (*copied.rglob("*"), *info.rglob("*")):
                    os.utime(path, (dated, dated))


def _replace(file: Path, pattern: str, text: str) -> None:
    source = file.read_text("utf-8")
    changed, count = re.subn(pattern, text, source)
    if count != 1:
        sys.exit(f"{file} has {pattern} {count} times")
    file.write_text(changed, "utf-8")
