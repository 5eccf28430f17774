"""Verification of calls between subgraphs: called subgraphs exist, and no call is recursive."""

from __future__ import annotations

from oplet.errors import ModelError
from oplet.model.reachability import named_calls
from oplet.schema import tables
from oplet.schema.columns import as_lazy_tables
from oplet.schema.naming import shown
from oplet.schema.options import CallOnceOptions, IfOptions, WhileOptions

__all__ = ["verify_calls"]

#: Options whose subgraphs must exist. Those of StableHLO operators may be missing, as a delegate may not need them.
_ALWAYS = (CallOnceOptions, IfOptions, WhileOptions)
#: Fields, of CALL and STABLEHLO_CUSTOM_CALL, that are looked at only where such a node is prepared.
_LATE = ("subgraph", "called_computations")


def verify_calls(root: tables.Model) -> None:
    """Check that subgraphs which nodes call exist, and that no calls are recursive.

    Raises:
        ModelError: a subgraph does not exist, or calls are recursive.
    """
    subgraphs = root.subgraphs or []
    calls: list[list[int]] = []
    for caller, subgraph in enumerate(subgraphs):
        called: dict[int, None] = {}
        operators = as_lazy_tables(subgraph.operators)
        for field in ("builtin_options", "builtin_options_2"):
            for number, table in enumerate(operators.column(field) if operators.has_field(field) else ()):
                for role, index in () if table is None else named_calls(table):
                    if role in _LATE:
                        continue
                    if 0 <= index < len(subgraphs):
                        called[index] = None
                    elif index >= 0 or isinstance(table, _ALWAYS):
                        raise ModelError(
                            f"Node {number} of {_label(root, caller)}: there is no subgraph {index} to call as {role.partition('_subgraph')[0]}; the model has "
                            f"{len(subgraphs)}."
                        )
        calls.append(list(called))
    _refuse_circles(root, calls)


def _refuse_circles(root: tables.Model, calls: list[list[int]]) -> None:
    """Find recursive calls by a search without Python recursion, as chains of calls can have any length.

    Raises:
        ModelError: calls are recursive.
    """
    done = [False] * len(calls)
    for start in range(len(calls)):
        if done[start]:
            continue
        chain, at = [start], {start: 0}
        rest = [iter(calls[start])]
        while chain:
            callee = next(rest[-1], None)
            if callee is None:
                done[chain[-1]] = True
                del at[chain.pop()]
                rest.pop()
            elif callee in at:
                circle = [*chain[at[callee] :], callee]
                names = " -> ".join(_label(root, index) for index in circle[:20]) + (" -> ..." if len(circle) > 20 else "")
                raise ModelError(f"The subgraphs call each other in a circle: {names}; a call must not lead back to its caller.")
            elif not done[callee]:
                at[callee] = len(chain)
                chain.append(callee)
                rest.append(iter(calls[callee]))


def _label(root: tables.Model, index: int) -> str:
    name = (root.subgraphs or [])[index].name
    return f"subgraph {index}" + (f" '{shown(name)}'" if name else "")
