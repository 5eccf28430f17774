"""Imports numba without the settings file that numba reads from the current folder.

Numba reads `.numba_config.yaml` in the current folder (where PyYAML is installed) when it is imported, and again before it
compiles. Such a file names the folder of cached machine code, and so decides which machine code runs. As the current folder may be
a stranger's, numba is made to read no file. Its environment variables (NUMBA_CACHE_DIR and the others) still apply.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

__all__ = ["import_numba"]

_MODULE = "numba.core.config"
#: The name of the settings file, and a name that no file has.
_FILE, _NO_FILE = ".numba_config.yaml", ""


def import_numba() -> None:
    """Import numba so that it never reads settings from the current folder.

    If the program has imported numba before, the settings that numba read then stay in force, except a cache folder that they
    named.

    Raises:
        ImportError: numba is not installed.
    """
    if _MODULE not in sys.modules:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
        try:
            importlib.import_module(_MODULE)
        finally:
            sys.meta_path.remove(finder)
    config = sys.modules[_MODULE]
    if getattr(config, "_config_fname", _NO_FILE) != _NO_FILE:
        _close(config)


def _close(config: ModuleType) -> None:
    """Keep numba, which is imported already, from reading its settings file again; undo the cache folder that the file named."""
    config._config_fname = _NO_FILE  # type: ignore[attr-defined]
    reloader = getattr(config, "_env_reloader", None)
    taken = getattr(reloader, "old_environ", None)
    if not isinstance(taken, dict):
        return
    folder = taken.get("NUMBA_CACHE_DIR")
    if folder is not None and folder != os.environ.get("NUMBA_CACHE_DIR") and str(folder) == config.CACHE_DIR:
        config.CACHE_DIR = os.environ.get("NUMBA_CACHE_DIR", "")  # type: ignore[attr-defined]
    taken.clear()  # else numba would undo the file's settings, some of which the program may want
    taken.update((name, value) for name, value in os.environ.items() if name.startswith("NUMBA_"))


class _Finder:
    """An import finder that gives numba's config module (`numba.core.config`) the loader `_Loader`; it finds no other module."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == _MODULE else None
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


class _Loader(SourceFileLoader):
    """An import loader that replaces the name of the settings file, in the code of numba's config module, by one that no file
    has.
    """

    def get_code(self, fullname: str) -> CodeType | None:
        code = super().get_code(fullname)
        if code is None:
            return None
        return code.replace(co_consts=tuple(_NO_FILE if constant == _FILE else constant for constant in code.co_consts))
