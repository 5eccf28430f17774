"""Pages that are followed to the letter: their blocks as one shell script, run in a folder."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

from packaging.requirements import Requirement
from scripts.packages import folders
from scripts.requirements import tomllib
from tests.places import name_of
from tests.wheelhouse import needed

__all__ = ["blocks", "follow", "with_wheels"]

#: Debian keeps what `venv` needs to install pip in a package of its own; without it, this environment's pip serves.
PRELUDE = f"""
set -eu
python3() {{
    "{sys.executable}" "$@" && return
    "{sys.executable}" -m venv --clear --without-pip "$3"
    "{sys.executable}" -m pip --python "$3/bin/python" install --quiet pip
}}
"""


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """The page's blocks, in order: ("sh", commands), or (a file's name, what to write into it)."""
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
        if language == "sh":
            yield "sh", text
        else:
            first, _, rest = text.partition("\n")
            yield first.removeprefix("# "), rest


def _as_script(page: Path, replaced: Mapping[str, str]) -> str:
    """The page as one shell script, which stops at the first thing that fails."""
    parts = [PRELUDE]
    for kind, text in blocks(page):
        for old, new in replaced.items() if kind == "sh" else ():
            text = text.replace(old, new)
        parts.append(text if kind == "sh" else f"cat > {kind} <<'END_OF_FILE'\n{text}END_OF_FILE\n")
    return "\n".join(parts)


def with_wheels(page: Path) -> dict[str, str]:
    """What to replace so that packages of this repository that the page installs by name are installed from the run's wheels."""
    projects = {name_of(folder): folder for folder in folders()}
    found = {}
    lines = re.findall(r'pip install((?: "?oplet[\w-]*(?:\[\w+\])?"?)+)$', page.read_text("utf-8"), re.MULTILINE)
    for line in sorted({*lines}, key=len, reverse=True):  # one may be the beginning of another
        asked = [Requirement(word) for word in shlex.split(line)]
        for requirement in list(asked):
            extras = tomllib.loads((projects[requirement.name] / "pyproject.toml").read_text("utf-8"))["project"]
            asked += [Requirement(word) for extra in requirement.extras for word in extras["optional-dependencies"][extra]]
        wheels = needed(*(projects[requirement.name].name for requirement in asked))
        found[line] = "".join(f' "{wheel}"' for wheel in wheels)
    return found


def follow(page: Path, folder: Path, replaced: Mapping[str, str] = MappingProxyType({})) -> str:
    """Follow a page in a folder; what the commands said.

    Args:
        page: the page.
        folder: the folder.
        replaced: texts of commands, and what to run in their place.
    """
    hidden = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")
    environment = {key: value for key, value in os.environ.items() if key not in hidden and not key.startswith("OPLET_")}
    environment |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_QUIET": "1"}
    done = subprocess.run(
        ["bash", "-c", _as_script(page, replaced)], cwd=folder, env=environment, capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout + done.stderr
