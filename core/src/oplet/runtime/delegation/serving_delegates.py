"""Delegates that interpreters apply by themselves: each exists for custom ops, of which the model has one that no kernel serves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from oplet.delegates.delegate import Delegate
from oplet.errors import UnservedNodeError
from oplet.ops.context import Node
from oplet.ops.serving.provenance import Provenance
from oplet.texts import shown

if TYPE_CHECKING:
    from oplet.plugins.manager import PluginManager
    from oplet.plugins.selection import Preference
    from oplet.runtime.subgraph import Subgraph

__all__ = ["ServingDelegates", "left_alone"]


class ServingDelegates:
    """Creates, each once, the delegates that installed packages have for custom ops which no kernel serves.

    Args:
        manager: the plugins that bring them.
        prefer: the plugins to use where several have a delegate for an op.
    """

    def __init__(self, manager: PluginManager, prefer: Sequence[str] | Mapping[str, str] | Preference | None) -> None:
        self._manager = manager
        self._prefer = prefer
        self._made: dict[tuple[str, Provenance], Delegate] = {}

    def missing(self, ops: Iterable[str], applied: Iterable[Delegate]) -> list[Delegate]:
        """Return the delegates that exist for these custom ops and are not applied yet, in the order of the ops.

        Args:
            ops: names of custom ops that no kernel serves.
            applied: the delegates that are applied.

        Raises:
            OpConflictError: several delegates exist for an op, and no preference decides.
            PluginError: a delegate cannot be imported.
            DelegateLoadError: a delegate cannot be created.
        """
        there = {(delegate.name, delegate.provenance) for delegate in applied}
        found: list[Delegate] = []
        for op in dict.fromkeys(ops):
            entry = self._manager.delegate_for(op, self._prefer)
            if entry is None or (key := (entry.name, entry.provenance)) in there:
                continue
            there.add(key)
            if key not in self._made:
                self._made[key] = entry.create()
            found.append(self._made[key])
        return found


def left_alone(node: Node, subgraph: Subgraph, model: str) -> UnservedNodeError:
    """Return the error for a custom op's node without a kernel that a delegate claimed before a resize, but not after it."""
    reports = subgraph.delegated.reports.values()
    reasons = "; ".join(f"{report.delegate}: {why}" for report in reports if (why := report.unsupported.get(node.index)))
    return UnservedNodeError(
        f"No kernel serves node {node.index} ({shown(node.op_name)}) of {subgraph} of {model}, and the delegate that ran it leaves it "
        f"alone with the present shapes{f' ({reasons})' if reasons else ''}; resize the inputs to others.",
        node.op_name,
    )
