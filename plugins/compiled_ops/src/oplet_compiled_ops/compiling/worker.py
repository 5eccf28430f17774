"""The compile process: one request per line on stdin, one answer per line on stdout, both JSON.

A request names a kernel, the module of its function, and, for one of a family (kernels made by a function from constants), that
function and the constants. The answer is the kernel's machine code, or the reason why it could not be compiled. The process ends
when its input ends.
"""

from __future__ import annotations

import base64
import importlib
import json
import os
import sys
from contextlib import suppress
from typing import Any

from oplet.errors import text_of
from oplet_compiled_ops.compiling.kernels import CompileError, Kernel, known
from oplet_compiled_ops.compiling.machine_code.storage import alone, fetch, package_folder

__all__ = ["main"]

#: How far it gives way to processes that somebody waits for.
_NICENESS = 5


def main() -> None:
    """Read requests from stdin and write an answer to each, until stdin ends."""
    # The empty folder that it was started in goes with the process that asked; numba compiles arrays only where there is a current folder.
    empty = ""
    with suppress(OSError):  # it may be gone already
        empty = os.getcwd()
    sys.path[:] = filter(None, sys.path)
    os.chdir(package_folder())
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever libraries print is no answer
    with suppress(AttributeError, OSError):
        os.nice(_NICENESS)
    for line in sys.stdin.buffer:
        answer = _answer(json.loads(line))
        with suppress(OSError, ValueError):  # the process that asked is gone; the machine code is on disk for others
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()
    with suppress(OSError):  # if that process was killed
        os.rmdir(empty)


def _answer(request: dict[str, Any]) -> dict[str, str]:
    try:
        kernel = _found(request)
        with alone(kernel.name):  # the compilers of other processes are often asked for the same at the same time
            code = fetch(kernel.name) or kernel.made()
        return {"code": base64.b64encode(code).decode()}
    except CompileError as error:
        return {"error": str(error)}
    except Exception as error:  # every request has an answer
        return {"error": text_of(error, named=True)[:400]}


def _found(request: dict[str, Any]) -> Kernel:
    """Find or build the kernel that a request names.

    Raises:
        CompileError: the named module has no such kernel, e.g. as the sources have changed.
    """
    importlib.import_module(request["module"])
    if request["family"] is not None:
        module, name, constants = request["family"]
        getattr(importlib.import_module(module), name)(*constants)
    for kernel in list(known):
        if kernel.function.__module__ == request["module"] and kernel.name == request["name"]:
            return kernel
    raise CompileError(f"the process that compiles does not find {request['name']} in {request['module']}")
