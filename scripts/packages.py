"""Build the source distribution of every package, and its wheel from that.

usage: python -m scripts.packages FOLDER [--tag TAG] [--only PACKAGE]

FOLDER gets two folders: `plugins`, which is published first, and `core`. A package with C code gets one wheel for each platform that its
`hatch_build.py` lists, cross-compiled by ziglang (`pip install ziglang`); without ziglang, one wheel for this platform. With --tag the
exit code is 1 if the tag does not match the version, if CHANGELOG.md has no section for it, if fragments of the changelog wait, or if ziglang is
missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import runpy
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from scripts.requirements import ROOT

__all__ = ["build", "folders", "has_ziglang", "main", "targets", "version"]

#: For which platform a package with code in C is built; see its `hatch_build.py`.
_TARGET = "OPLET_NATIVE_TARGET"


def folders(root: Path = ROOT) -> list[Path]:
    """The packages' folders, the core first."""
    return [root / "core", *sorted(path.parent for path in root.glob("plugins/*/pyproject.toml"))]


def version(root: Path = ROOT) -> str:
    """The version of all packages."""
    source = (root / "core" / "src" / "oplet" / "__init__.py").read_text("utf-8")
    [found] = re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    return str(found)


def targets(folder: Path) -> list[str]:
    """The platforms that a package has wheels for, as ziglang calls them; none for a package without code in C."""
    hook = folder / "hatch_build.py"
    return list(runpy.run_path(str(hook))["TARGETS"]) if hook.exists() else []


def has_ziglang() -> bool:
    """Whether packages with code in C can be built for other platforms than this one."""
    return importlib.util.find_spec("ziglang") is not None


def build(folder: Path, target: Path, platforms: Sequence[str] = ()) -> list[Path]:
    """Build a package into the folder `target`: the source distribution, and wheels from that alone.

    Args:
        platforms: some of `targets`, for a wheel each; one for this platform unless given.
    """
    [sdist] = SdistBuilder(str(folder)).build(directory=str(target), versions=["standard"])
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(sdist) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(scratch, filter="data")
        else:
            archive.extractall(scratch)
        [alone] = Path(scratch).iterdir()
        wheels = []
        before = os.environ.get(_TARGET)
        try:
            for platform in platforms or [before or ""]:
                os.environ[_TARGET] = platform
                wheels += WheelBuilder(str(alone)).build(directory=str(target), versions=["standard"])
        finally:
            os.environ.pop(_TARGET)
            if before is not None:
                os.environ[_TARGET] = before
    return [Path(sdist), *map(Path, wheels)]


def main(arguments: list[str] | None = None) -> None:
    """Build all packages.

    Raises:
        SystemExit: the tag is wrong.
    """
    parser = argparse.ArgumentParser(prog="python -m scripts.packages", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag", default="")
    parser.add_argument("--only", default="", metavar="PACKAGE", help="the name of its folder")
    given = parser.parse_args(arguments)
    current = version()
    if given.tag and given.tag != f"v{current}":
        sys.exit(f"The tag is {given.tag}, and the version is {current}: tag v{current}, or change oplet.__version__ first.")
    if given.tag and not re.search(rf"^## {re.escape(current)} ", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE):
        sys.exit(f"CHANGELOG.md has no section of {current}: python -m towncrier build --version {current} makes it.")
    if given.tag and (waiting := sorted(path.name for path in ROOT.glob("changelog.d/*.md"))):
        sys.exit(
            f"changelog.d has fragments that no section tells yet, such as {waiting[0]}: python -m towncrier build makes it."
        )
    if given.tag and not has_ziglang():
        sys.exit("Wheels for other platforms are compiled by ziglang, which is not here: pip install ziglang.")
    chosen = [folder for folder in folders() if given.only in ("", folder.name)]
    if not chosen:
        sys.exit(f"There is no package in a folder {given.only}; there are {', '.join(folder.name for folder in folders())}.")
    for folder in chosen:
        platforms = targets(folder) if has_ziglang() else []
        for file in build(folder, given.folder / ("core" if folder.name == "core" else "plugins"), platforms):
            print(file)


if __name__ == "__main__":
    main()
