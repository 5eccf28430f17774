"""MaxPoolingWithArgmax2D says where it found each maximum, and MaxUnpooling2D puts it back there."""

from __future__ import annotations

import struct
from itertools import product
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from plugins.mediapipe_ops.tests.drawing import numbers

from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec

POOL, UNPOOL = "MaxPoolingWithArgmax2D", "MaxUnpooling2D"
SAME, VALID = 1, 2


def options(window: tuple[int, int], strides: tuple[int, int] = (0, 0), padding: int = VALID, activation: int = 0) -> bytes:
    down, across = strides if any(strides) else window
    # The struct ends with the padding that LiteRT computes, which means nothing in a file.
    return struct.pack("<10i", padding, across, down, window[1], window[0], activation, 9, 9, 9, 9)


def pool(run_node: Any, x: Any, given: bytes, type: str = "float32") -> Any:
    outputs = [Spec("float32", [1, 1, 1, 1]), Spec(type, [1, 1, 1, 1])]
    return run_node(POOL, [Spec("float32", x.shape)], outputs, x, options=given)


def unpool(run_node: Any, values: Any, positions: Any, given: bytes) -> Any:
    inputs = [Spec(a.dtype, a.shape) for a in (values, positions)]
    [y] = run_node(UNPOOL, inputs, [Spec("float32", [1, 1, 1, 1])], values, positions, options=given)
    return y


def pooled(x: Any, window: tuple[int, int], strides: tuple[int, int], padding: int) -> tuple[Any, Any]:
    """The rule, window by window."""
    batch, rows, columns, channels = x.shape
    sizes, before = [], []
    for size, k, s in zip((rows, columns), window, strides):
        sizes.append(-(-size // s) if padding == SAME else (size - k) // s + 1)
        before.append(max(0, (sizes[-1] - 1) * s + k - size) // 2)
    values, positions = np.zeros((2, batch, *sizes, channels))
    for n, row, column, c in product(range(batch), *map(range, sizes), range(channels)):
        best, where = np.finfo("float32").min, 0
        for i, j in product(*map(range, window)):
            y, z = row * strides[0] - before[0] + i, column * strides[1] - before[1] + j
            if 0 <= y < rows and 0 <= z < columns and x[n, y, z, c] > best:
                best, where = x[n, y, z, c], i * window[1] + j
        values[n, row, column, c], positions[n, row, column, c] = best, where
    return values, positions


@pytest.mark.parametrize("type", ["float32", "int32"])
@pytest.mark.parametrize(
    ("size", "window", "strides", "padding"),
    [
        ((4, 6), (2, 2), (2, 2), SAME),
        ((4, 6), (2, 3), (2, 3), VALID),
        ((5, 7), (3, 3), (2, 2), SAME),
        ((5, 7), (3, 2), (1, 3), VALID),
        ((3, 2), (7, 9), (2, 1), SAME),
        ((7, 7), (1, 2), (3, 3), SAME),
    ],
)
def test_maxima_and_positions(size: Any, window: Any, strides: Any, padding: int, type: str, run_node: Any) -> None:
    x = numbers(2, *size, 3)
    values, positions = pool(run_node, x, options(window, strides, padding), type)
    expected, places = pooled(x, window, strides, padding)
    np.testing.assert_array_equal(values, expected)
    if type == "float32":
        places = places.astype(np.float32) + np.float32(0.1)
    np.testing.assert_array_equal(positions, places)
    assert positions.dtype == type


def test_the_first_of_equals_counts_and_nan_never(run_node: Any) -> None:
    nan, low = np.nan, np.finfo("float32").min
    x = np.array([[1, 1, nan, 0, nan, nan], [1, 0, 2, nan, nan, nan]], np.float32).reshape(1, 2, 6, 1)
    values, positions = pool(run_node, x, options((2, 2)), "int32")
    np.testing.assert_array_equal(values.ravel(), np.array([1, 2, low], "float32"))
    assert positions.ravel().tolist() == [0, 2, 0]


@pytest.mark.parametrize(("activation", "low", "high"), [(1, 0, np.inf), (2, -1, 1), (3, 0, 6)])
def test_an_activation_changes_values_only(activation: int, low: float, high: float, run_node: Any) -> None:
    x = 5 * numbers(1, 4, 4, 2)
    values, positions = pool(run_node, x, options((2, 2), activation=activation))
    plain, places = pool(run_node, x, options((2, 2)))
    np.testing.assert_array_equal(values, np.clip(plain, low, high))
    np.testing.assert_array_equal(positions, places)


def test_litert_s_delegate_finds_the_same_maxima(run_node: Any) -> None:
    x = numbers(1, 4, 6, 2)
    outputs = [Spec("float32", [1, 2, 3, 2])] * 2
    model = one_op_model(POOL, [Spec("float32", x.shape)], outputs, custom_options=options((2, 2)))
    theirs, places = run_op(model, x, interpreter=LiteRT)
    values, positions = pool(run_node, x, options((2, 2)), "int32")
    np.testing.assert_array_equal(values, theirs)
    columnwise = places.view(np.int32)  # the delegate's own numbering, in its own encoding
    np.testing.assert_array_equal(positions, columnwise % 2 * 2 + columnwise // 2)


@pytest.mark.parametrize("type", ["float32", "int32"])
@pytest.mark.parametrize("window", [(2, 2), (3, 2), (1, 4)])
def test_unpooling_puts_back_what_pooling_found(window: tuple[int, int], type: str, run_node: Any) -> None:
    x = numbers(2, 3 * window[0], 2 * window[1], 3)
    values, positions = pool(run_node, x, options(window), type)
    y = unpool(run_node, values, positions, options(window))
    np.testing.assert_array_equal(y, np.where(np.isin(x, values), x, 0))


def test_where_windows_overlap_the_later_value_stays(run_node: Any) -> None:
    values, positions = numbers(2, 3, 4, 2), np.random.default_rng(0).integers(0, 6, (2, 3, 4, 2)).astype("int32")
    expected = np.zeros((2, 9, 8, 2), "float32")
    for n, row, column, c in product(*map(range, values.shape)):
        i, j = divmod(positions[n, row, column, c], 2)
        expected[n, row * 2 + i, column + j, c] = values[n, row, column, c]
    y = unpool(run_node, values, positions, options((3, 2), (2, 1)))
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("shape", [(0, 2, 2, 1), (1, 0, 2, 1), (1, 2, 2, 0)])
def test_nothing_comes_of_no_pixels(shape: tuple[int, ...], run_node: Any) -> None:
    x = np.zeros(shape, "float32")
    huge = 2**30
    values, positions = pool(run_node, x, options((huge, huge), (2, 2), SAME))
    assert values.shape == positions.shape == (shape[0], -(-shape[1] // 2), -(-shape[2] // 2), shape[3])
    y = unpool(run_node, x, x, options((3, 2)))
    assert y.shape == (shape[0], shape[1] * 3, shape[2] * 2, shape[3])


def test_a_window_that_barely_fails_to_fit_gives_nothing(run_node: Any) -> None:
    values, positions = pool(run_node, numbers(1, 4, 4, 1), options((5, 7), (2, 2)))
    assert values.shape == positions.shape == (1, 0, 0, 1)


@pytest.mark.parametrize("wrong", [-1, 4, 1e20, -np.inf, np.nan])
def test_a_position_outside_the_window_is_refused(wrong: float, run_node: Any) -> None:
    values, positions = numbers(1, 2, 2, 1), np.array([0, 3.9, -0.9, wrong], "float32").reshape(1, 2, 2, 1)
    with pytest.raises(RuntimeError, match=r"a window of \(2, 2\) has 0 to 3"):
        unpool(run_node, values, positions, options((2, 2)))


X, Y = Spec("float32", [1, 4, 4, 1]), Spec("float32", [1, 2, 2, 1])


@pytest.mark.parametrize(
    ("op", "inputs", "outputs", "given", "reason"),
    [
        (POOL, [X, X], [Y, Y], options((2, 2)), "has 2 inputs and takes 1"),
        (POOL, [X], [Y], options((2, 2)), "has 1 outputs and gives 2"),
        (POOL, [X], [Y, Spec("int64", [1])], options((2, 2)), "INT64"),
        (POOL, [Spec("int8", [1, 4, 4, 1])], [Y, Y], options((2, 2)), "INT8"),
        (POOL, [Spec("float32", [4, 4])], [Y, Y], options((2, 2)), "4 dimensions"),
        (POOL, [X], [Y, Y], options((9, 2), (2, 2)), r"window of \(9, 2\) does not fit"),
        (POOL, [X], [Y, Y], options((2, -2), (2, 2)), "window.*2 x -2"),
        (POOL, [X], [Y, Y], options((2, 2), (2, -2)), "strides.*2 x -2"),
        (POOL, [X], [Y, Y], options((2, 2), padding=3), "padding 3"),
        (POOL, [X], [Y, Y], options((2, 2), activation=4), "TANH"),
        (POOL, [X], [Y, Y], options((2, 2), activation=77), "activation 77"),
        (POOL, [X], [Y, Y], options((2, 2))[:20], "20 bytes"),
        (UNPOOL, [X], [Y], options((2, 2)), "inputs and takes 2"),
        (UNPOOL, [X, Y], [Y], options((2, 2)), "shape of the values"),
        (UNPOOL, [X, Spec("float16", X.shape)], [Y], options((2, 2)), "FLOAT16"),
        (UNPOOL, [X, X], [Y], options((2, 2), (3, 2)), "strides 3 x 2 must not exceed"),
        (UNPOOL, [X, X], [Y], options((2**31 - 1, 2**31 - 1)), ""),
    ],
)
def test_it_refuses(op: str, inputs: Any, outputs: Any, given: bytes, reason: str, run_node: Any) -> None:
    with pytest.raises(RuntimeError, match=rf"(?s){reason}"):
        run_node(op, inputs, outputs, *(np.zeros(i.shape, i.type) for i in inputs), options=given)
