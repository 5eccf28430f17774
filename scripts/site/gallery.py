"""Make the pictures of docs/gallery.md: what commands print, as a terminal shows it, and what they draw.

usage: python -m scripts.site.gallery [FOLDER], with core, predictor, tools[graph], builtin_ops and example_delegate installed
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from oplet_tools.processes import run_python
from scripts.site.pages import ROOT

__all__ = ["PICTURES", "TERMINALS", "main"]

#: Width of the terminal, in characters.
_WIDTH = 100
#: The plugins that the pictures are made with, so that they do not depend on what else is installed.
_PLUGINS = "builtin_ops,example_delegate,atan_op"

#: Pictures of terminals: the command whose output is shown, by the name of the picture.
TERMINALS = {
    "doctor": "doctor examples/digits/digits_int8.tflite",
    "run": "run examples/digits/digits_int8.tflite -i examples/digits/pictures/7.png --top 3 --labels examples/digits/labels.txt",
    "partition": "partition examples/digits/digits_float32.tflite --delegate example",
    "compare": "compare examples/digits/digits_float32.tflite --delegate example",
}
#: Pictures of several commands, one after the other: each with the packages that are installed then. What pip prints is left out.
SESSIONS = {
    "pip-install": (
        ("oplet run examples/atan/atan.tflite", ("oplet-builtin-ops",)),
        ("pip install ./plugins/atan_op", ()),
        ("oplet run examples/atan/atan.tflite", ("oplet-builtin-ops", "oplet-atan-op")),
    ),
}
#: Pictures that a command draws: its arguments, where "{}" is the file.
PICTURES = {"graph": "partition examples/digits/digits_float32.tflite --delegate example --svg {}"}


def main(folder: Path) -> None:
    """Make all pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, command in TERMINALS.items():
        (folder / f"{name}.svg").write_text(_terminal((f"oplet {command}", _output(command))), "utf-8")
    for name, steps in SESSIONS.items():
        shown = [(command, _session(command, packages) if packages else "") for command, packages in steps]
        (folder / f"{name}.svg").write_text(_terminal(*shown), "utf-8")
    for name, command in PICTURES.items():
        _output(command.format(shlex.quote(str((folder / f"{name}.svg").absolute()))))


#: Makes oplet one that was installed from this clone, with certain packages.
_INSTALLED = """
import json, oplet.installed
found = oplet.installed.entry_points
packages = {packages!r}
oplet.installed.entry_points = lambda group: [entry for entry in found(group) if group != "oplet" or entry.dist.name in packages]
from oplet.plugins import install_commands
install_commands._direct_url = lambda: json.dumps({{"url": {url!r}, "dir_info": {{}}}})
install_commands._installed = lambda package: package == "oplet-core" or package in packages
"""
_ENVIRONMENT = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": str(_WIDTH), "PYTHONUTF8": "1"}
_MAIN = f"import os; os.chdir({str(ROOT)!r}); from oplet_tools.cli.main import main; main()"


def _session(command: str, packages: Sequence[str]) -> str:
    """What a command prints where these packages are installed from the clone, which is the folder of the terminal."""
    code = _INSTALLED.format(packages=packages, url=(ROOT / "core").as_uri()) + _MAIN
    done = run_python(
        ["-c", code, *shlex.split(command)[1:]],
        environment=_ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if "Traceback" in done.stdout:
        raise SystemExit(f"{command} failed:\n{done.stdout}")
    # Standard error is no terminal here, which would wrap its lines between words.
    return "\n".join(
        textwrap.fill(line, _WIDTH, break_long_words=False, break_on_hyphens=False) if line.startswith("oplet: ") else line
        for line in str(done.stdout).replace(str(ROOT), ".").splitlines()
    )


def _output(command: str) -> str:
    environment = {"OPLET_PLUGINS": _PLUGINS, **_ENVIRONMENT}
    done = run_python(["-c", _MAIN, *shlex.split(command)], environment=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"oplet {command} failed:\n{done.stderr}")
    return str(done.stdout)


def _terminal(*steps: tuple[str, str]) -> str:
    """A picture of commands and what they print."""
    console = Console(record=True, width=_WIDTH, file=StringIO(), force_terminal=True)
    for number, (command, output) in enumerate(steps):
        if number and steps[number - 1][1]:
            console.print()
        console.print(Text("$ " + command, "bold"))
        if output:
            console.print(Text.from_ansi(output.rstrip()))
    svg = console.export_svg(title="oplet", theme=MONOKAI, unique_id="oplet")
    # Without its web fonts: nothing is loaded from elsewhere.
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code, monospace", "monospace")


if __name__ == "__main__":
    os.environ.setdefault("PYTHONUTF8", "1")
    parser = argparse.ArgumentParser(prog="python -m scripts.site.gallery", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs" / "gallery")
    main(parser.parse_args(sys.argv[1:]).folder)
