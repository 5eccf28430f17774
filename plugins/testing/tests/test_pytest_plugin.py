"""The pytest plugin: its fixtures, and that it costs those nothing who do not use it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.children import run_child

from oplet import MutableOpResolver, PluginManager, Registration
from oplet.errors import UnresolvedOpError
from oplet_testing import OpContract, Spec


def test_loading_the_plugin_imports_nothing_of_weight() -> None:
    code = "import sys, oplet_testing.pytest_plugin; print(*sys.modules)"
    loaded = set(run_child([sys.executable, "-c", code]).stdout.split())
    assert not loaded & {"numpy", "flatbuffers", "oplet.runtime", "oplet_testing.contract", "importlib_metadata"}


def test_op_tester_runs_an_op_in_one_call(op_tester: Callable[..., Any]) -> None:
    resolver = MutableOpResolver()
    resolver.add_custom(
        "Sum", Registration(invoke=lambda c, n: np.add(n.inputs[0].data, n.inputs[1].data, out=n.outputs[0].data))
    )
    constant = Spec("float32", [2], data=np.array([10, 20], np.float32))
    [y] = op_tester("Sum", [np.array([1, 2], np.float32), constant], [Spec("float32", [2])], op_resolver=resolver, plugins=[])
    np.testing.assert_array_equal(y, [11, 22])


def test_isolated_plugins_hides_what_is_installed(
    isolated_plugins: Callable[..., PluginManager], op_tester: Callable[..., Any]
) -> None:
    arguments = ("Atan", [np.ones(1, np.float32)], [Spec("float32", [1])])
    with pytest.raises(UnresolvedOpError, match="Encountered unresolved custom op: Atan"):
        op_tester(*arguments)
    manager = isolated_plugins("oplet-atan-op")
    assert [plugin.name for plugin in manager.plugins() if plugin.state == "loaded"] == ["atan_op"]
    np.testing.assert_allclose(op_tester(*arguments)[0], [np.pi / 4], rtol=1e-6)


def test_after_isolation_everything_is_there_again(op_tester: Callable[..., Any]) -> None:
    assert op_tester("Atan", [np.ones(1, np.float32)], [Spec("float32", [1])])


def test_an_inherited_contract_is_collected_and_reported(tmp_path: Path) -> None:
    file = tmp_path / "test_atan.py"
    file.write_text(
        """
import numpy as np
from oplet_testing import OpContract, Spec, one_op_model

class TestAtan(OpContract):
    model = one_op_model("Atan", [Spec("float32", [2])], [Spec("float32", [2])])
    inputs = [np.array([0, 1], np.float32)]
"""
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file]
    done = run_child(command, cwd=tmp_path)
    assert f"{sum(name.startswith('test_') for name in dir(OpContract))} passed" in done.stdout
