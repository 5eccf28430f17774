"""The package beside others: nobody pays for jax who does not ask for it."""

from __future__ import annotations

import sys

import pytest
from tests.children import run_child

from oplet import DelegateRegistry, load_delegate
from oplet.errors import OpletError
from oplet_xla_delegate import register_delegates


def test_it_is_offered_by_name_and_for_gpus() -> None:
    registry = DelegateRegistry()
    register_delegates(registry)
    assert [(entry.name, dict(entry.accelerates)) for entry in registry.entries()] == [("xla", {"gpu": {"device": "gpu"}})]


def test_neither_oplet_nor_the_list_of_delegates_imports_jax() -> None:
    code = (
        "import sys, oplet, oplet_xla_delegate\n"
        "from oplet import PluginManager, Interpreter\n"
        "list(PluginManager().registry().entries())\n"
        "assert 'jax' not in sys.modules and 'oplet_xla_delegate.delegate' not in sys.modules"
    )
    run_child([sys.executable, "-c", code])


def test_without_jax_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("oplet_xla_delegate.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(OpletError, match="'xla' needs the package jax.*pip install jax"):
        load_delegate("xla")
