"""Run a Python command on an emulated processor, with oplet and its operators installed there.

usage: python -m scripts.emulated [--level LEVEL] [--cpu CPU] [--package FOLDER ...] [--wheel FILE ...] [--set NAME=VALUE ...] [-- ARGUMENT ...]

What follows -- are Python's arguments: `-m pytest core/tests/schema`, `-c "import oplet"`, a script; without any, it is Python's prompt. The core and builtin_ops
come from this clone, as wheels that are built for it; --package adds others by their folder's name, --wheel any wheel, such as one of compiled
kernels for that platform. --cpu takes another processor of QEMU's than the level's own. --without-emulator runs this Python on this machine,
with numpy and OpenBLAS kept to the level, which only x86-64 levels know.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from scripts import packages
from scripts.emulated.debian import Unavailable
from scripts.emulated.environment import environment, imported_from
from scripts.emulated.levels import LEVELS
from scripts.requirements import ROOT

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code, or 1 where there is no such environment."""
    parser = argparse.ArgumentParser(prog="python -m scripts.emulated", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--level", choices=LEVELS, default="aarch64-neon")
    parser.add_argument("--cpu", help="QEMU's name of another processor than the level's own")
    parser.add_argument("--package", action="append", default=[], help="a folder of plugins/ to install as well; may be repeated")
    parser.add_argument("--wheel", action="append", default=[], type=Path, help="a wheel to install as well; may be repeated")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="an environment variable; may be repeated"
    )
    parser.add_argument("--without-emulator", action="store_true", help="this Python, kept to the level by settings")
    parser.add_argument("arguments", nargs="*", help="Python's arguments")
    given = parser.parse_args(arguments)
    level = LEVELS[given.level]
    more = dict(text.split("=", 1) for text in given.set)
    if given.without_emulator and not level.by_settings:
        parser.error(f"{given.level} is only had by an emulator")
    with tempfile.TemporaryDirectory(prefix="oplet-emulated-") as folder:
        built = [packages.build(_folder(name), Path(folder)) for name in dict.fromkeys(["core", "builtin_ops", *given.package])]
        wheels = [file for files in built for file in files if file.suffix == ".whl"]
        with imported_from([*wheels, *given.wheel]) as paths:
            if given.without_emulator:
                variables = os.environ | level.settings() | {"PYTHONPATH": os.pathsep.join(map(str, paths))} | more
                return subprocess.run([sys.executable, *given.arguments], env=variables, check=False).returncode
            start = time.perf_counter()
            try:
                made = environment(level.architecture)
            except Unavailable as error:
                print(f"There is no {given.level} here: {error}.", file=sys.stderr)
                return 1
            if (taken := time.perf_counter() - start) > 1:
                print(f"made {made.folder} in {taken:.0f} s", file=sys.stderr)
            variables = made.variables(given.cpu or level.cpu, paths, more)
            return subprocess.run([str(made.python), *given.arguments], env=variables, check=False).returncode


def _folder(name: str) -> Path:
    return ROOT / name if name == "core" else ROOT / "plugins" / name


if __name__ == "__main__":
    sys.exit(main())
