"""Fetch the JavaScript libraries that `oplet explore` writes into its pages: pinned packages of npm, checked by their hashes.

usage: python -m scripts.vendored [--check], with npm; --check compares the files here with the hashes, and needs none
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

__all__ = ["FOLDER", "LIBRARIES", "Library", "hashes", "main"]

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "plugins" / "tools" / "src" / "oplet_tools" / "describing" / "exploring" / "vendored"


class Library(NamedTuple):
    """A library.

    Attributes:
        name: the stem of its files here.
        package: its package and version on npm.
        licence: the SPDX name of its licence.
        archive: the SHA-512 of the package, as npm tells it.
        files: the files of the package that are taken, by their names here, each with its SHA-256.
    """

    name: str
    package: str
    licence: str
    archive: str
    files: dict[str, tuple[str, str]]


LIBRARIES = (
    Library(
        "cytoscape",
        "cytoscape@3.34.4",
        "MIT",
        "sha512-msY99tMY8iWTg+sIPGfSqDcPNOt4xcj+v/K/7qUFaCUxxlqnMkUYLBjRUzn9W5CU/R2hrmtJa5+UtovrEM2ctg==",
        {
            "cytoscape.min.js": ("dist/cytoscape.min.js", "081591ab735b2b6a3b31a3c60f8f3a3e2fee8c92939e0c7820ad1208571b6cd8"),
            "cytoscape.LICENSE.txt": ("LICENSE", "f7ebdc2a36c48b5413fe0b60f7a16b6163ff171d5bb35f27dfda432962dd4f49"),
        },
    ),
    Library(
        "dagre",
        "@dagrejs/dagre@3.1.3",
        "MIT",
        "sha512-X4aUTwOReZvthaZWOVHqlJ52/ZdhZFEM4+Lh/uR4XooUSLE6p71bcy7MPGzYnNUcNh+nj+i/qJQpCMIdQnSmrg==",
        {
            "dagre.min.js": ("dist/dagre.min.js", "7f751ea7f1695a56c55845e4415b8ce7d65620b10a15bf1ea806f70af10f97f2"),
            "dagre.LICENSE.txt": ("LICENSE", "6a349742a6cb219d5a2fc8d0844f6d89a6efc62e20c664450d884fc7ff2d6015"),
        },
    ),
)


def hashes(folder: Path = FOLDER) -> dict[str, str]:
    """The SHA-256 of each file in the folder, by its name."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def main(*, check: bool) -> int:
    """Fetch the libraries, or check them; returns the exit status."""
    if not check:
        FOLDER.mkdir(exist_ok=True)
        for library in LIBRARIES:
            _fetch(library)
    wanted = {name: digest for library in LIBRARIES for name, (_, digest) in library.files.items()}
    found = hashes()
    wrong = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    if wrong:
        print(f"{', '.join(wrong)} in {FOLDER} differ from what {Path(__file__).name} names.", file=sys.stderr)
    return int(bool(wrong))


def _fetch(library: Library) -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "pack", "--silent", library.package], cwd=folder, check=True)
        [archive] = Path(folder).glob("*.tgz")
        digest = "sha512-" + base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if digest != library.archive:
            raise SystemExit(f"{library.package} is not the package that was looked at: its hash is {digest}.")
        with tarfile.open(archive) as tar:
            for name, (path, _) in library.files.items():
                member = tar.extractfile(f"package/{path}")
                assert member is not None
                # Source maps are not taken along, and a browser would look for them.
                lines = [line for line in member.read().decode().splitlines() if not line.startswith("//# sourceMappingURL=")]
                (FOLDER / name).write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m scripts.vendored", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only check the files that are here")
    raise SystemExit(main(check=parser.parse_args().check))
