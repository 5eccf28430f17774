"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

Array = np.ndarray[Any, Any]


def run(op: str, values: Array, blocks: Any, margins: Any, constant: bool = True, quantization: Any = ()) -> Array:
    extra = [np.array(blocks, np.int32), np.array(margins, np.int32)]
    model = one_op_model(
        op,
        [Spec(values.dtype, values.shape, *quantization), *(extra if constant else [Spec("int32", e.shape) for e in extra])],
        [Spec(values.dtype, (1,) * values.ndim, *quantization)],
        version=3,
    )
    return run_op(model, values, *([] if constant else extra))[0]


def by_the_definition(values: Array, blocks: list[int], margins: list[list[int]], padding: int) -> Array:
    """As TensorFlow's documentation puts it: pad, cut into blocks, and move the places within a block to the front."""
    padded = np.pad(values, [(0, 0), *map(tuple, margins), (0, 0)], constant_values=padding)
    cut = [padded.shape[0]]
    for dim, block in zip(padded.shape[1:], blocks):
        cut += [dim // block, block]
    n = len(blocks)
    order = [*range(2, 2 * n + 1, 2), 0, *range(1, 2 * n, 2), 2 * n + 1]
    return padded.reshape(*cut, padded.shape[-1]).transpose(order).reshape(-1, *cut[1::2], padded.shape[-1])


CASES = [
    ((2, 4, 6, 3), [2, 3], [[0, 0], [0, 0]]),
    ((1, 3, 4, 1), [2, 2], [[1, 0], [2, 2]]),
    ((1, 3, 2, 2), [4, 1], [[4, 5], [0, 1]]),
    ((2, 5, 2), [3], [[0, 1]]),
]


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("shape", "blocks", "margins"), CASES)
def test_there_and_back(shape: tuple[int, ...], blocks: list[int], margins: list[list[int]], constant: bool) -> None:
    values = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    batched = run("SPACE_TO_BATCH_ND", values, blocks, margins, constant)
    np.testing.assert_array_equal(batched, by_the_definition(values, blocks, margins, 0))
    np.testing.assert_array_equal(run("BATCH_TO_SPACE_ND", batched, blocks, margins, constant), values)


@pytest.mark.parametrize("type", ["int8", "uint8"])
def test_the_padding_of_quantized_values_is_their_zero_point(type: str) -> None:
    values = np.ones((1, 1, 1, 1), type)
    assert run("SPACE_TO_BATCH_ND", values, [1, 2], [[0, 0], [0, 3]], quantization=(0.5, 7)).ravel().tolist() == [1, 7, 7, 7]


@pytest.mark.parametrize(
    ("op", "shape", "blocks", "margins", "reason"),
    [
        ("SPACE_TO_BATCH_ND", (1, 3, 4, 1), [2, 2], [[0, 0], [0, 0]], "length 3, which blocks of 2 do not divide"),
        ("SPACE_TO_BATCH_ND", (1, 2, 2, 1), [2, 0], [[0, 0], [0, 0]], r"\[2, 0\] must be above zero"),
        ("SPACE_TO_BATCH_ND", (1, 2, 2, 1), [1, 1], [[0, -1], [0, 0]], "must not be negative"),
        ("SPACE_TO_BATCH_ND", (1, 2), [1], [[0, 0]], "3 or 4 dimensions"),
        ("BATCH_TO_SPACE_ND", (3, 2, 2, 1), [2, 1], [[0, 0], [0, 0]], r"batch of 3, which blocks of \[2, 1\] do not divide"),
        ("BATCH_TO_SPACE_ND", (4, 2, 2, 1), [0, 0], [[0, 0], [0, 0]], "must be above zero"),
        ("BATCH_TO_SPACE_ND", (4, 1, 1, 1), [2, 2], [[2, 1], [0, 0]], "take more than"),
        ("BATCH_TO_SPACE_ND", (4, 1, 1, 1), [2], [[0, 0]], "2 spatial axes"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(op: str, shape: tuple[int, ...], blocks: Any, margins: Any, reason: str) -> None:
    with pytest.raises(OpletError, match=reason):
        run(op, np.zeros(shape, np.float32), blocks, margins)
