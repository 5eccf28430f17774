"""Companions: modules of other packages that are also reached as modules of oplet, as `oplet.ray` is `oplet_ray`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from importlib.abc import Loader, MetaPathFinder

__all__ = ["GROUP", "KNOWN", "find_companions"]

#: The entry-point group of companions: `ray = "oplet_ray"` makes the module `oplet_ray` reachable as `oplet.ray`.
GROUP: Final = "oplet.modules"

#: Companions of this project by name, and their packages, for advice where they are not installed.
KNOWN: Final = {"beam": "oplet-beam", "ray": "oplet-ray"}


class _Forward:
    """A loader of `oplet.NAME`, a module without submodules that has every attribute of the companion.

    Args:
        target: the name of the companion's module.
    """

    def __init__(self, target: str) -> None:
        self._target = target

    def create_module(self, spec: ModuleSpec) -> None:
        """Leave it to Python to create the module."""

    def exec_module(self, module: ModuleType) -> None:
        target = importlib.import_module(self._target)
        forwarded = {"__doc__": target.__doc__, "__getattr__": lambda name: getattr(target, name), "__dir__": lambda: dir(target)}
        module.__dict__.update(forwarded)


class _Finder:  # not a MetaPathFinder: importing importlib.abc imports thirty modules more
    """Finder of companions, asked after those that find oplet's own modules."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        parent, _, name = fullname.rpartition(".")
        if parent != "oplet":
            return None
        try:
            import importlib_metadata
        except ModuleNotFoundError:  # in what `oplet build --with-core` makes, which looks for no other packages
            return None
        found = {entry.value: entry for entry in importlib_metadata.entry_points(group=GROUP, name=name)}
        if len(found) > 1:
            packages = " and ".join(sorted(entry.dist.name if entry.dist else value for value, entry in found.items()))
            raise ImportError(f"{fullname} is claimed by {packages}; uninstall one of them.", name=fullname)
        for value in found:
            return ModuleSpec(fullname, cast("Loader", _Forward(value)))
        if name in KNOWN:
            raise ModuleNotFoundError(f"No module named '{fullname}': pip install {KNOWN[name]} brings it.", name=fullname)
        return None


def find_companions() -> None:
    """Let `import oplet.NAME` find companions. No package metadata is read before such a name is asked for."""
    if not any(type(finder).__name__ == _Finder.__name__ and type(finder).__module__ == __name__ for finder in sys.meta_path):
        sys.meta_path.append(cast("MetaPathFinder", _Finder()))
