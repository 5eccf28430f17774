"""The work of nodes: what plugins count, and what is said where nobody does."""

from __future__ import annotations

from typing import Any

import pytest

from oplet import BuiltinOperator, Composite, Node, Tensor, TensorType, Work, WorkTable
from oplet.errors import PluginError


def node(op: BuiltinOperator = BuiltinOperator.CUSTOM, name: str = "Wave") -> Node:
    source, weights = Tensor(0, "x", TensorType.FLOAT32, (2, 3)), Tensor(1, "w", TensorType.INT8, (5,))
    return Node(0, op, name, 1, [source, weights, source, None], [Tensor(2, "y", TensorType.FLOAT32, (4,))])


def test_bytes_are_those_of_each_tensor_once_unless_the_function_says_otherwise() -> None:
    table = WorkTable()
    table.add("Wave", lambda node: Work(macs=7, read=1))
    assert WorkTable().work(node()) == Work(None, None, 2 * 3 * 4 + 5, 16)
    assert table.work(node()) == Work(7, 0, 1, 16)


def test_a_custom_op_that_is_called_like_an_operator_is_not_taken_for_it() -> None:
    table = WorkTable()
    table.add(["ADD", "Wave"], lambda node: Work(operations=1))
    assert table.work(node(BuiltinOperator.ADD, "ADD")).operations == 1
    assert table.work(node(BuiltinOperator.CUSTOM, "ADD")).operations is None
    assert table.work(node()).operations == 1


@pytest.mark.parametrize("count", [lambda node: node.inputs[9].size, lambda node: 3, "no.such.module:f", "math:no_such_function"])
def test_a_function_that_fails_leaves_the_bytes(count: Any) -> None:
    table = WorkTable()
    table.add("Wave", count)
    assert table.work(node()) == Work(None, None, 29, 16)


def test_the_intensity_is_known_where_operations_and_bytes_are() -> None:
    assert Work(macs=4, operations=2, read=3, written=2).intensity == 2
    assert Work(None, None, 3, 2).intensity is None
    assert Work(macs=4).intensity is None


@pytest.mark.parametrize(
    ("ops", "count"), [("", lambda node: Work()), (3, lambda node: Work()), ([b"A"], lambda node: Work()), ("A", 5), ("A", "m")]
)
def test_nonsense_is_refused(ops: Any, count: Any) -> None:
    with pytest.raises(PluginError, match="the work of"):
        WorkTable().add(ops, count)


def test_plugins_count_their_ops_and_the_highest_tier_counts_where_several_do(site: Any) -> None:
    for name, tier, macs in (("a-slow", "builtin", 1), ("b-mine", "plugin", 2)):
        source = f"""
        from oplet import Composite, Work, hookimpl
        OPLET_TIER = "{tier}"
        @hookimpl
        def register_work(table):
            table.add(["Wave", Composite("a.b")], lambda node: Work(macs={macs}))
        """
        site.add(name, source=source)
    table = site.manager().work_table()
    assert table.work(node()).macs == 2
    assert set(table.rows) == {"Wave", Composite("a.b")}


def test_a_plugin_whose_counts_cannot_be_registered_is_told(site: Any) -> None:
    source = "from oplet import hookimpl\n@hookimpl\ndef register_work(table):\n    table.add('Wave', 3)\n"
    site.add("oplet-wave", name="wave", source=source)
    manager = site.manager()
    assert not manager.work_table().rows
    assert "neither a function nor" in manager.broken()[0].error
