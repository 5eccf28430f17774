"""Candidates: the ways of running a model, each a set of kernels and delegates applied before them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oplet.schema.enums import BuiltinOperator
from oplet.schema.tables import operator_code

if TYPE_CHECKING:
    from oplet import Delegate, Model, PluginManager
    from oplet.toolkit import PluginInfo

__all__ = ["Candidate", "builtin_operators", "delegate_names", "kernel_sets"]


@dataclass(frozen=True)
class Candidate:
    """One way of running a model: a set of kernels, and delegates applied before them."""

    kernels: str = ""  #: The plugin whose kernels replace the built-in ones where it has them, "" for the built-in kernels alone.
    prefer: tuple[str, ...] = ()  #: The plugins to take where several have kernels for an op, the most preferred first.
    #: Names of the delegates to apply, in order; "distribution:name" where two packages bring the same name.
    delegates: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " + ".join((*self.delegates, self.kernels or "builtin_ops"))

    def make_delegates(self, manager: PluginManager) -> list[Delegate]:
        """Make the delegates of this candidate.

        Raises:
            DelegateLoadError: a delegate is no longer installed, or cannot be loaded here.
        """
        return [manager.registry().find(name).create() for name in self.delegates]


def kernel_sets(manager: PluginManager, ops: Sequence[tuple[BuiltinOperator, int]]) -> list[Candidate]:
    """List candidates without delegates: the built-in kernels first, then one for each plugin that replaces some of those the
    model needs.

    Args:
        ops: the built-in operators of the model, with their versions.
    """
    loaded = [info for info in manager.plugins() if info.state == "loaded"]
    builtin = [info for info in loaded if info.tier == "builtin"]
    served = [(op, version) for op, version in ops if any(_serves(info, op, version) for info in builtin)]
    rivals = [i for i in loaded if i.tier in ("fast", "plugin") and any(_serves(i, op, version) for op, version in served)]
    if not rivals:
        return [Candidate()]
    names = tuple(info.name for info in builtin)
    return [Candidate("", names), *(Candidate(info.name, (info.name, *names)) for info in rivals)]


def _serves(info: PluginInfo, op: BuiltinOperator, version: int) -> bool:
    return any(name == op.name and first <= version <= last for name, first, last in info.ops)


def builtin_operators(model: Model) -> list[tuple[BuiltinOperator, int]]:
    """List the built-in operators of a model, with their versions."""
    return [(BuiltinOperator(operator_code(code)), code.version) for code in model.lazy_root.operator_codes or ()]


def delegate_names(manager: PluginManager) -> Sequence[str]:
    """List the unique names of the installed delegates: "name", or "distribution:name" where several have the same name."""
    entries = list(manager.registry().entries())
    names = [entry.name for entry in entries]
    return [e.name if names.count(e.name) == 1 else f"{e.provenance.distribution}:{e.name}" for e in entries]
