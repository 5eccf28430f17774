"""TRANSPOSE: every order of axes, on one thread and on several, moves the same numbers as numpy's."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from plugins.compiled_ops.tests.compiled import compiled

from oplet import Interpreter
from oplet.schema.options import TransposeOptions
from oplet_testing import Spec, invoke, one_op_model


def transposed(x: np.ndarray, perm: tuple[int, ...], threads: int) -> tuple[np.ndarray, bool]:
    """The output, and whether the compiled kernel made it."""
    shape = tuple(x.shape[axis] for axis in perm)
    inputs = [Spec(x.dtype.name, x.shape), np.array(perm, np.int32)]
    model = one_op_model("TRANSPOSE", inputs, [Spec(x.dtype.name, shape)], TransposeOptions())
    interpreter = Interpreter(model_content=model, num_threads=threads)
    [output] = invoke(interpreter, x)
    return output, compiled(interpreter) == 1


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("shape", [(3, 70, 50), (1, 3, 64, 65), (17, 5, 33, 9), (2, 40, 3, 80), (100, 130)])
def test_every_order_of_axes(shape: tuple[int, ...], dtype: str, threads: int) -> None:
    x = np.random.default_rng(0).integers(-100, 100, shape).astype(dtype)
    for perm in itertools.permutations(range(len(shape))):
        np.testing.assert_array_equal(transposed(x, perm, threads)[0], x.transpose(perm))


def test_bits_of_floats_stay_what_they_are() -> None:
    x = np.random.default_rng(0).integers(0, 1 << 32, (80, 90), np.uint32).view(np.float32)
    assert transposed(x, (1, 0), 1)[0].tobytes() == x.T.tobytes()


@pytest.mark.parametrize(
    ("shape", "perm", "served"),
    [
        ((1, 3, 64, 64), (0, 2, 3, 1), True),  # planes of an image become its channels
        ((4, 64, 64), (0, 2, 1), True),
        ((1, 64, 64, 3), (0, 3, 1, 2), False),
        ((8, 8), (1, 0), False),
        ((64, 1, 64), (1, 0, 2), False),  # nothing moves
    ],
)
def test_large_tensors_whose_last_axis_changes_are_served(shape: tuple[int, ...], perm: tuple[int, ...], served: bool) -> None:
    assert transposed(np.zeros(shape, np.float32), perm, 1)[1] is served
