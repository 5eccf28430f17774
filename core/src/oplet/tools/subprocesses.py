"""Child processes of Python that never import what lies in the current folder, or beside a model.

`python -c` and `python -m` look for every module in the current folder first, so that a `json.py` of a stranger would run in place
of the standard library's. Children begin in an empty folder of their own instead, and are told by Python's own switch, where it has
one (3.11), to put no folder before the standard library.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from subprocess import TimeoutExpired
from typing import Any

__all__ = ["TimeoutExpired", "python_process", "run_python"]

#: Python before 3.11 has no such switch; there the empty folder alone keeps strangers out.
_SAFE_PATH = ("-P",) if sys.version_info >= (3, 11) else ()


def run_python(
    arguments: Sequence[str],
    *,
    bare: bool = False,
    environment: Mapping[str, str] | None = None,
    folders: Sequence[str | os.PathLike[str]] = (),
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run this Python in a folder of its own until it ends.

    Args:
        arguments: of Python: `-c` and code, or a script, and what follows; paths must be absolute.
        bare: leave out what is installed and the user's PYTHONPATH: the standard library alone.
        environment: what to set beyond this process's own environment.
        folders: where modules are looked for before all others.
        options: of `subprocess.run`; neither `cwd` nor `env`.

    Raises:
        TimeoutExpired: it took longer than the option `timeout`.
    """
    with tempfile.TemporaryDirectory(prefix="oplet-child-") as folder:
        command, variables = _command(arguments, bare), _environment(environment or {}, folders, bare)
        return subprocess.run(command, **{"check": False, **options}, cwd=folder, env=variables)


@contextmanager
def python_process(
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    folders: Sequence[str | os.PathLike[str]] = (),
    **options: Any,
) -> Iterator[subprocess.Popen[Any]]:
    """The same for a process that runs meanwhile; at the end it is stopped if it still runs."""
    with tempfile.TemporaryDirectory(prefix="oplet-child-") as folder:
        variables = _environment(environment or {}, folders, False)
        process = subprocess.Popen(_command(arguments, False), **options, cwd=folder, env=variables)
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def _command(arguments: Sequence[str], bare: bool) -> list[str]:
    # Not -I: users' site-packages and PYTHONPATH are the user's own, and so is PYTHONHASHSEED.
    return [sys.executable, *_SAFE_PATH, *(("-s", "-S") if bare else ()), *arguments]


def _environment(more: Mapping[str, str], folders: Sequence[str | os.PathLike[str]], bare: bool) -> dict[str, str]:
    variables = {**os.environ, **more}
    given = (
        [] if bare else [place for place in variables.get("PYTHONPATH", "").split(os.pathsep) if os.path.normpath(place) != "."]
    )
    # An empty place would be the current folder, and a relative one something else in the child's.
    places = [os.path.abspath(place) for place in (*folders, *given)]
    variables.pop("PYTHONPATH", None)
    if places:
        variables["PYTHONPATH"] = os.pathsep.join(places)
    return variables
