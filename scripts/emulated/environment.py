"""A Python of another architecture with its wheels, in a folder, and the emulator that runs it.

The folder is made once for each recipe: the distribution, the architecture and the wheels; a changed recipe makes another one. All lie in
the user's cache, or where EMULATED_FOLDER says. Making one takes half a minute and 190 MB, and needs the distribution's mirror and a
package index.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from scripts.emulated.debian import Unavailable, fetch, host, unpack
from scripts.requirements import ROOT

__all__ = ["Environment", "environment", "unpacked"]

#: What is installed of the distribution: a Python, and what wheels with C++ in them expect.
PACKAGES = ("python3", "libstdc++6", "libgcc-s1")
#: What the core and the operators require, and what runs their tests.
WHEELS = ("numpy", "ml_dtypes", "flatbuffers", "pluggy", "importlib-metadata", "pytest", "hypothesis", "pyyaml", "packaging")
#: Wheels are for glibc 2.17 up to a version that distributions have had for years.
_GLIBC = range(17, 37)
#: Seconds for which an environment of another recipe is kept after its last use: two weeks.
_KEPT = 14 * 24 * 3600
#: The script that starts the emulator; named so that what asks whether it can start a Python sees one.
_STARTER = "python3-emulated"


class Environment(NamedTuple):
    """A Python under an emulator.

    Attributes:
        folder: everything of it.
        architecture: as the kernel names it.
        python: the command that starts it: a script, so that its `sys.executable` starts another one, emulated too.
    """

    folder: Path
    architecture: str
    python: Path

    def variables(self, cpu: str, paths: Iterable[Path] = (), more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment variables of a process.

        Args:
            cpu: QEMU's name of the processor.
            paths: folders to import from.
            more: variables to set besides.
        """
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "LD_", "VIRTUAL_ENV", "QEMU_"))
        }
        places = os.pathsep.join(map(str, paths))
        return kept | {"QEMU_CPU": cpu, "PYTHONPATH": places, "PYTHONNOUSERSITE": "1", **(more or {})}


def environment(architecture: str) -> Environment:
    """Return the environment of an architecture; it is made if it is not there.

    Raises:
        Unavailable: it can't be made here; says why.
    """
    recipe = _recipe(architecture)
    folder = _cache() / f"{architecture}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    with _alone(folder):
        if not (folder / "recipe").exists():
            _forget_unused(folder.parent)
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            try:
                _make(folder, architecture)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            (folder / "recipe").write_text(recipe, encoding="utf-8")
        (folder / "recipe").touch()
    return Environment(folder, architecture, folder / "root" / "usr" / "bin" / _STARTER)


def unpacked(wheel: Path, folder: Path) -> Path:
    """Unpack a wheel as pip installs it, without its scripts, and return the folder to import from."""
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    for data in folder.glob("*.data"):
        for place in (data / "purelib", data / "platlib"):
            if place.is_dir():
                shutil.copytree(place, folder, dirs_exist_ok=True)
        shutil.rmtree(data)
    return folder


def _cache() -> Path:
    own = os.environ.get("EMULATED_FOLDER")
    return Path(own) if own else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oplet-emulated"


def _forget_unused(cache: Path) -> None:
    """Remove environments of other recipes that nobody has used for a while."""
    for recipe in cache.glob("*/recipe"):
        if time.time() - recipe.stat().st_mtime > _KEPT:
            shutil.rmtree(recipe.parent, ignore_errors=True)


def _recipe(architecture: str) -> str:
    """Everything that an environment depends on, as text."""
    system = Path("/etc/os-release").read_text("utf-8") if host() else ""
    names = "|".join(re.sub(r"[-_]", "[-_]", name) for name in WHEELS)
    pins = re.findall(rf"^(?:{names})==.*$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE)
    return "\n".join([architecture, system, *PACKAGES, *WHEELS, *pins, Path(__file__).read_text("utf-8"), ""])


def _make(folder: Path, architecture: str) -> None:
    root, apt = folder / "root", folder / "apt"
    unpack(fetch(PACKAGES, architecture, apt / "root"), root)
    emulator = shutil.which(f"qemu-{architecture}-static")
    if emulator is None:
        unpack(fetch(["qemu-user-static"], host(), apt / "emulator", alone=True), apt / "unpacked")
        [found] = apt.glob(f"unpacked/usr/bin/qemu-{architecture}-static")
        emulator = str(shutil.copy(found, folder / found.name))
    python = (root / "usr" / "bin" / "python3").resolve()
    version = re.sub(r"^python", "", python.name)
    site = root / "usr" / "local" / "lib" / python.name / "dist-packages"
    for wheel in _wheels(architecture, version, folder / "wheels"):
        unpacked(wheel, site)
    starter = python.with_name(_STARTER)
    starter.write_text(f'#!/bin/sh\nexec "{emulator}" -L "{root}" -0 "$0" "{python}" "$@"\n', encoding="utf-8")
    starter.chmod(0o755)
    shutil.rmtree(apt)
    shutil.rmtree(folder / "wheels")


def _wheels(architecture: str, version: str, folder: Path) -> list[Path]:
    """Fetch the wheels for another platform, of the versions that passed together where the index has them."""
    tag = f"cp{version.replace('.', '')}"
    platforms = [f"manylinux_2_{minor}_{architecture}" for minor in _GLIBC] + [f"manylinux2014_{architecture}"]
    target = ["--only-binary=:all:", "--python-version", version, "--implementation", "cp"]
    target += [word for abi in (tag, "abi3", "none") for word in ("--abi", abi)]
    target += [word for name in platforms for word in ("--platform", name)]
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        *target,
        "--dest",
        str(folder),
        *WHEELS,
    ]
    for bounds in (["--constraint", str(ROOT / "constraints.txt")], []):
        done = subprocess.run([*pip, *bounds], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        if done.returncode == 0:
            return sorted(folder.glob("*.whl"))
    said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or done.stderr.splitlines()
    raise Unavailable(f"pip cannot fetch wheels for {architecture}: {' '.join(said[:2])}")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold a lock beside a folder; it ends with the process that holds it."""
    import fcntl

    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


@contextmanager
def imported_from(wheels: Sequence[Path]) -> Iterator[list[Path]]:
    """Unpack wheels, each into a folder of its own, as long as the context lasts."""
    with tempfile.TemporaryDirectory(prefix="oplet-emulated-") as folder:
        yield [unpacked(wheel, Path(folder) / wheel.stem) for wheel in wheels]
