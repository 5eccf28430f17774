"""What the finder answers: the modules that `oplet behind` answers, with oplet's own classes, for who is no part of oplet."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from typing import Any

import oplet
from oplet_tools.behind.doors import PACKAGES
from oplet_tools.behind.import_hooks import ImportHooks, answered_distributions, asking_module
from oplet_tools.behind.litert_names import litert_classes, plugin_packages
from oplet_tools.behind.stand_ins.analyzer import Analyzer

__all__ = ["VARIABLE", "find_distributions", "find_spec", "state_of", "states"]

#: The environment variable that switches the answers off.
VARIABLE = "OPLET_LITERT_SHIM"

#: Packages that ask whether LiteRT is installed and mean LiteRT: oplet's, and those of plugins.
_OURS = {"oplet", "oplet_build", "oplet_litert_shim", "oplet_predictor", "oplet_testing", "oplet_tools"}
_EXEMPT = _OURS | plugin_packages()

_NAMES = {**litert_classes(), "Analyzer": Analyzer}


class _LastHooks(ImportHooks):
    """Import hooks that are asked last: no other finder has what they are asked for, and none is asked again."""

    def _elsewhere(self, name: str, path: Any) -> None:
        return None


_HOOKS = _LastHooks(_NAMES, _EXEMPT, False)


def find_spec(name: str, path: Any, target: Any) -> ModuleSpec | None:
    """Return the spec of a LiteRT module that oplet provides; None if LiteRT is installed or the importer needs LiteRT itself.

    Raises:
        ImportError: oplet does not provide the module; the message says why, and what to do.
    """
    if _is_off() or asking_module().partition(".")[0] in _EXEMPT:
        return None
    around = sys.modules.get(name.partition(".")[0])
    if around is not None and getattr(around.__spec__, "origin", None) != "oplet":
        return None  # the installed package lacks the module, which is its own affair
    return _HOOKS.find_spec(name, path, target)


def find_distributions(context: Any) -> Iterable[Any]:
    """Return the distribution of a package that is asked for by name and for which oplet stands in, as it is not installed."""
    if _is_off() or asking_module().partition(".")[0] in _EXEMPT:
        return iter(())
    return answered_distributions(context)


def state_of(package: str) -> str:
    """Return a sentence that says what an import of the package gets: the installed package, oplet, or nothing."""
    import importlib.machinery

    found = importlib.machinery.PathFinder.find_spec(package)
    if found is not None:
        return f"{package}: installed in {os.path.dirname(found.origin or '') or 'a folder without a module'}, which the shim leaves as it is"
    if _is_off():
        return f"{package}: not installed, and not answered, as {VARIABLE} is {os.environ[VARIABLE]!r}"
    return f"{package}: answered by oplet {oplet.__version__}"


def states() -> list[str]:
    """Return the sentence of `state_of` for each package that the shim can stand in for."""
    return [state_of(package) for package in PACKAGES]


def _is_off() -> bool:
    return os.environ.get(VARIABLE, "").lower() in ("off", "0", "no", "false")
