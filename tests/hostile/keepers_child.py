"""Run models that keep what outlives its node, within little memory; see `test_keepers.py`.

python -m tests.hostile.keepers_child CASE...
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from plugins.flex_ops.tests.nodedefs import flex_options
from tests.hostile.texts_child import run_within

from oplet import ModelBuilder, TensorType
from oplet.schema import options as o

__all__ = ["CASES"]

Body = Callable[["Loop"], None]
CASES: dict[str, Body] = {}
_INT32, _INT64, _STRING = TensorType.INT32, TensorType.INT64, TensorType.STRING
_RESOURCE, _VARIANT = TensorType.RESOURCE, TensorType.VARIANT


def keeper(body: Body) -> Body:
    CASES[body.__name__] = body
    return body


class Loop:
    """A model of a loop of 9,000 rounds, whose body a case fills.

    Attributes:
        round: the number of the round, an INT32 tensor.
    """

    def __init__(self, body: Body, size: int) -> None:
        self.size, self._builder = size, ModelBuilder()
        main, condition, self.graph = (self._builder.add_subgraph() for _ in range(3))
        self.carried: list[tuple[Any, int, int]] = []  # the value in the main graph, and the body's tensors before and after
        self._main = main
        self.round = self.graph.add_tensor("i", _INT32, [])
        body(self)
        after = self.node("ADD", [self.round, self.constant(np.array(1, np.int32))], [(_INT32, [])], o.AddOptions())
        self.graph.set_inputs(self.round, *(before for _, before, _ in self.carried))
        self.graph.set_outputs(*after, *(changed for _, _, changed in self.carried))
        i, most, flag = (
            condition.add_tensor("i", _INT32, []), condition.add_tensor("n", _INT32, [], data=np.array(9_000, np.int32)),
            condition.add_tensor("flag", "bool", []),
        )  # fmt: skip
        condition.add_operator("LESS", [i, most], [flag])
        condition.set_inputs(i, *(condition.add_tensor("x", _VARIANT, []) for _ in self.carried))
        condition.set_outputs(flag)
        start = main.add_tensor("start", _INT32, [], data=np.array(0, np.int32))
        ends = [main.add_tensor("end", _INT32, []), *(main.add_tensor("end", _VARIANT, []) for _ in self.carried)]
        starts = [start, *(first for first, _, _ in self.carried)]
        main.add_operator("WHILE", starts, ends, o.WhileOptions(cond_subgraph_index=1, body_subgraph_index=2))
        main.set_inputs()
        main.set_outputs(ends[0])

    def constant(self, value: np.ndarray, graph: Any = None) -> int:
        kind = TensorType.STRING if value.dtype == object else value.dtype
        found: int = (graph or self.graph).add_tensor("c", kind, value.shape, data=value)
        return found

    def node(self, op: str, inputs: list[int], outputs: list[Any], options: Any = None, graph: Any = None) -> list[int]:
        graph = graph or self.graph
        made = [graph.add_tensor("t", kind, shape) for kind, shape in outputs]
        if op.startswith("Flex"):
            graph.add_operator(op, inputs, made, custom=True, custom_options=flex_options(op[4:], options or {}))
        else:
            graph.add_operator(op, inputs, made, options)
        return made

    def filled(self, size: int = 0, kind: Any = "float32", value: Any = None) -> int:
        value = np.zeros((), np.float32) if value is None else value
        size = size or self.size
        return self.node("FILL", [self.constant(np.array([size], np.int32)), self.constant(value)], [(kind, [size])])[0]

    def text(self, size: int = 0) -> int:
        value = np.empty((), object)
        value[()] = b"a" * 10_000
        return self.filled(max(self.size // 1000, 1), _STRING, value)

    def carry(self, op: str, inputs: Callable[[Any], list[int]], options: Any) -> int:
        """A VARIANT value that the loop carries, made in the main graph."""
        first = self.node(op, inputs(self._main), [(_VARIANT, [])], options, self._main)[0]
        before: int = self.graph.add_tensor("list", _VARIANT, [])
        self.carried.append((first, before, before))
        return before

    def changed(self, after: int) -> None:
        """Set what the value that was carried last becomes."""
        first, before, _ = self.carried[-1]
        self.carried[-1] = first, before, after

    def to_bytes(self) -> bytes:
        return self._builder.to_bytes()


def _any() -> np.ndarray:
    return np.array(-1, np.int32)


@keeper
def variables(loop: Loop) -> None:
    """A variable in each round, of its own number."""
    loop.node("ASSIGN_VARIABLE", [loop.round, loop.filled()], [], o.AssignVariableOptions())


@keeper
def variables_of_strings(loop: Loop) -> None:
    loop.node("ASSIGN_VARIABLE", [loop.round, loop.text()], [], o.AssignVariableOptions())


def _list(loop: Loop, type: TensorType) -> int:
    return loop.carry(
        "FlexEmptyTensorList",
        lambda graph: [loop.constant(_any(), graph), loop.constant(_any(), graph)],
        {"element_dtype": type, "shape_type": _INT32},
    )


@keeper
def a_list_that_grows(loop: Loop) -> None:
    options = {"element_dtype": TensorType.FLOAT32}
    loop.changed(
        loop.node("FlexTensorListPushBack", [_list(loop, TensorType.FLOAT32), loop.filled()], [(_VARIANT, [])], options)[0]
    )


@keeper
def a_list_of_strings(loop: Loop) -> None:
    loop.changed(
        loop.node("FlexTensorListPushBack", [_list(loop, _STRING), loop.text()], [(_VARIANT, [])], {"element_dtype": _STRING})[0]
    )


@keeper
def a_list_of_lists(loop: Loop) -> None:
    inner = loop.node(
        "FlexTensorListFromTensor", [loop.filled(), loop.constant(_any())], [(_VARIANT, [])],
        {"element_dtype": TensorType.FLOAT32, "shape_type": _INT32},
    )  # fmt: skip
    loop.changed(
        loop.node("FlexTensorListPushBack", [_list(loop, _VARIANT), *inner], [(_VARIANT, [])], {"element_dtype": _VARIANT})[0]
    )


@keeper
def a_list_of_unset_lists(loop: Loop) -> None:
    inner = loop.node(
        "FlexTensorListReserve", [loop.constant(_any()), loop.constant(np.array(loop.size, np.int32))], [(_VARIANT, [])],
        {"element_dtype": TensorType.FLOAT32, "shape_type": _INT32},
    )  # fmt: skip
    loop.changed(
        loop.node("FlexTensorListPushBack", [_list(loop, _VARIANT), *inner], [(_VARIANT, [])], {"element_dtype": _VARIANT})[0]
    )


@keeper
def a_list_of_ragged_values(loop: Loop) -> None:
    ragged = loop.node(
        "FlexRaggedTensorToVariant", [loop.filled()], [(_VARIANT, [])],
        {"RAGGED_RANK": 0, "batched_input": False, "Tvalues": TensorType.FLOAT32, "Tsplits": _INT64},
    )  # fmt: skip
    loop.changed(
        loop.node("FlexTensorListPushBack", [_list(loop, _VARIANT), *ragged], [(_VARIANT, [])], {"element_dtype": _VARIANT})[0]
    )


@keeper
def a_list_of_rows_of_ragged_values(loop: Loop) -> None:
    ragged = loop.node(
        "FlexRaggedTensorToVariant", [loop.filled()], [(_VARIANT, [loop.size])],
        {"RAGGED_RANK": 0, "batched_input": True, "Tvalues": TensorType.FLOAT32, "Tsplits": _INT64},
    )  # fmt: skip
    loop.changed(
        loop.node("FlexTensorListPushBack", [_list(loop, _VARIANT), *ragged], [(_VARIANT, [])], {"element_dtype": _VARIANT})[0]
    )


def _table(loop: Loop, op: str, options: dict[str, Any]) -> int:
    return loop.node(op, [], [(_RESOURCE, [])], {"key_dtype": _INT64, **options})[0]


def _keys(loop: Loop) -> int:
    """As many keys as the size says, other ones in each round."""
    number = loop.node("CAST", [loop.round], [(_INT64, [])], o.CastOptions(in_data_type=_INT32, out_data_type=_INT64))[0]
    size = loop.constant(np.array(loop.size, np.int64))
    first = loop.node("MUL", [number, size], [(_INT64, [])], o.MulOptions())[0]
    last = loop.node("ADD", [first, size], [(_INT64, [])], o.AddOptions())[0]
    return loop.node("RANGE", [first, last, loop.constant(np.array(1, np.int64))], [(_INT64, [loop.size])], o.RangeOptions())[0]


@keeper
def a_table_that_grows(loop: Loop) -> None:
    table, keys = _table(loop, "FlexMutableHashTableV2", {"value_dtype": _INT64, "shared_name": "t"}), _keys(loop)
    loop.node("FlexLookupTableInsertV2", [table, keys, keys], [], {"Tin": _INT64, "Tout": _INT64})


@keeper
def many_tables(loop: Loop) -> None:
    table, keys = _table(loop, "FlexAnonymousMutableHashTable", {"value_dtype": _INT64}), _keys(loop)
    loop.node("FlexLookupTableInsertV2", [table, keys, keys], [], {"Tin": _INT64, "Tout": _INT64})
    loop.changed(
        loop.node("FlexTensorListPushBack", [_list(loop, _RESOURCE), table], [(_VARIANT, [])], {"element_dtype": _RESOURCE})[0]
    )


@keeper
def a_table_of_strings(loop: Loop) -> None:
    table, keys = _table(loop, "FlexMutableHashTableV2", {"value_dtype": _STRING, "shared_name": "s"}), _keys(loop)
    value = np.empty((), object)
    value[()] = b"a" * 10_000
    values = loop.filled(loop.size, _STRING, value)
    loop.node("FlexLookupTableInsertV2", [table, keys, values], [], {"Tin": _INT64, "Tout": _STRING})


if __name__ == "__main__":
    for case in sys.argv[1:]:
        for size in (1, 100, 10_000, 1_000_000):
            print(json.dumps([case, size, *run_within(Loop(CASES[case], size).to_bytes())]), flush=True)
