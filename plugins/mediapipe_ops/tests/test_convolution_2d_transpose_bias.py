"""Convolution2DTransposeBias adds each input pixel's stamp to an output that begins as the bias."""

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

OP = "Convolution2DTransposeBias"
SAME, VALID = 1, 2


def options(padding: int = SAME, down: int = 2, across: int = 2) -> bytes:
    return struct.pack("<3i", padding, across, down)


def stamped(x: Any, weights: Any, bias: Any, shape: tuple[int, int], strides: tuple[int, int], padded: tuple[int, int]) -> Any:
    """The rule, pixel by pixel, in float64."""
    batch, rows, columns, _ = x.shape
    filters, height, width, _ = weights.shape
    y = np.zeros((batch, *shape, filters)) + bias
    for n, row, column, i, j in product(range(batch), range(rows), range(columns), range(height), range(width)):
        at = row * strides[0] - padded[0] + i, column * strides[1] - padded[1] + j
        if 0 <= at[0] < shape[0] and 0 <= at[1] < shape[1]:
            y[(n, *at)] += weights[:, i, j].astype(float) @ x[n, row, column]
    return y


def test_one_pixel_becomes_its_stamp(run_node: Any) -> None:
    weights = np.arange(1, 5, dtype=np.float32).reshape(1, 2, 2, 1)
    x = np.array([10, 100], np.float32).reshape(1, 1, 2, 1)
    outputs = [Spec("float32", [1, 2, 4, 1])]
    [y] = run_node(OP, [Spec("float32", x.shape), weights, np.float32([0.5])], outputs, x, options=options())
    np.testing.assert_array_equal(y[0, :, :, 0], [[10.5, 20.5, 100.5, 200.5], [30.5, 40.5, 300.5, 400.5]])


#: Input size, window, stride, declared output and padding of an axis; the padding that comes before.
AXES = [
    (4, 2, 2, 8, SAME, 0),
    (4, 4, 2, 8, SAME, 1),
    (5, 3, 2, 9, SAME, 1),
    (5, 3, 2, 10, SAME, 0),
    (4, 5, 3, 11, SAME, 1),
    (5, 3, 2, 11, VALID, 0),
    (5, 3, 2, 12, VALID, 0),
    (3, 3, 1, 5, VALID, 0),
]


@pytest.mark.parametrize(("size", "window", "stride", "declared", "padding", "before"), AXES)
def test_it_computes_what_the_rule_and_litert_s_delegate_do(
    size: int, window: int, stride: int, declared: int, padding: int, before: int, run_node: Any
) -> None:
    x, weights, bias = numbers(2, size, size, 3), numbers(4, window, window, 3), numbers(4)
    inputs, outputs = [Spec("float32", x.shape), weights, bias], [Spec("float32", [2, declared, declared, 4])]
    [y] = run_node(OP, inputs, outputs, x, options=options(padding, stride, stride))
    expected = stamped(x, weights, bias, (declared, declared), (stride, stride), (before, before))
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    model = one_op_model(OP, inputs, outputs, custom_options=options(padding, stride, stride))
    [theirs] = run_op(model, x, interpreter=LiteRT)
    np.testing.assert_allclose(y, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("size", "window", "strides", "padding", "shape", "before"),
    [
        ((5, 4), (3, 2), (2, 3), SAME, (9, 10), (1, 0)),  # MediaPipe's kernel makes as many rows as it has data for
        ((2, 3), (1, 2), (3, 4), VALID, (4, 10), (0, 0)),
        ((2, 3), (2, 1), (3, 4), SAME, (5, 9), (0, 0)),
    ],
)
def test_without_a_fitting_declared_size_it_is_the_one_of_mediapipe_s_kernel(
    size: tuple[int, int], window: Any, strides: Any, padding: int, shape: Any, before: Any, run_node: Any
) -> None:
    x, weights, bias = numbers(1, *size, 2), numbers(3, *window, 2), numbers(3)
    inputs, outputs = [Spec("float32", [1, 40, 40, 2]), weights, bias], [Spec("float32", [1, 200, 200, 3])]
    [y] = run_node(OP, inputs, outputs, x, options=options(padding, *strides), resize=True)
    np.testing.assert_allclose(y, stamped(x, weights, bias, shape, strides, before), rtol=1e-5, atol=1e-5)


def test_filters_and_bias_may_be_computed(run_node: Any) -> None:
    x, weights, bias = numbers(1, 3, 3, 2), numbers(2, 3, 3, 2), numbers(2)
    inputs = [Spec("float32", a.shape) for a in (x, weights, bias)]
    [y] = run_node(OP, inputs, [Spec("float32", [1, 6, 6, 2])], x, weights, bias, options=options())
    np.testing.assert_allclose(y, stamped(x, weights, bias, (6, 6), (2, 2), (0, 0)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", [(0, 2, 2, 1), (1, 0, 2, 1), (1, 2, 0, 1)])
def test_nothing_comes_of_nothing(shape: tuple[int, ...], run_node: Any) -> None:
    inputs = [Spec("float32", [1, 2, 2, 1]), numbers(1, 2, 2, 1), numbers(1)]
    [y] = run_node(OP, inputs, [Spec("float32", [1, 4, 4, 1])], numbers(*shape), options=options(), resize=True)
    assert y.shape == tuple(2 * n if axis in (1, 2) else n for axis, n in enumerate(shape))


X, W, B, Y = Spec("float32", [1, 2, 2, 3]), numbers(4, 2, 2, 3), numbers(4), Spec("float32", [1, 4, 4, 4])


@pytest.mark.parametrize(
    ("inputs", "outputs", "given", "reason"),
    [
        ([X, W], [Y], options(), "has 2 inputs and takes 3"),
        ([X, W, None], [Y], options(), r"input 2 is left out"),
        ([X, W, B], [Y, Y], options(), "has 2 outputs and gives 1"),
        ([X, W, numbers(3)], [Y], options(), "bias.*one value for each"),
        ([X, numbers(4, 2, 2, 2), B], [Y], options(), "same last dimension"),
        ([Spec("float32", [2, 2, 3]), W, B], [Y], options(), "4 dimensions"),
        ([X, W.astype("float16"), B], [Y], options(), "FLOAT16"),
        ([X, W, B], [Y], options()[:8], "8 bytes.*3 integers"),
        ([X, W, B], [Y], b"", "0 bytes"),
        ([X, W, B], [Y], options(padding=0), "padding 0"),
        ([X, W, B], [Y], options(down=0), "strides.*0 x 2"),
        ([X, W, B], [Y], options(across=-1), "strides.*2 x -1"),
        ([X, W, B], [Y], options(down=2**31 - 1, across=2**31 - 1), ""),
    ],
)
def test_it_refuses(inputs: Any, outputs: Any, given: bytes, reason: str, run_node: Any) -> None:
    feeds = [np.zeros(i.shape, "float32") for i in inputs if isinstance(i, Spec)]
    with pytest.raises(RuntimeError, match=rf"(?s){reason}"):
        run_node(OP, inputs, outputs, *feeds, options=given)
