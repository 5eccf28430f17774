"""List what distributions hold, and say what should not be in one: what is of the machine that built it, and what nobody needs.

usage: python -m scripts.contents FILE ...; the exit code is 1 if a file holds what it should not
"""

from __future__ import annotations

import argparse
import getpass
import os
import platform
import re
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from scripts.requirements import ROOT

__all__ = ["Member", "listing", "main", "members", "wrong"]

#: What files of a wheel are: code, types, tables, pages, C's headers, machine code, and scaffolds' templates (a further suffix `.in`).
_SUFFIXES = {".py", ".pyi", ".typed", ".json", ".csv", ".npz", ".html", ".js", ".txt", ".md", ".toml", ".h", ".c", ".cc", ".pth"}
_COMPILED = {".so", ".dll", ".dylib"}
#: Files without a suffix, by their whole name.
_NAMES = {"LICENSE", "METADATA", "RECORD", "WHEEL", "DOT.gitignore"}
#: Folders and endings that are left over by what ran.
_LEFT_OVER = re.compile(
    r"(^|/)(__pycache__|\.git|\.pytest_cache|\.mypy_cache|\.ruff_cache|\.hypothesis|\.venv[^/]*|build|dist|\.DS_Store|\.idea|\.vscode)(/|$)"
    r"|\.(py[cod]|orig|rej|bak|swp|tmp|new|log|o|a|egg-info)$|~$"
)
#: The time that hatchling gives every file of a wheel.
_TIME = (2020, 2, 2, 0, 0, 0)
#: What a file may weigh, in bytes: a library of kernels for one level of processors is the largest.
_LARGE, _LARGE_LIBRARY = 1_000_000, 12_000_000


class Member(NamedTuple):
    """A member of a distribution.

    Attributes:
        name: its path in the archive.
        data: its bytes.
        mode: its rights, and in a tar archive nothing else.
        told: what is wrong with how the archive has it, "" for nothing.
    """

    name: str
    data: bytes
    mode: int
    told: str = ""


def members(file: Path) -> list[Member]:
    """Return the members of a wheel or a source distribution, folders left out."""
    return list(_of_wheel(file) if file.suffix == ".whl" else _of_sdist(file))


def _of_wheel(file: Path) -> Iterator[Member]:
    with zipfile.ZipFile(file) as archive:
        for info in archive.infolist():
            told = "" if info.date_time == _TIME else f"is of {info.date_time}"
            if not info.is_dir():
                yield Member(info.filename, archive.read(info), info.external_attr >> 16 & 0o7777, told)


def _of_sdist(file: Path) -> Iterator[Member]:
    with tarfile.open(file) as archive:
        for info in archive:
            if info.isdir():
                continue
            data = archive.extractfile(info) if info.isfile() else None
            owned = info.uid or info.gid or info.uname or info.gname
            told = "is a link or a device" if data is None else f"belongs to {owned}" if owned else ""
            yield Member(info.name, data.read() if data else b"", info.mode, told)


def listing(file: Path) -> str:
    """Return the members of a distribution as text: bytes and path, a line each."""
    found = sorted(members(file))
    total = sum(len(member.data) for member in found)
    lines = [f"{file.name}: {len(found)} files, {total:,} bytes", *(f"{len(each.data):>12,}  {each.name}" for each in found)]
    return "\n".join(lines) + "\n"


def wrong(file: Path) -> list[str]:
    """Return what a distribution should not hold, a sentence each."""
    found = members(file)
    is_wheel = file.suffix == ".whl"
    package = file.name.partition("-")[0]
    places = _places()
    sentences = [sentence for member in found for sentence in _of_member(member, is_wheel, places)]
    if is_wheel:
        homes: tuple[str, ...] = (f"{package}/", f"{package}-")
        homes += ("oplet/",) if package == "oplet_core" else (f"{package}.pth",)
        sentences += [f"{each.name} lies outside of {package}" for each in found if not each.name.startswith(homes)]
    else:
        top = file.name.removesuffix(".tar.gz") + "/"
        sentences += [f"{each.name} lies outside of {top}" for each in found if not each.name.startswith(top)]
    lower = [each.name.lower() for each in found]
    sentences += [f"{each.name} is there twice where case does not count" for each in found if lower.count(each.name.lower()) > 1]
    return [f"{file.name}: {sentence}" for sentence in sentences]


def _of_member(member: Member, is_wheel: bool, places: Sequence[bytes]) -> Iterator[str]:
    path = Path(member.name)
    if member.told:
        yield f"{member.name} {member.told}"
    if path.is_absolute() or ".." in path.parts or "\\" in member.name:
        yield f"{member.name} is no path below a folder"
    if not member.name.isascii():
        yield f"{member.name!r} has letters that not every system's file names have"
    if member.mode & 0o022 or not member.mode & 0o400:
        yield f"{member.name} has the rights {member.mode:o}"
    inside = "/".join(path.parts if is_wheel else path.parts[1:])
    if _LEFT_OVER.search(inside):
        yield f"{member.name} is left over"
    kind = Path(member.name.removesuffix(".in"))
    if is_wheel and kind == path and "tests" in path.parts:
        yield f"{member.name} is a test"
    if is_wheel and kind.suffix not in _SUFFIXES | _COMPILED and kind.name not in _NAMES:
        yield f"{member.name} is of a kind that no wheel has had"
    if len(member.data) > (_LARGE_LIBRARY if path.suffix in _COMPILED else _LARGE):
        yield f"{member.name} has {len(member.data):,} bytes"
    if not member.data and kind.name not in ("__init__.py", "py.typed"):
        yield f"{member.name} is empty"
    for place in places:
        if place in member.data:
            yield f"{member.name} names {place.decode(errors='replace')} of the machine that built it"


def _places() -> list[bytes]:
    """What only the machine that builds has: where this clone, its Python, its user and its temporary files lie, and its names."""
    paths = {str(ROOT), sys.prefix, str(Path.home()) + os.sep, tempfile.gettempdir() + os.sep + "tmp"}
    named = {platform.node()} if len(platform.node()) > 7 else set()
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = ""
    named |= {f"/home/{user}/"} if user else set()
    return sorted(name.encode() for name in paths | named if len(name) > 5 and name not in ("/usr", "/usr/local"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what the files hold, then what they should not; returns 1 if there is any."""
    parser = argparse.ArgumentParser(prog="python -m scripts.contents", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    files = parser.parse_args(arguments).files
    print("\n".join(listing(file) for file in files))
    sentences = [sentence for file in files for sentence in wrong(file)]
    print("\n".join(sentences), file=sys.stderr)
    return int(bool(sentences))


if __name__ == "__main__":
    sys.exit(main())
