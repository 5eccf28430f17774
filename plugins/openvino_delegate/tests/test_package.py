"""The package beside others: nobody pays for OpenVINO who does not ask for it."""

from __future__ import annotations

import sys

import pytest
from tests.children import run_child

from oplet import DelegateRegistry, load_delegate
from oplet.errors import OpletError
from oplet_openvino_delegate import register_delegates


def test_it_is_offered_by_name() -> None:
    registry = DelegateRegistry()
    register_delegates(registry)
    assert [entry.name for entry in registry.entries()] == ["openvino"]


def test_neither_oplet_nor_the_list_of_delegates_imports_openvino() -> None:
    code = (
        "import sys, oplet, oplet_openvino_delegate\n"
        "from oplet import PluginManager, Interpreter\n"
        "list(PluginManager().registry().entries())\n"
        "assert 'openvino' not in sys.modules and 'oplet_openvino_delegate.delegate' not in sys.modules"
    )
    run_child([sys.executable, "-c", code])


def test_without_openvino_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "openvino" or name.startswith("oplet_openvino_delegate.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "openvino", None)
    with pytest.raises(OpletError, match="'openvino' needs the package openvino.*pip install openvino"):
        load_delegate("openvino")
