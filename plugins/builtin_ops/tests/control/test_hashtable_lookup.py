from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import PrepareError
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

INT32 = np.iinfo(np.int32)


def model(count: int, keys: Any, values: Any) -> bytes:
    keys, values = np.array(keys, np.int32), np.asarray(values)
    return one_op_model(
        "HASHTABLE_LOOKUP",
        [Spec("int32", [count]), keys, values],
        [Spec(values.dtype, [count, *values.shape[1:]]), Spec("uint8", [count])],
    )


@pytest.mark.parametrize(
    "keys", [[-5, 0, 7, 9], [3, 3, 3, 3], [9, 7, 0, -5], [INT32.min, -1, 1, INT32.max], [INT32.max, INT32.min, 5, 0]]
)
@pytest.mark.parametrize("type", ["float32", "int64", "uint8"])
def test_rows_are_found_as_the_c_library_finds_them(keys: list[int], type: str, litert: Callable[..., Any]) -> None:
    wanted = np.array([*keys, 1, -6, INT32.min, INT32.max], np.int32)
    data = model(8, keys, np.arange(24).reshape(4, 3, 2).astype(type))
    for ours, theirs in zip(run_op(data, wanted), litert(data, wanted)):
        np.testing.assert_array_equal(ours, theirs)


def test_a_missing_key_gives_zeros_or_an_empty_string() -> None:
    rows, hits = run_op(model(3, [1, 2], [[1.0, 2.0], [3.0, 4.0]]), np.array([2, 5, 1], np.int32))
    assert (rows.tolist(), hits.tolist()) == ([[3, 4], [0, 0], [1, 2]], [1, 0, 1])
    words, hits = run_op(model(2, [1, 2], np.array([b"a", b"b"], object)), np.array([0, 2], np.int32))
    assert (words.tolist(), hits.tolist()) == ([b"", b"b"], [0, 1])


@pytest.mark.parametrize(
    ("keys", "values", "reason"),
    [
        ([1, 2], np.zeros((3, 1), np.float32), "not as many as the rows"),
        ([[1, 2]], np.zeros((1, 2), np.float32), "keys are a vector"),
        ([], np.zeros((0, 2), np.float32), "the table is empty"),
        ([1], np.array([[b"a"]], object), "are strings and no vector"),
    ],
)
def test_tables_that_make_no_sense_are_refused(keys: Any, values: Any, reason: str) -> None:
    with pytest.raises(PrepareError, match=reason):
        run_op(model(1, keys, values), np.zeros(1, np.int32))
