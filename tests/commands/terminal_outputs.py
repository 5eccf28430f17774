"""What commands print in terminals of several widths, kept as files in tests/commands/terminal.

usage: python -m tests.commands.terminal_outputs, to write the files anew
"""

from __future__ import annotations

import json
import re
import shlex
from importlib.metadata import version
from pathlib import Path

from tests.places import ROOT

from oplet.tools.subprocesses import run_python

__all__ = ["COMMANDS", "FOLDER", "MODES", "printed", "versions", "wanted"]

FOLDER = Path(__file__).parent / "terminal"

#: The variables of each kind of terminal; a pipe has none.
MODES = {
    "80": {"FORCE_COLOR": "1", "COLUMNS": "80"},
    "120": {"FORCE_COLOR": "1", "COLUMNS": "120"},
    "pipe": {},
    "no-color": {"TTY_COMPATIBLE": "1", "NO_COLOR": "1", "COLUMNS": "80"},
}

_INT8, _FLOAT = "examples/digits/digits_int8.tflite", "examples/digits/digits_float32.tflite"

#: Commands whose output is the same each time.
COMMANDS = {
    "help": "--help",
    "inspect": f"inspect {_INT8}",
    "inspect-all": f"inspect {_INT8} --nodes --tensors",
    "inspect-op": f"inspect {_INT8} --op CONV_2D",
    "inspect-wide": f"inspect {_INT8} --tensors --wide",
    "doctor": f"doctor {_INT8}",
    "doctor-custom": "doctor examples/atan/atan.tflite",
    "versions": f"versions {_INT8} --nodes",
    "versions-against": f"versions {_INT8} --against 1.10.0",
    "plugins": "plugins",
    "partition": f"partition {_FLOAT} --delegate example",
    "compare": f"compare {_FLOAT} --delegate example --layers",
    "select": f"select {_INT8} examples/atan/atan.tflite",
    "run": f"run {_INT8} -i examples/digits/pictures/7.png --top 3 --labels examples/digits/labels.txt",
    "error": "run examples/digits/nothing.tflite",
}
COMMANDS |= {
    f"{name}-help": f"{name} --help"
    for name in (
        "run",
        "compare",
        "partition",
        "benchmark",
        "tune",
        "inspect",
        "versions",
        "rewrite",
        "select",
        "build",
        "doctor",
        "plugins",
    )
}


#: Runs all commands in one process, and prints what each of them printed, as JSON.
_PROGRAM = """
import contextlib, io, json, os, sys
variables, folder, commands = json.loads(sys.argv[1])
for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "OPLET_PREFER"):
    os.environ.pop(name, None)
os.environ.update(variables)
os.chdir(folder)
from oplet.cli.main import main
found = {}
for name, arguments in commands.items():
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(arguments)
        except SystemExit as exit:
            if isinstance(exit.code, str):
                err.write(exit.code + chr(10))
    found[name] = [out.getvalue(), err.getvalue()]
print(json.dumps(found))
"""


def printed(mode: str) -> dict[str, str]:
    """What each command prints on both streams, with the plugins that the files are of."""
    plugins = {"OPLET_PLUGINS": "builtin_ops,example_delegate,atan_op", "TERM": "xterm-256color", "PYTHONUTF8": "1"}
    commands = {name: shlex.split(command) for name, command in COMMANDS.items()}
    job = json.dumps([{**plugins, **MODES[mode]}, str(ROOT), commands])
    done = run_python(["-c", _PROGRAM, job], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return {name: _kept(*streams) for name, streams in json.loads(done.stdout.splitlines()[-1]).items()}


def _kept(out: str, err: str) -> str:
    # Plugins that are installed besides are listed as blocked.
    out = "".join(line for line in out.splitlines(True) if "blocked" not in line and "OPLET_PLUGINS" not in line)
    # Progress is drawn over and over.
    err = re.sub(r"\x1b\[\?25.*\x1b\[\?25h", "", err, flags=re.DOTALL)
    return _rounded(out) + (f"--- standard error\n{err}" if err.strip() else "")


def _rounded(text: str) -> str:
    """The text with small errors, which depend on the processor's order of summation, as "#", as wide as they were."""
    return re.sub(r"\d(?:\.\d+)?e-\d\d|\b\d+ of \d{2,}\b", lambda found: "#" * len(found[0]), text)


def wanted(name: str, mode: str) -> Path:
    """The file with what a command prints."""
    return FOLDER / f"{name}.{mode}.txt"


def versions() -> str:
    """The versions of what lays tables and help out."""
    return "".join(f"{name} {version(name)}\n" for name in ("rich", "typer"))


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(exist_ok=True)
    for mode in MODES:
        for name, text in printed(mode).items():
            wanted(name, mode).write_text(text, "utf-8")
    (FOLDER / "versions.txt").write_text(versions())


if __name__ == "__main__":
    main()
