"""The test kit for authors of ops and delegates: models of a few nodes, one-line runs, and contracts to inherit from.

Programs reach it as `oplet.testing`, which is this package by the name that its users know.

Examples:
    >>> from oplet.testing import OpContract, Spec, one_op_model, run_op
"""

from __future__ import annotations

#: Where each public name lives. Names load when they are first used: pytest imports this package at every start, in every
#: environment that has oplet, for the plugin beside it. `python -m scripts.stubs` makes `__init__.pyi` of this table.
_HOMES = {
    "Contract": "oplet_testing.contract",
    "DelegateContract": "oplet_testing.delegate_contract",
    "Graph": "oplet_testing.graphs",
    "Op": "oplet_testing.graphs",
    "OpContract": "oplet_testing.op_contract",
    "Spec": "oplet_testing.one_op",
    "WrappingDelegate": "oplet_testing.wrapping_delegate",
    "call_op": "oplet_testing.one_op",
    "chain_graph": "oplet_testing.chains",
    "elementwise": "oplet_testing.chains",
    "first_failure": "oplet_testing.op_contract",
    "graph_model": "oplet_testing.graphs",
    "invoke": "oplet_testing.one_op",
    "invoke_steps": "oplet_testing.one_op",
    "litert_interpreter": "oplet_testing.litert",
    "one_op_model": "oplet_testing.one_op",
    "run_op": "oplet_testing.one_op",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'oplet_testing' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
