"""Operators on ragged tensors give what TensorFlow gives, and refuse what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from plugins.flex_ops.tests.nodedefs import flex_options
from plugins.flex_ops.tests.sweeps import Case, difference, dtype_of

from oplet import Interpreter, ModelBuilder
from oplet import TensorType as T
from oplet_testing import invoke

rng = np.random.default_rng(31)


def splits(*ends: int) -> Any:
    return np.array(ends, np.int64)


def values(type: T, *shape: int) -> Any:
    whole = rng.integers(-9, 9, shape)
    if type == T.STRING:
        found = np.empty(whole.size, object)
        found[:] = [b"%d" % each for each in whole.ravel()]
        return found.reshape(shape)
    return whole.astype(dtype_of(type))


def ranges() -> Iterator[Case]:
    for type in (T.INT32, T.INT64, T.FLOAT32, T.FLOAT64):
        kind = dtype_of(type)
        for starts, limits, deltas in (
            ([2, 5, 8], [3, 5, 12], 1), (0, [3, 0, -2], 1), ([5, 5], [0, 9], [-2, 2]), ([0], [10], [3]), (0, 5, 1), ([1, 2], [3], 1),
            ([0], [1], [0]), ([0], [1], [-1]), ([], [], 1), ([0.5, -1.5], [7.3, 2.25], [0.7, 0.25]),
        ):  # fmt: skip
            for made in (T.INT32, T.INT64):
                inputs = [np.array(each).astype(kind) for each in (starts, limits, deltas)]
                yield Case("RaggedRange", inputs, {"T": type, "Tsplits": made}, 2)


def gathers() -> Iterator[Case]:
    one = [splits(0, 2, 2, 5)]
    two = [splits(0, 1, 3), splits(0, 2, 2, 6)]
    for type in (T.FLOAT32, T.STRING, T.INT8):
        for levels, x in ((one, values(type, 5)), (one, values(type, 5, 2)), (two, values(type, 6))):
            for indices in ([0, 1, 0], [], [[0, 1], [1, 1]], 1, [0, 9], [-1], [[[0], [1]]]):
                picks = np.array(indices, np.int32)
                rank = len(levels) + picks.ndim - 1
                given = {
                    "Tvalues": type, "Tindices": T.INT32, "Tsplits": T.INT64, "PARAMS_RAGGED_RANK": len(levels),
                    "OUTPUT_RAGGED_RANK": rank,
                }  # fmt: skip
                yield Case("RaggedGather", [*levels, x, picks], given, rank + 1)


def dense() -> Iterator[Case]:
    for type in (T.FLOAT32, T.STRING, T.INT64):
        for kinds, tensors, count in (
            (["ROW_SPLITS"], [splits(0, 2, 2, 5)], 5),
            (["ROW_SPLITS", "ROW_SPLITS"], [splits(0, 1, 3), splits(0, 2, 2, 6)], 6),
            (["FIRST_DIM_SIZE", "VALUE_ROWIDS"], [np.array(4, np.int64), splits(0, 0, 2, 3)], 4),
            (["FIRST_DIM_SIZE", "VALUE_ROWIDS", "ROW_SPLITS"], [np.array(2, np.int64), splits(0, 1, 1), splits(0, 1, 1, 4)], 4),
        ):
            given = {
                "T": type,
                "Tshape": T.INT64,
                "Tindex": T.INT64,
                "num_row_partition_tensors": len(kinds),
                "row_partition_types": kinds,
            }
            axes = len(kinds) + ("FIRST_DIM_SIZE" not in kinds)
            for inner in ((), (2,)):
                x = values(type, count, *inner)
                for shape in ([-1] * axes, [2] * axes, [9, *[1] * (axes - 1)], [0] * axes):
                    whole = splits(*shape, *(-1 for _ in inner))
                    yield Case("RaggedTensorToTensor", [whole, x, values(type), *tensors], given)
                yield Case("RaggedTensorToTensor", [np.array(-1, np.int64), x, values(type, *inner), *tensors], given)
                yield Case("RaggedTensorToTensor", [splits(-1), x, values(type), *tensors], given)
        for levels, count in (([splits(0, 2, 2, 5)], 5), ([splits(0, 1, 3), splits(0, 2, 2, 6)], 6)):
            for inner in ((), (2,), (2, 3)):
                given = {"T": type, "Tsplits": T.INT64, "RAGGED_RANK": len(levels)}
                yield Case("RaggedTensorToSparse", [*levels, values(type, count, *inner)], given, 3)
        yield Case("RaggedTensorToSparse", [splits(0, 9), values(type, 3)], {"T": type, "Tsplits": T.INT64, "RAGGED_RANK": 1}, 3)
        yield Case(
            "RaggedTensorToSparse", [splits(0, 2, 1, 3), values(type, 3)], {"T": type, "Tsplits": T.INT64, "RAGGED_RANK": 1}, 3
        )


SWEEPS = [ranges, gathers, dense]


@pytest.mark.sweep
@pytest.mark.parametrize("cases", SWEEPS)
def test_they_agree_with_tensorflow(cases: Callable[[], Iterator[Case]]) -> None:
    assert max(difference(case) for case in cases()) < 1e-6


def there_and_back(levels: list[Any], data: Any, *, batched: bool, inner: int, rank: int) -> list[Any]:
    """A ragged tensor that becomes variants and is read from them again."""
    builder = ModelBuilder("ragged variants")
    graph = builder.add_subgraph()
    given = [graph.add_tensor(f"splits_{n}", T.INT64, level.shape) for n, level in enumerate(levels)]
    given.append(graph.add_tensor("values", T.FLOAT32, data.shape))
    between = graph.add_tensor("variants", T.VARIANT, [])
    made = [graph.add_tensor(f"out_{n}", T.INT64, [1]) for n in range(rank)] + [graph.add_tensor("out_values", T.FLOAT32, [1])]
    graph.set_inputs(*given)
    graph.set_outputs(*made)
    shared = {"Tvalues": T.FLOAT32, "Tsplits": T.INT64}
    writing = {**shared, "RAGGED_RANK": len(levels), "batched_input": batched}
    reading = {**shared, "input_ragged_rank": inner, "output_ragged_rank": rank}
    for op, inputs, outputs, more in (
        ("RaggedTensorToVariant", given, [between], writing), ("RaggedTensorFromVariant", [between], made, reading),
    ):  # fmt: skip
        graph.add_operator(f"Flex{op}", inputs, outputs, custom_options=flex_options(op, more))
    return invoke(Interpreter(model_content=builder.to_bytes()), *levels, data)


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("inner", [-1, None])
def test_variants_give_back_the_ragged_tensor_that_they_were_made_of(batched: bool, inner: int | None) -> None:
    for levels, count in (([splits(0, 2, 2, 5)], 5), ([splits(0, 1, 3), splits(0, 2, 2, 6)], 6)):
        data = values(T.FLOAT32, count, 2)
        rank = len(levels)
        held = rank - 1 if batched else rank
        *found, back = there_and_back(levels, data, batched=batched, inner=held if inner is None else inner, rank=rank)
        np.testing.assert_array_equal(back, data)
        for a, b in zip(found, levels):
            np.testing.assert_array_equal(a, b)


def test_variants_of_another_depth_are_refused() -> None:
    with pytest.raises(RuntimeError, match="output_ragged_rank is 3"):
        there_and_back([splits(0, 2)], values(T.FLOAT32, 2), batched=True, inner=0, rank=3)
