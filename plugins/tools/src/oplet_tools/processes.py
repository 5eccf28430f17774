"""Python subprocesses that never import modules from the current folder, or from the folder of a model.

`python -c` and `python -m` look for modules in the current folder first, so that a foreign `json.py` would run in place of the standard
library's. These processes start in an empty temporary folder, and with Python's switch -P (3.11 and later), which puts no folder before the
standard library.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from subprocess import PIPE, TimeoutExpired
from typing import Any

__all__ = ["PIPE", "TimeoutExpired", "can_start_python", "in_background", "python_process", "run_python"]

#: Python before 3.11 has no such switch; there the empty folder alone protects.
_SAFE_PATH = ("-P",) if sys.version_info >= (3, 11) else ()


def can_start_python() -> bool:
    """Return whether this process can start a Python interpreter; a frozen or embedded program would start itself again."""
    name = os.path.basename(sys.executable or "").lower()
    return name.startswith(("python", "pypy")) and not getattr(sys, "frozen", False)


def in_background() -> dict[str, Any]:
    """Return options for `python_process` that hide the process from the user: no window, and no Ctrl-C from this process's terminal."""
    if sys.platform == "win32":
        return {"creationflags": subprocess.CREATE_NO_WINDOW}
    return {"start_new_session": True}


def run_python(
    arguments: Sequence[str],
    *,
    bare: bool = False,
    environment: Mapping[str, str] | None = None,
    folders: Sequence[str | os.PathLike[str]] = (),
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run this Python in an empty folder, and wait until it ends.

    Args:
        arguments: Python's arguments: `-c` and code, or a script, and the script's arguments; paths must be absolute.
        bare: give the process the standard library only, without site-packages and the user's PYTHONPATH.
        environment: environment variables to set in addition to those of this process.
        folders: folders that are searched first for modules.
        options: options of `subprocess.run`, except `cwd` and `env`. Text pipes are UTF-8, whatever the system's code page.

    Raises:
        TimeoutExpired: the process took longer than the option `timeout`.
    """
    with tempfile.TemporaryDirectory(prefix="oplet-child-") as folder:
        command, variables = _command(arguments, bare), _environment({} if environment is None else environment, folders, bare)
        return subprocess.run(command, **{"check": False, **_in_utf8(options, variables)}, cwd=folder, env=variables)


@contextmanager
def python_process(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folders: Sequence[str | os.PathLike[str]] = (),
    **options: Any,
) -> Iterator[subprocess.Popen[Any]]:
    """Run this Python in an empty folder while the `with` block runs; at its end the process is killed if it still runs.

    The arguments are those of `run_python`; `options` are those of `subprocess.Popen`.
    """
    with tempfile.TemporaryDirectory(prefix="oplet-child-") as folder:
        variables = _environment({} if environment is None else environment, folders, False)
        process = subprocess.Popen(_command(arguments, False), **_in_utf8(options, variables), cwd=folder, env=variables)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def _in_utf8(options: dict[str, Any], variables: dict[str, str]) -> dict[str, Any]:
    """Return the options with the encoding of text, if there is any, which the child is told by its environment variables."""
    if not options.get("text"):
        return options
    variables["PYTHONIOENCODING"] = "utf-8:backslashreplace"
    return {"encoding": "utf-8", "errors": "replace", **options}


def _command(arguments: Sequence[str], bare: bool) -> list[str]:
    # Not -I: users' site-packages and PYTHONPATH are the user's own, and so is PYTHONHASHSEED.
    return [sys.executable, *_SAFE_PATH, *(("-s", "-S") if bare else ()), *arguments]


def _environment(more: Mapping[str, str], folders: Sequence[str | os.PathLike[str]], bare: bool) -> dict[str, str]:
    variables = {**os.environ, **more}
    given = (
        [] if bare else [place for place in variables.get("PYTHONPATH", "").split(os.pathsep) if os.path.normpath(place) != "."]
    )
    # An empty entry would mean the current folder; relative entries would mean other folders in the child.
    places = [os.path.abspath(place) for place in (*folders, *given)]
    variables.pop("PYTHONPATH", None)
    if places:
        variables["PYTHONPATH"] = os.pathsep.join(places)
    return variables
