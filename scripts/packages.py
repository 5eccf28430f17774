"""Build the source distribution of every package, and its wheel from that.

usage: python -m scripts.packages FOLDER [--tag TAG] [--only PACKAGE ...] [--here [--platform PLATFORM ...]]

FOLDER gets two folders: `plugins`, which is published first, and `core`, which has `oplet` itself too. A package with machine code gets one wheel for each platform that
its `hatch_build.py` lists, cross-compiled by ziglang and, for kernels, numba (`pip install ziglang numba`), which takes an hour on two
cores; without ziglang, or with --here, one wheel for this platform, and those for each --platform, such as linux-aarch64 or musl-x86_64. With --tag the exit code is 1 if the tag does not match the version, if CHANGELOG.md has no section for it, if fragments of the changelog wait, or if ziglang is
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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from scripts.requirements import ROOT

__all__ = ["build", "folders", "has_ziglang", "here_and", "main", "objects", "target_for", "targets", "version"]

#: For which platform packages with machine code are built; see their `hatch_build.py`.
_TARGETS = {"native_ops": "OPLET_NATIVE_TARGET", "compiled_ops": "OPLET_COMPILED_PLATFORM"}
#: Where kernels' object files are kept for the next build, which may be one of a copy of the sources elsewhere.
_OBJECTS = "OPLET_COMPILED_OBJECTS"


def folders(root: Path = ROOT) -> list[Path]:
    """The packages' folders: the core first, and last `metapackage`, which is `oplet` on an index and asks for others."""
    return [root / "core", *sorted(path.parent for path in root.glob("plugins/*/pyproject.toml")), root / "metapackage"]


def version(root: Path = ROOT) -> str:
    """The version of all packages."""
    source = (root / "core" / "src" / "oplet" / "__init__.py").read_text("utf-8")
    [found] = re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    return str(found)


def targets(folder: Path) -> list[str]:
    """The platforms that a package has wheels for, as ziglang calls them; none for a package without machine code."""
    hook = folder / "hatch_build.py"
    return list(runpy.run_path(str(hook)).get("TARGETS", ())) if hook.exists() else []


def target_for(folder: Path, platform: str) -> list[str]:
    """The one of a package's `targets` that is for a platform such as "linux-aarch64" or "musl-x86_64"; none if it has none for it."""
    system, _, machine = platform.partition("-")
    named = f"{machine}-linux-{'musl' if system == 'musl' else 'gnu'}"
    return [target for target in targets(folder) if target == platform or target.partition(".")[0] == named]


def here_and(folder: Path, platforms: Sequence[str]) -> list[str]:
    """What `build` takes for a wheel for this platform, and for some others where the package has machine code."""
    return ["", *(target for platform in platforms for target in target_for(folder, platform))]


def objects(folder: Path = ROOT / "plugins" / "compiled_ops") -> Path:
    """The folder of the object files that a build of a package uses and adds to."""
    return Path(os.environ.get(_OBJECTS) or folder / "build" / "objects")


def has_ziglang() -> bool:
    """Whether packages with machine code can be built for other platforms than this one."""
    return importlib.util.find_spec("ziglang") is not None


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables, and set them back."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def build(folder: Path, target: Path, platforms: Sequence[str] = ()) -> list[Path]:
    """Build a package into the folder `target`: the source distribution, and wheels from that alone.

    Args:
        platforms: some of `targets`, for a wheel each, "" for this platform; that alone unless given.
    """
    [sdist] = SdistBuilder(str(folder)).build(directory=str(target), versions=["standard"])
    with tempfile.TemporaryDirectory() as scratch, tarfile.open(sdist) as archive:
        if hasattr(tarfile, "data_filter"):
            archive.extractall(scratch, filter="data")
        else:
            archive.extractall(scratch)
        [alone] = Path(scratch).iterdir()
        wheels = []
        variable = _TARGETS.get(folder.name, "")
        with _environment({_OBJECTS: str(objects(folder))}):
            for platform in platforms or [""]:
                with _environment({variable: platform} if variable and platform else {}):
                    wheels += WheelBuilder(str(alone)).build(directory=str(target), versions=["standard"])
    return [Path(sdist), *map(Path, wheels)]


def main(arguments: list[str] | None = None) -> None:
    """Build all packages.

    Raises:
        SystemExit: the tag is wrong.
    """
    parser = argparse.ArgumentParser(prog="python -m scripts.packages", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag", default="")
    parser.add_argument("--only", action="append", metavar="PACKAGE", help="the name of its folder; may be repeated")
    parser.add_argument("--here", action="store_true", help="wheels for this platform, and those that --platform names")
    parser.add_argument("--platform", action="append", default=[], help="with --here: another one; may be repeated")
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
    names = [folder.name for folder in folders()]
    if missing := [name for name in given.only or () if name not in names]:
        sys.exit(f"There is no package in a folder {missing[0]}; there are {', '.join(names)}.")
    chosen = [folder for folder in folders() if not given.only or folder.name in given.only]
    for folder in chosen:
        platforms = targets(folder) if has_ziglang() and not given.here else here_and(folder, given.platform)
        for file in build(folder, given.folder / ("plugins" if folder.parent.name == "plugins" else "core"), platforms):
            print(file)


if __name__ == "__main__":
    main()
