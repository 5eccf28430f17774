"""Compiled modules for a .pyz archive: Python cannot cache compiled modules for an archive itself.

They are kept in one file, because the standard library's zipimport unpacks each compiled module twice. The file is used by the Python version
that made it; other versions use the sources.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping

from oplet_build.building.error import BuildError
from oplet_tools.processes import run_python

__all__ = ["LOADER", "compiled"]

#: The module of a program that activates the compiled modules.
LOADER = "_oplet_compiled"

# Source of that module. It imports only what Python has imported at its start.
_LOADER = """\
import marshal
import sys


class Compiled:
    def __init__(self, archive, table):
        self.archive, self.table = archive, table

    def find_spec(self, name, path=None, target=None):
        if name not in self.table:
            return None
        file, package, _ = self.table[name]
        spec = type(__spec__)(name, self, origin=self.archive.archive + file, is_package=package)
        spec.has_location = True
        if package:
            spec.submodule_search_locations = [spec.origin.rpartition(file[0])[0]]
        return spec

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(marshal.loads(self.table[module.__spec__.name][2]), module.__dict__)

    def get_data(self, path):
        return self.archive.get_data(path)

    def get_source(self, name):
        return self.archive.get_source(name)

    def is_package(self, name):
        return self.archive.is_package(name)

    def get_resource_reader(self, name):
        return self.archive.get_resource_reader(name)


def install():
    try:
        from _frozen_importlib_external import MAGIC_NUMBER, path_sep

        data = __loader__.get_data(f"modules-{int.from_bytes(MAGIC_NUMBER[:2], 'little')}.bin")
    except (ImportError, OSError):
        return
    table = {}
    for name, (file, package, code) in marshal.loads(data).items():
        table[name] = path_sep + file.replace("/", path_sep), package, code
    sys.meta_path.insert(0, Compiled(__loader__, table))


install()
"""

# Runs in a separate process with a fixed hash seed, on which the order of constant sets depends.
_COMPILER = """
import importlib.util, marshal, sys
table = {}
for path, source in marshal.load(sys.stdin.buffer):
    parts = path[:-3].split("/")
    package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if package else parts)
    table[name] = path, package, marshal.dumps(compile(source, path, "exec", dont_inherit=True, optimize=0))
magic = int.from_bytes(importlib.util.MAGIC_NUMBER[:2], "little")
sys.stdout.buffer.write(marshal.dumps((f"modules-{magic}.bin", marshal.dumps(table))))
"""


def compiled(sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """Compile modules; return two files by path: the bytecode, and a module that makes Python import it. Equal sources and Python give
    equal bytes.

    Args:
        sources: the modules, by path.

    Raises:
        BuildError: a module does not compile.
    """
    wanted = sorted((path, content) for path, content in sources.items() if path.endswith(".py") and path != "__main__.py")
    seed = {"PYTHONHASHSEED": "0"}
    done = run_python(["-c", _COMPILER], bare=True, environment=seed, input=marshal.dumps(wanted), capture_output=True)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise BuildError(f"The build does not compile: {lines[-1] if lines else 'no reason given'}.")
    name, table = marshal.loads(done.stdout)
    return {name: table, f"{LOADER}.py": _LOADER.encode()}
