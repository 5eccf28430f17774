"""Build the source distribution of every package, and its wheel from that.

usage: python -m scripts.packages FOLDER [--tag TAG]

FOLDER gets two folders: `plugins`, which is published first, and `core`. With --tag the exit code is 1 if the tag does not match the
version, or if CHANGELOG.md has no section for it.
"""

from __future__ import annotations

import argparse
import re
import sys
import tarfile
import tempfile
from pathlib import Path

from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from scripts.requirements import ROOT

__all__ = ["build", "folders", "main", "version"]


def folders(root: Path = ROOT) -> list[Path]:
    """The packages' folders, the core first."""
    return [root / "core", *sorted(path.parent for path in root.glob("plugins/*/pyproject.toml"))]


def version(root: Path = ROOT) -> str:
    """The version of all packages."""
    source = (root / "core" / "src" / "oplet" / "__init__.py").read_text("utf-8")
    [found] = re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    return str(found)


def build(folder: Path, target: Path) -> list[Path]:
    """Build a package into the folder `target`: the source distribution, and a wheel from that alone."""
    [sdist] = SdistBuilder(str(folder)).build(directory=str(target), versions=["standard"])
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(sdist) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(scratch, filter="data")
        else:
            archive.extractall(scratch)
        [alone] = Path(scratch).iterdir()
        [wheel] = WheelBuilder(str(alone)).build(directory=str(target), versions=["standard"])
    return [Path(sdist), Path(wheel)]


def main(arguments: list[str] | None = None) -> None:
    """Build all packages.

    Raises:
        SystemExit: the tag is wrong.
    """
    parser = argparse.ArgumentParser(prog="python -m scripts.packages", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag", default="")
    given = parser.parse_args(arguments)
    current = version()
    if given.tag and given.tag != f"v{current}":
        sys.exit(f"The tag is {given.tag}, and the version is {current}: tag v{current}, or change oplet.__version__ first.")
    if given.tag and not re.search(rf"^## {re.escape(current)} ", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE):
        sys.exit(f"CHANGELOG.md has no section of {current}: give what stands under Unreleased its version and date.")
    for folder in folders():
        for file in build(folder, given.folder / ("core" if folder.name == "core" else "plugins")):
            print(file)


if __name__ == "__main__":
    main()
