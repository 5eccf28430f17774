"""What op and delegate authors test with.

Example:
    >>> from oplet.testing import OpContract, Spec, one_op_model, run_op
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oplet.testing.contract import Contract
    from oplet.testing.delegate_contract import DelegateContract
    from oplet.testing.graphs import Graph, Op, graph_model
    from oplet.testing.one_op import Spec, call_op, one_op_model, run_op
    from oplet.testing.op_contract import OpContract
    from oplet.testing.wrapping import WrappingDelegate

#: Where each public name lives. Names load when they are first used: pytest imports this package at every start, in every
#: environment that has oplet, for the plugin beside it.
_HOMES = {
    "Contract": "oplet.testing.contract",
    "DelegateContract": "oplet.testing.delegate_contract",
    "Graph": "oplet.testing.graphs",
    "Op": "oplet.testing.graphs",
    "OpContract": "oplet.testing.op_contract",
    "Spec": "oplet.testing.one_op",
    "WrappingDelegate": "oplet.testing.wrapping",
    "call_op": "oplet.testing.one_op",
    "graph_model": "oplet.testing.graphs",
    "one_op_model": "oplet.testing.one_op",
    "run_op": "oplet.testing.one_op",
}

__all__ = [
    "Contract",
    "DelegateContract",
    "Graph",
    "Op",
    "OpContract",
    "Spec",
    "WrappingDelegate",
    "call_op",
    "graph_model",
    "one_op_model",
    "run_op",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'oplet.testing' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
