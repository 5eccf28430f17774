"""Where oplet runs in this room: on each level of instructions, under an emulator, or kept to it on this machine."""

from __future__ import annotations

import configparser
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from glob import glob
from pathlib import Path
from typing import NamedTuple

import pytest
from scripts.emulated.debian import Unavailable
from scripts.emulated.environment import environment
from scripts.emulated.levels import LEVELS, Level

__all__ = ["EMULATED", "HERE", "WAYS", "Way", "extra_wheels", "start_here"]


class Way(NamedTuple):
    """A level and how it is had.

    Attributes:
        name: the level's name.
        emulated: under the emulator; else by settings that keep this machine's libraries to it.
    """

    name: str
    emulated: bool

    def __str__(self) -> str:
        return self.name if self.emulated else f"{self.name}-by-settings"

    @property
    def level(self) -> Level:
        """What the level is."""
        return LEVELS[self.name]

    def start(self, paths: Sequence[Path]) -> tuple[list[str], dict[str, str]]:
        """The command that starts a Python there and its variables; the test is skipped, with the reason, where it can't be had.

        Args:
            paths: folders with what is installed in it.
        """
        if not self.emulated:
            if platform.machine() not in ("x86_64", "AMD64"):
                pytest.skip(f"this machine's libraries have no level {self.name}")
            return start_here(paths, self.level.settings())
        try:
            made = environment(self.level.architecture)
        except Unavailable as error:
            pytest.skip(f"there is no {self.name} here: {error}")
        return [str(made.python)], made.variables(self.level.cpu, paths)


EMULATED = [Way(name, True) for name in LEVELS]
HERE = [Way(name, False) for name, level in LEVELS.items() if level.by_settings]
WAYS = EMULATED + HERE


def start_here(paths: Sequence[Path], more: Mapping[str, str] | None = None) -> tuple[list[str], dict[str, str]]:
    """The command that starts this Python on this machine, with nothing of oplet's but what these folders have, and its variables."""
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "OPLET_PLUGINS": ",".join(_plugins(paths))}
    return [sys.executable], variables | dict(more or {})


def _plugins(paths: Iterable[Path]) -> list[str]:
    """The names of the plugins in folders of unpacked wheels."""
    found: list[str] = []
    for path in paths:
        for file in path.glob("*.dist-info/entry_points.txt"):
            entries = configparser.ConfigParser(delimiters="=")
            entries.read_string(file.read_text("utf-8"))
            found += entries["oplet"] if entries.has_section("oplet") else []
    return found


def extra_wheels(architecture: str) -> list[Path]:
    """Wheels that EMULATED_WHEELS names, as patterns of paths: those of this architecture, and those of any."""
    named = [
        Path(file)
        for pattern in os.environ.get("EMULATED_WHEELS", "").split(os.pathsep)
        if pattern
        for file in sorted(glob(pattern))
    ]
    return [wheel for wheel in named if wheel.stem.endswith((f"_{architecture}", "-any"))]
