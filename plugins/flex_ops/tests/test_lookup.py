"""Lookup tables give what TensorFlow's give, refuse what it refuses, and belong to one interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plugins.flex_ops.tests.chains import Step, assert_same, chain_model, oplet_chain

from oplet import Interpreter, TensorType
from oplet.errors import OpletError
from oplet_testing import invoke

STRINGS = {"Tin": TensorType.STRING, "Tout": TensorType.INT64}
MUTABLE = {"key_dtype": TensorType.STRING, "value_dtype": TensorType.INT64, "shared_name": "counts"}
EXPORT = {"Tkeys": TensorType.STRING, "Tvalues": TensorType.INT64}


def _words(*words: bytes) -> np.ndarray:
    return np.array(words, object)


FEEDS: dict[str, Any] = {
    "keys": _words(b"a", b"b\0", b"a"), "values": np.array([1, 2, 3], np.int64), "some": _words(b"b\0", b"c", b"a"),
    "other": np.array(-1, np.int64), "each": np.array([7, 8, 9], np.int64), "one": _words(b"a"), "more": np.array([4], np.int64),
    "two": np.array([1, 2], np.int64),
}  # fmt: skip
TABLE = Step("MutableHashTableV2", "", "table:RESOURCE", MUTABLE)
STATIC = Step("HashTableV2", "", "table:RESOURCE", MUTABLE)
FIND = Step("LookupTableFindV2", "table some other", "found:INT64", STRINGS)
SIZE = Step("LookupTableSizeV2", "table", "size:INT64")
INSERT = Step("LookupTableInsertV2", "table keys values", "", STRINGS)
IMPORT = Step("LookupTableImportV2", "table keys values", "", STRINGS)
REMOVE = Step("LookupTableRemoveV2", "table one", "", {"Tin": TensorType.STRING})

CHAINS: dict[str, list[Step]] = {
    "found": [TABLE, INSERT, FIND, SIZE],
    "a default for each key": [TABLE, INSERT, FIND._replace(inputs="table some each")],
    "a default of another shape": [TABLE, INSERT, FIND._replace(inputs="table some two")],
    "empty": [TABLE, FIND, SIZE],
    "removed": [TABLE, INSERT, REMOVE, FIND, SIZE],
    "imported": [TABLE, INSERT, IMPORT._replace(inputs="table one more"), FIND, SIZE],
    "two handles of one table": [TABLE, INSERT, TABLE._replace(outputs="again:RESOURCE"), FIND._replace(inputs="again some other")],
    "static": [STATIC, IMPORT._replace(inputs="table one more"), FIND, SIZE],
    "static, one key twice": [STATIC, IMPORT, SIZE],
    "static, the same again": [STATIC, *[IMPORT._replace(inputs="table one more")] * 2, FIND],
    "static, something else": [STATIC, IMPORT._replace(inputs="table one more"), IMPORT._replace(inputs="table some each"), SIZE],
    "static and empty": [STATIC, SIZE],
    "static, read too early": [STATIC, FIND],
    "static, inserted into": [STATIC, INSERT, SIZE],
    "static, removed from": [STATIC, IMPORT._replace(inputs="table one more"), REMOVE, SIZE],
    "values that are too few": [TABLE, INSERT._replace(inputs="table keys two"), SIZE],
    "keys of another type": [TABLE, Step("LookupTableFindV2", "table values other", "found:INT64", {"Tin": TensorType.INT64, "Tout": TensorType.INT64})],
    "another table of that name": [TABLE, STATIC._replace(outputs="second:RESOURCE", attributes=MUTABLE | {"key_dtype": TensorType.INT64}), SIZE],
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_tables_are_tensorflow_s(name: str) -> None:
    pytest.importorskip("tensorflow")
    used = {feed for step in CHAINS[name] for feed in step.inputs.split()}
    assert_same(CHAINS[name], {feed: value for feed, value in FEEDS.items() if feed in used})


def test_values_may_be_vectors() -> None:
    pytest.importorskip("tensorflow")
    types = {"Tin": TensorType.INT64, "Tout": TensorType.FLOAT32}
    made = {"key_dtype": TensorType.INT64, "value_dtype": TensorType.FLOAT32, "value_shape": (2,)}
    feeds = {
        "keys": np.array([3, 4], np.int64), "rows": np.array([[1, 2], [3, 4]], np.float32), "some": np.array([[4, 9], [3, 4]], np.int64),
        "other": np.array([-1, -2], np.float32), "empty": np.array(-1, np.int64), "deleted": np.array(-2, np.int64),
    }  # fmt: skip
    steps = [
        Step("MutableHashTableOfTensorsV2", "", "table:RESOURCE", made),
        Step("LookupTableInsertV2", "table keys rows", "", types),
        Step("LookupTableFindV2", "table some other", "found:FLOAT32", types),
    ]
    assert assert_same(steps, {name: feeds[name] for name in ("keys", "rows", "some", "other")})
    feeds["some"] = feeds["some"][0]
    dense = Step("MutableDenseHashTableV2", "empty deleted", "table:RESOURCE", made)
    assert assert_same([dense, *steps[1:]], feeds)
    for wrong in ("empty", "deleted"):
        bad = feeds | {"keys": np.array([feeds[wrong], 1], np.int64)}
        assert not assert_same([dense, *steps[1:]], bad)


def test_a_table_is_exported_as_it_was_filled() -> None:
    feeds = {name: FEEDS[name] for name in ("keys", "values")}
    found = oplet_chain([TABLE, INSERT, Step("LookupTableExportV2", "table", "k:STRING v:INT64", EXPORT)], feeds)
    assert (found["k"].tolist(), found["v"].tolist()) == ([b"a", b"b\0"], [3, 2])


def test_anonymous_tables_are_new_each_time() -> None:
    made = {key: value for key, value in MUTABLE.items() if key != "shared_name"}
    steps = [Step("AnonymousMutableHashTable", "", "table:RESOURCE", made), SIZE, INSERT, SIZE._replace(outputs="after:INT64")]
    feeds = {name: FEEDS[name] for name in ("keys", "values")}
    interpreter = Interpreter(model_content=chain_model(steps, feeds), plugins=["oplet-flex-ops"])
    for _ in range(2):
        assert [int(value) for value in invoke(interpreter, *feeds.values())] == [0, 2]


@pytest.mark.parametrize("name", ["counts", ""])
def test_state_goes_on_from_run_to_run_and_is_one_interpreter_s(name: str) -> None:
    feeds = {"keys": _words(b"a"), "values": np.array([1], np.int64)}
    steps = [TABLE._replace(attributes=MUTABLE | {"shared_name": name}), SIZE, INSERT]
    model = chain_model(steps, feeds)
    first, second = (Interpreter(model_content=model, plugins=["oplet-flex-ops"]) for _ in range(2))
    sizes = [int(invoke(interpreter, *feeds.values())[0]) for interpreter in (first, first, second, first)]
    assert sizes == [0, 1, 0, 1]


def test_a_refusal_says_what_is_wrong() -> None:
    feeds = {name: FEEDS[name] for name in ("some", "other")}
    with pytest.raises(OpletError, match="was not filled yet"):
        oplet_chain([STATIC, FIND], feeds)
    interpreter = Interpreter(model_content=_find_model(), plugins=["oplet-flex-ops"])
    with pytest.raises(OpletError, match="holds no table"):
        invoke(interpreter, np.array(None, object), *feeds.values())


def _find_model() -> bytes:
    from plugins.flex_ops.tests.nodedefs import flex_options

    from oplet_testing import Spec, one_op_model

    inputs = [Spec(TensorType.RESOURCE, []), Spec(TensorType.STRING, [3]), Spec("int64", [])]
    return one_op_model(
        "FlexLookupTableFindV2", inputs, [Spec("int64", [3])], custom_options=flex_options("LookupTableFindV2", STRINGS)
    )
