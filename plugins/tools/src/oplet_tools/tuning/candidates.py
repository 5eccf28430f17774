"""Candidates: the ways of running a model, each a set of kernels and delegates applied before them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from oplet.schema.enums import BuiltinOperator
from oplet.schema.tables import operator_code

if TYPE_CHECKING:
    from oplet import Delegate, Model, PluginManager
    from oplet.toolkit import PluginInfo

__all__ = ["Candidate", "Runs", "builtin_operators", "delegate_names", "kernel_sets", "runs_text"]

#: Runs of nodes; no model has nodes of more digits.
_RUN = r"[0-9]{1,9}(-[0-9]{1,9})?"
_RUNS = re.compile(rf"{_RUN}(,{_RUN})*")
#: The longest text of runs, and how many runs are shown.
_LONGEST, _SHOWN = 100_000, 4


@dataclass(frozen=True)
class Candidate:
    """One way of running a model: a set of kernels, and delegates applied before them.

    Attributes:
        kernels: the plugin whose kernels replace the built-in ones where it has them, "" for the built-in kernels alone.
        prefer: the plugins to take where several have kernels for an op, the most preferred first.
        delegates: names of the delegates to apply, in order; "distribution:name" where two packages bring the same name.
        nodes: for each delegate the nodes of the main subgraph that it may claim, as ranges "0-31,40", "" for all; () if no
            delegate is limited.
    """

    kernels: str = ""
    prefer: tuple[str, ...] = ()
    delegates: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    def __str__(self) -> str:
        engines = (f"{name} (nodes {_shortened(nodes)})" if nodes else name for name, nodes in self._pairs())
        return " + ".join((*engines, self.kernels or "builtin_ops"))

    def _pairs(self) -> Iterable[tuple[str, str]]:
        return zip(self.delegates, self.nodes or ("",) * len(self.delegates))

    def make_delegates(self, manager: PluginManager) -> list[Delegate]:
        """Make the delegates of this candidate, each limited to the nodes that it may claim.

        Raises:
            DelegateLoadError: a delegate is no longer installed, or cannot be loaded here.
        """
        made = []
        for name, nodes in self._pairs():
            made.append(manager.registry().find(name).create())
            if nodes:
                made[-1].only_nodes = Runs(nodes)
        return made


class Runs(Container[int]):
    """The set of nodes that a text such as "0-31,40" names: ranges of indices, ascending, none touching the next.

    Raises:
        ValueError: the text has another form.
    """

    def __init__(self, text: str) -> None:
        if len(text) > _LONGEST or not _RUNS.fullmatch(text):
            raise ValueError(f"'{text[:40]}' names no nodes")
        ends = [tuple(map(int, run.split("-"))) for run in text.split(",")]
        self.firsts, self.lasts = [run[0] for run in ends], [run[-1] for run in ends]
        ascending = all(first <= last for first, last in zip(self.firsts, self.lasts))
        if not ascending or not all(first > last + 1 for first, last in zip(self.firsts[1:], self.lasts)):
            raise ValueError(f"'{text[:40]}' names nodes out of order, or twice")

    def __contains__(self, node: object) -> bool:
        if not isinstance(node, int):
            return False
        place = bisect_right(self.firsts, node)
        return place > 0 and node <= self.lasts[place - 1]


def runs_text(nodes: Iterable[int]) -> str:
    """Format nodes' indices as the text that `Runs` reads: "0-31,40"."""
    runs: list[list[int]] = []
    for node in sorted(set(nodes)):
        if runs and node == runs[-1][1] + 1:
            runs[-1][1] = node
        else:
            runs.append([node, node])
    return ",".join(f"{first}-{last}" if first != last else str(first) for first, last in runs)


def _shortened(text: str) -> str:
    runs = text.split(",")
    return ", ".join(runs if len(runs) <= _SHOWN else [*runs[: _SHOWN - 1], "...", runs[-1]])


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
