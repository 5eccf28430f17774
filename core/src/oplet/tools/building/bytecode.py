"""Compiled modules for an archive, from which Python cannot keep what it compiles.

A `.pyc` beside its source serves the Python version that made it; every other version takes the source.
"""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from collections.abc import Mapping

from oplet.tools.building.error import BuildError

__all__ = ["compiled"]

# In a process of its own with the hash seed fixed, as the order of a constant set depends on it. The header says that nobody is
# to compare the source (PEP 552).
_COMPILER = """
import importlib.util, marshal, sys
header = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little")
found = {}
for path, source in marshal.load(sys.stdin.buffer):
    code = compile(source, path, "exec", dont_inherit=True, optimize=0)
    found[path] = header + importlib.util.source_hash(source) + marshal.dumps(code)
sys.stdout.buffer.write(marshal.dumps(sorted(found.items())))
"""


def compiled(sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """The compiled modules by path ("oplet/errors.pyc"); the same sources and Python give the same bytes.

    Raises:
        BuildError: a module does not compile.
    """
    wanted = sorted((path, content) for path, content in sources.items() if path.endswith(".py"))
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, "-s", "-S", "-c", _COMPILER],
        input=marshal.dumps(wanted),
        capture_output=True,
        env=environment,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise BuildError(f"The build does not compile: {lines[-1] if lines else 'no reason given'}.")
    return {f"{path}c": code for path, code in marshal.loads(done.stdout)}
