"""Packages of a Debian distribution, of any architecture, fetched and unpacked into a folder of one's own.

Nothing needs root and nothing changes the system: apt has its lists, its archives and its idea of what is installed (nothing) in a folder
that it is given, so that it resolves all that a package requires; `dpkg -x` unpacks.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Unavailable", "fetch", "host", "unpack"]

#: Debian's names of architectures, by those of the kernel.
ARCHITECTURES = {"aarch64": "arm64", "x86_64": "amd64"}


class Unavailable(Exception):
    """What is needed cannot be had here; the message says why."""


def host() -> str:
    """The architecture of this machine, as the kernel names it.

    Raises:
        Unavailable: the system has no such packages, or the machine is of another architecture.
    """
    missing = [name for name in ("apt-get", "dpkg") if shutil.which(name) is None]
    if missing:
        raise Unavailable(f"emulated environments are made of a distribution's packages, and there is no {missing[0]} here")
    if platform.machine() not in ARCHITECTURES:
        raise Unavailable(f"no emulator is known for a machine of {platform.machine()}")
    return platform.machine()


def fetch(names: Sequence[str], architecture: str, folder: Path, *, alone: bool = False) -> list[Path]:
    """Fetch packages and what they require into a folder that apt may fill.

    Args:
        names: names of packages.
        architecture: their architecture, as the kernel names it.
        folder: keeps apt's lists, and what was fetched.
        alone: without what they require.

    Raises:
        Unavailable: the lists or the packages cannot be had, as without a network.
    """
    lists, archives = folder / "lists", folder / "cache" / "archives"
    for place in (lists / "partial", archives / "partial"):
        place.mkdir(parents=True, exist_ok=True)
    nothing = folder / "status"
    nothing.touch()
    name = ARCHITECTURES[architecture]
    settings = {
        "APT::Architecture": name,
        "APT::Architectures": name,
        "APT::Sandbox::User": "root",  # no change of users: this one fetches
        "Debug::NoLocking": "1",
        "Dir::State::Lists": lists,
        "Dir::State::status": nothing,
        "Dir::Cache": folder / "cache",
    }
    apt = ["apt-get", "--quiet", *(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))]
    _run([*apt, "update"])
    if alone:
        _run([*apt, "download", *names], archives)
    else:
        _run([*apt, "--no-install-recommends", "--yes", "--download-only", "install", *names])
    return sorted(archives.glob("*.deb"))


def unpack(packages: Sequence[Path], root: Path) -> None:
    """Unpack packages below a folder."""
    root.mkdir(parents=True, exist_ok=True)
    for package in packages:
        _run(["dpkg", "-x", str(package), str(root)])


def _run(command: Sequence[str], folder: Path | None = None) -> None:
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except subprocess.CalledProcessError as error:
        said = [line for line in error.stderr.splitlines() if line.startswith(("E:", "dpkg"))] or error.stderr.splitlines()
        raise Unavailable(f"{command[0]} failed: {' '.join(said[:3])}") from None
