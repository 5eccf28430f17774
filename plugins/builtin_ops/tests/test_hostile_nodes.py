"""Nodes that fuzzing made, refused or run for what they are."""

from __future__ import annotations

import numpy as np
import pytest

from oplet import ModelBuilder
from oplet.errors import PrepareError
from oplet_testing import Spec, one_op_model, run_op


def test_an_inverse_root_whose_scales_vanish_is_at_the_zero_point() -> None:
    model = one_op_model("RSQRT", [Spec("int8", [4], [1e-45], [0])], [Spec("int8", [4], [1e-30], [5])])
    assert run_op(model, np.ones(4, np.int8))[0].tolist() == [5] * 4


def test_a_dimension_beyond_32_bits_is_refused() -> None:
    pads = np.array([[0, 0], [2**31 - 1, 1]], np.int32)
    model = one_op_model("PAD", [Spec("float32", [0, 1]), pads], [Spec("float32", [0, 1])])
    with pytest.raises(PrepareError, match="a dimension is at most 2147483647"):
        run_op(model, np.zeros((0, 1), np.float32))


def test_a_resize_whose_output_is_declared_of_another_type_takes_the_input_s() -> None:
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    x, size = graph.add_tensor("x", "float32", [1, 2, 2, 1]), graph.add_tensor("size", "int32", [2])
    y = graph.add_tensor("y", "int32", [1, 2, 2, 1])
    graph.add_operator("RESIZE_NEAREST_NEIGHBOR", [x, size], [y])
    graph.set_inputs(x, size)
    graph.set_outputs(y)
    pixels = np.arange(4, dtype=np.float32).reshape(1, 2, 2, 1) + 0.5
    for _ in range(2):
        [got] = run_op(builder.to_bytes(), pixels, np.array([2, 2], np.int32))
        np.testing.assert_array_equal(got, pixels)


def test_random_numbers_are_the_same_however_many_are_drawn_at_a_time() -> None:
    from oplet.schema.options import RandomOptions

    def draw(count: int) -> np.ndarray:
        shape = np.array([count], np.int32)
        model = one_op_model("RANDOM_UNIFORM", [Spec("int32", [1])], [Spec("float32", [1])], RandomOptions(seed=3, seed2=4))
        [got] = run_op(model, shape)
        return np.asarray(got)

    many = draw(600_001)
    np.testing.assert_array_equal(many[:1000], draw(1000))
    assert len(np.unique(many[-1000:])) > 900
