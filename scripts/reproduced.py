"""Build a release a second time, as somebody else would have, and compare the files.

usage: python -m scripts.reproduced FOLDER OTHER, two folders that `python -m scripts.packages` filled; the exit code is 1 if a file differs

`again` builds from a copy of this clone: in another place, on another day, by a process whose hashes fall otherwise, for a user whose files
others cannot read, and with no object file of the first build unless it is told to use them.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from scripts.fresh_install import copy_clone

__all__ = ["again", "differences", "main"]

#: A day in 2001, which no file of this project was written on.
_DAY = 1_000_000_000


def again(
    dist: Path, work: Path, only: Sequence[str] = (), objects: Path | None = None, options: Sequence[str] = ("--here",)
) -> str:
    """Build all packages from a copy of this clone into `dist`; returns the end of what the build said if it fails, else "".

    Args:
        dist: the folder for the distributions, as `scripts.packages` fills it.
        work: an empty folder for the copy, and for what is made on the way.
        only: some packages, by their folders' names.
        objects: the folder of kernels' object files; a new one unless given, so that all are compiled.
        options: of `python -m scripts.packages`.
    """
    clone = work / "somebody" / "else's clone"
    copy_clone(clone)
    for path in clone.rglob("*"):
        os.utime(path, (_DAY, _DAY))
    sources = [clone, clone / "core" / "src", *sorted(clone.glob("plugins/*/src"))]
    variables = {
        "PYTHONPATH": os.pathsep.join(map(str, sources)),
        "PYTHONHASHSEED": "4321",
        "TZ": "Asia/Kathmandu",
        "LC_ALL": "C",
        "OPLET_COMPILED_OBJECTS": str(objects or work / "objects"),
    }
    chosen = [word for name in only for word in ("--only", name)]
    done = subprocess.run(
        [sys.executable, "-m", "scripts.packages", str(dist), *options, *chosen],
        cwd=clone, env=os.environ | variables, umask=0o077, capture_output=True, text=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return "" if done.returncode == 0 else (done.stdout + done.stderr).strip()[-2000:]


def differences(one: Path, other: Path) -> list[str]:
    """Return what differs between the distributions in two folders: a sentence for each file, with the members that do."""
    ours, theirs = _distributions(one), _distributions(other)
    found = [f"{path} is only in {one if path in ours else other}" for path in sorted(ours.keys() ^ theirs.keys())]
    for path in sorted(ours.keys() & theirs.keys()):
        if ours[path].read_bytes() != theirs[path].read_bytes():
            first, second = (_members(file) for file in (ours[path], theirs[path]))
            names = [name for name in sorted(first.keys() | second.keys()) if first.get(name) != second.get(name)]
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            found.append(f"{path} differs in {', '.join(names[:5]) or 'the order or the packing of its members'}{more}")
    return found


def _distributions(folder: Path) -> dict[str, Path]:
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.name.endswith((".whl", ".tar.gz"))}


def _members(file: Path) -> dict[str, object]:
    """Return all that an archive says of each of its members."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as wheel:
            return {info.filename: (info.CRC, info.date_time, info.external_attr) for info in wheel.infolist()}
    head = file.read_bytes()[:10]
    with gzip.open(file) as unpacked, tarfile.open(fileobj=unpacked) as sdist:
        found: dict[str, object] = {"the head of gzip": head}
        for info in sdist:
            data = sdist.extractfile(info) if info.isfile() else None
            digest = hashlib.sha256(data.read()).hexdigest() if data else ""
            found[info.name] = (
                digest,
                info.type,
                info.mode,
                info.mtime,
                info.uid,
                info.gid,
                info.uname,
                info.gname,
                info.linkname,
            )
        return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what differs; returns 1 if anything does, or if there is nothing to compare."""
    parser = argparse.ArgumentParser(prog="python -m scripts.reproduced", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("other", type=Path)
    given = parser.parse_args(arguments)
    if not _distributions(given.folder):
        print(f"{given.folder} has no distributions: python -m scripts.packages {given.folder} makes them.", file=sys.stderr)
        return 1
    found = differences(given.folder, given.other)
    print("\n".join(found) or f"{len(_distributions(given.folder))} files have the same bytes.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
