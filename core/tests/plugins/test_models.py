"""What the plugin system means for somebody who runs a model."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter, MutableOpResolver, Registration
from oplet.errors import OpConflictError, UnresolvedOpError
from oplet.ops.context import Context, Node
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

VECTOR = Spec("float32", [2])
X = np.array([1.0, 2.0], np.float32)


def times(factor: int) -> str:
    """Source of a plugin whose custom op multiplies."""
    return f"""
        import numpy as np
        from oplet import Registration, hookimpl

        def invoke(context, node):
            np.multiply(node.inputs[0].data, {factor}, out=node.outputs[0].data)

        @hookimpl
        def register_ops(resolver):
            resolver.add_custom("Times", Registration(invoke=invoke))
        """


@pytest.fixture
def rivals(site: Any) -> Any:
    """Two packages that bring different kernels for one custom op."""
    site.add("oplet-two", source=times(2))
    site.add("oplet-three", source=times(3))
    return site


def test_a_conflict_stops_the_model_that_needs_the_op_and_prefer_settles_it(rivals: Any) -> None:
    model, manager = one_op_model("Times", [VECTOR], [VECTOR]), rivals.manager()
    with pytest.raises(OpConflictError, match=r"oplet-three 1\.0 and oplet-two 1\.0; choose with prefer=\['oplet-three'\]"):
        Interpreter(model_content=model, plugins=manager)
    for name, factor in (("oplet-two", 2), ("oplet-three", 3)):
        [y] = run_op(model, X, plugins=manager, prefer=[name])
        np.testing.assert_array_equal(y, X * factor)


def test_a_model_that_does_not_need_the_op_runs(rivals: Any) -> None:
    rivals.add_op("oplet-other", op="Other")
    Interpreter(model_content=one_op_model("Other", [VECTOR], [VECTOR]), plugins=rivals.manager()).allocate_tensors()


def test_the_applications_own_registration_goes_before_plugins(rivals: Any) -> None:
    def invoke(context: Context, node: Node) -> None:
        np.multiply(node.inputs[0].data, 10, out=node.outputs[0].data)

    own = MutableOpResolver()
    own.add_custom("Times", Registration(invoke=invoke))
    [y] = run_op(one_op_model("Times", [VECTOR], [VECTOR]), X, plugins=rivals.manager(), op_resolver=own)
    np.testing.assert_array_equal(y, X * 10)


def test_an_unresolved_op_is_explained_with_the_plugin_that_failed(site: Any) -> None:
    site.add("oplet-bad", source="1 / 0", name="bad")
    runner = Interpreter(model_content=one_op_model("Times", [VECTOR], [VECTOR]), plugins=site.manager())
    with pytest.raises(
        UnresolvedOpError, match=r"Encountered unresolved custom op: Times\..*'bad' of oplet-bad 1\.0.*broken: Zero"
    ):
        runner.allocate_tensors()


def test_delegates_carry_the_package_that_brought_them(site: Any) -> None:
    source = """
        from oplet import Delegate, hookimpl

        @hookimpl
        def register_delegates(registry):
            registry.add("fast", Delegate)
        """
    site.add("oplet-a", "2.0", source=source)
    site.add("oplet-b", source=source)
    manager = site.manager()
    assert [str(entry.provenance) for entry in manager.registry().entries()] == ["oplet-a 2.0", "oplet-b 1.0"]
    assert [info.delegates for info in manager.plugins()] == [("fast",), ("fast",)]
    assert manager.registry() is manager.registry()


def test_threads_that_ask_at_once_load_a_plugin_once(site: Any) -> None:
    source = """
        import time
        from oplet import Registration, hookimpl
        calls = []

        @hookimpl
        def register_ops(resolver):
            calls.append(1)
            time.sleep(0.02)
            resolver.add_custom("Times", Registration(invoke=print))
        """
    site.add("oplet-slow-start", source=source)
    manager = site.manager()
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(manager.resolver().find_op("Times", 1))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sys.modules["oplet_slow_start"].calls == [1]
    assert len(found) == 8
    assert None not in found
