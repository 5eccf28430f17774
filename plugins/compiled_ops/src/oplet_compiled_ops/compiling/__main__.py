"""Builds libraries of kernels: python -m oplet_compiled_ops.compiling, for this processor, into the package in this checkout."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from oplet_compiled_ops.compiling.building import build
from oplet_compiled_ops.compiling.linking import link_probe
from oplet_compiled_ops.compiling.platforms import PLATFORMS, here
from oplet_compiled_ops.library.levels import LEVELS
from oplet_compiled_ops.library.opening import folder, levels_here

__all__ = ["main"]


def main(arguments: Sequence[str]) -> int:
    """Build the libraries of kernels that the command line asks for; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m oplet_compiled_ops.compiling", description=__doc__)
    parser.add_argument(
        "--platform", choices=sorted(PLATFORMS), help="the platform; by default this one, into the package itself"
    )
    parser.add_argument("--level", action="append", choices=list(LEVELS), help="a level; by default this processor's")
    parser.add_argument("--all-levels", action="store_true", help="all levels of the platform")
    parser.add_argument("--objects", type=Path, help="where object files are kept for the next build; by default in build/")
    parser.add_argument("--output", type=Path, help="the folder of the libraries; by default the package's own")
    chosen = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    platform = PLATFORMS[chosen.platform] if chosen.platform else here()
    if platform is None:
        parser.error("nothing is built for this platform; name another one by --platform")
    if platform != here() and not (chosen.output and (chosen.level or chosen.all_levels)):  # or this one would lose its libraries
        parser.error("--output, and --level or --all-levels, are needed for another platform")
    objects = chosen.objects or Path(__file__).resolve().parents[3] / "build" / "objects"
    made = chosen.output or Path(folder())
    if chosen.all_levels:
        levels = platform.levels
    else:
        if not chosen.level:
            link_probe(platform, Path(folder()) / f"probe{platform.suffix}")  # it tells this processor's level
        levels = [LEVELS[name] for name in chosen.level or levels_here()[-1:]]
    build(platform, levels, objects, made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
