"""LiteRtMaxUnpooling2D puts values where TensorFlow's argmax says, and nowhere else."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from oplet_testing import OpContract, one_op_model
from oplet_testing.one_op import Spec

SAME, VALID = 1, 2
RANDOM = np.random.default_rng(4)


def options(padding: int, strides: tuple[int, int], window: tuple[int, int]) -> bytes:
    return struct.pack("<10i", padding, strides[1], strides[0], window[1], window[0], 0, 9, 9, 9, 9)


def unpool(run_node: Any, values: Any, places: Any, given: bytes) -> Any:
    inputs = [Spec(each.dtype, each.shape) for each in (values, places)]
    [found] = run_node("LiteRtMaxUnpooling2D", inputs, [Spec("float32", [1, 1, 1, 1])], values, places, options=given)
    return found


@pytest.mark.parametrize(
    ("given", "size"),
    [
        (options(SAME, (2, 3), (2, 3)), (4, 12)),
        (options(VALID, (2, 3), (2, 2)), (4, 11)),
        (options(VALID, (1, 1), (4, 5)), (5, 8)),
    ],
)
def test_values_are_put_where_they_were(given: bytes, size: tuple[int, int], run_node: Any) -> None:
    values = RANDOM.normal(size=(2, 2, 4, 3)).astype(np.float32)
    count = size[0] * size[1] * 3
    places = np.stack([RANDOM.permutation(count)[:24] for _ in range(2)]).reshape(values.shape).astype(np.int32)
    wanted = np.zeros((2, count), np.float32)
    for image in range(2):
        for place, value in zip(places[image].reshape(-1), values[image].reshape(-1)):
            wanted[image, place] = value
    np.testing.assert_array_equal(unpool(run_node, values, places, given), wanted.reshape(2, *size, 3))


def test_of_two_values_for_one_place_the_later_stays(run_node: Any) -> None:
    values = np.arange(1, 5, dtype=np.float32).reshape(1, 2, 2, 1)
    found = unpool(run_node, values, np.full((1, 2, 2, 1), 3, np.int32), options(SAME, (2, 2), (2, 2)))
    assert found.reshape(-1).tolist() == [0, 0, 0, 4, *[0] * 12]


@pytest.mark.parametrize("place", [-1, 16, 2**31 - 1, -(2**31)])
def test_places_outside_are_refused(place: int, run_node: Any) -> None:
    places = np.array([0, 1, place, 2], np.int32).reshape(1, 2, 2, 1)
    with pytest.raises(RuntimeError, match="an image has 0 to 15.*LiteRtMaxUnpooling2D"):
        unpool(run_node, np.ones((1, 2, 2, 1), np.float32), places, options(SAME, (2, 2), (2, 2)))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (options(0, (2, 2), (2, 2)), "padding"),
        (options(SAME, (0, 2), (2, 2)), "strides"),
        (options(VALID, (2, 2), (2, -1)), "window"),
        (b"1234", "4 bytes"),
    ],
)
def test_options_that_no_pool_has_are_refused(given: bytes, reason: str, run_node: Any) -> None:
    with pytest.raises(RuntimeError, match=f"{reason}.*LiteRtMaxUnpooling2D"):
        unpool(run_node, np.ones((1, 2, 2, 1), np.float32), np.zeros((1, 2, 2, 1), np.int32), given)


VALUES, PLACES = np.arange(1, 13, dtype=np.float32).reshape(1, 2, 3, 2), np.arange(12, dtype=np.int32).reshape(1, 2, 3, 2)


class TestContract(OpContract):
    inputs = (VALUES, PLACES)
    model = one_op_model(
        "LiteRtMaxUnpooling2D", [Spec(each.dtype, each.shape) for each in inputs], [Spec("float32", (1, 4, 6, 2))],
        custom_options=options(SAME, (2, 2), (2, 2)),
    )  # fmt: skip
    resized = tuple(np.concatenate([each, each]) for each in inputs)
