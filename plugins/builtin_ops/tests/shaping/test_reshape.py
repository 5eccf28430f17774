"""RESHAPE, SQUEEZE, EXPAND_DIMS and SHAPE: the values stay, the shape changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet import Interpreter
from oplet.errors import OpletError
from oplet.schema.enums import TensorType
from oplet.schema.options import ReshapeOptions, ShapeOptions, SqueezeOptions
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


def reshape(shape: tuple[int, ...], wanted: list[int], *, constant: bool = True) -> np.ndarray:
    values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    vector = np.array(wanted, np.int32)
    given = vector if constant else Spec("int32", vector.shape)
    model = one_op_model("RESHAPE", [Spec("float32", shape), given], [Spec("float32", shape)])
    (output,) = run_op(model, values) if constant else run_op(model, values, vector)
    np.testing.assert_array_equal(output.ravel(), values.ravel())
    return output


@pytest.mark.parametrize("wanted", [[0, 3, 4], [0, 12], [2, 0, 2]])
def test_the_only_zero_of_a_constant_shape_is_free_as_in_xnnpack(wanted: list[int], litert: Callable[..., Any]) -> None:
    """A converter that does not know a dimension may write 0."""
    values = np.arange(48, dtype=np.float32).reshape(4, 3, 4)
    vector = np.array(wanted, np.int32)
    model = one_op_model("RESHAPE", [Spec("float32", (4, 3, 4)), vector], [Spec("float32", [dim or 1 for dim in wanted])])
    [found], [theirs] = run_op(model, values), litert(model, values, kernels=None)
    assert found.shape == theirs.shape
    np.testing.assert_array_equal(found, theirs)
    with pytest.raises(OpletError, match="has 48 elements"):
        reshape((4, 3, 4), wanted, constant=False)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("shape", "wanted", "result"),
    [
        ((2, 3), [3, 2], (3, 2)),
        ((2, 3), [-1], (6,)),
        ((2, 3), [1, -1, 2], (1, 3, 2)),
        ((1, 1), [], ()),
        ((0, 3), [-1, 3], (0, 3)),
        ((0, 3), [0, -1], (0, 3)),
        ((2, 0), [3, -1], (3, 0)),
    ],
)
def test_reshape_takes_the_shape_that_is_given(
    shape: tuple[int, ...], wanted: list[int], result: tuple[int, ...], constant: bool
) -> None:
    assert reshape(shape, wanted, constant=constant).shape == result


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ([-1, -1], r"\[-1, -1\] has more than one -1"),
        ([4, 2], r"has 6 elements, the new shape \[4, 2\] has 8"),
        ([5, -1], r"has 6 elements, the new shape \[5, -1\] has 5"),
        ([-2, 3], r"\[-2, 3\] has a dimension below -1"),
    ],
)
def test_reshape_refuses_shapes_that_do_not_fit(wanted: list[int], reason: str, constant: bool) -> None:
    with pytest.raises(OpletError, match=reason):
        reshape((2, 3), wanted, constant=constant)


@pytest.mark.parametrize(("shape", "hints"), [((4, 3), True), ((4, 2), False)])
def test_a_batch_that_the_fixed_shape_refuses_is_told_how_to_fit(shape: tuple[int, ...], hints: bool) -> None:
    with pytest.raises(OpletError, match="the new shape") as refused:
        reshape(shape, [1, 3], constant=True)
    assert ("oplet rewrite --batch N" in str(refused.value)) == hints
    with pytest.raises(OpletError, match="the new shape") as refused:
        reshape(shape, [1, 3], constant=False)
    assert "--batch" not in str(refused.value)


@pytest.mark.parametrize(("new_shape", "result"), [([2, -1], (2, 1)), ([0], ())])
def test_without_a_shape_tensor_reshape_goes_by_the_options(new_shape: list[int], result: tuple[int, ...]) -> None:
    size = int(np.prod(result))
    options = ReshapeOptions(new_shape=np.array(new_shape, np.int32))
    model = one_op_model("RESHAPE", [Spec("int64", (size,))], [Spec("int64", result)], options)
    assert run_op(model, np.arange(size))[0].shape == result


def test_strings_can_be_reshaped() -> None:
    words = np.array([b"a", b"bc", b"", b"d"], object)
    model = one_op_model("RESHAPE", [Spec("object", (4,)), np.array([2, 2], np.int32)], [Spec("object", (2, 2))])
    assert run_op(model, words)[0].tolist() == [[b"a", b"bc"], [b"", b"d"]]


@pytest.mark.parametrize(
    ("dims", "result"), [(None, (2, 3)), ([], (2, 3)), ([0], (2, 1, 3)), ([-2], (1, 2, 3)), ([2, 0, 2], (2, 3))]
)
def test_squeeze_drops_the_ones_that_are_named_or_all(dims: list[int] | None, result: tuple[int, ...]) -> None:
    options = SqueezeOptions(squeeze_dims=None if dims is None else np.array(dims, np.int32))
    model = one_op_model("SQUEEZE", [Spec("int8", (1, 2, 1, 3))], [Spec("int8", result)], options)
    values = np.arange(6, dtype=np.int8).reshape(1, 2, 1, 3)
    np.testing.assert_array_equal(run_op(model, values)[0], values.reshape(result))


@pytest.mark.parametrize(("dim", "reason"), [(1, "dimension 1 of .* is 2"), (7, "is 7, which a tensor of rank 3")])
def test_squeeze_refuses_what_is_not_one(dim: int, reason: str) -> None:
    model = one_op_model(
        "SQUEEZE", [Spec("int8", (1, 2, 3))], [Spec("int8", (2, 3))], SqueezeOptions(squeeze_dims=np.array([dim]))
    )
    with pytest.raises(OpletError, match=reason):
        run_op(model, np.zeros((1, 2, 3), np.int8))


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(("axis", "result"), [(0, (1, 2, 3)), (2, (2, 3, 1)), (-1, (2, 3, 1)), (-2, (2, 1, 3))])
@pytest.mark.parametrize("type", ["int32", "int64"])
def test_expand_dims_inserts_a_one(axis: int, result: tuple[int, ...], type: str, constant: bool) -> None:
    at = np.array(axis, type)
    model = one_op_model("EXPAND_DIMS", [Spec("float32", (2, 3)), at if constant else Spec(type, ())], [Spec("float32", result)])
    feeds = [np.ones((2, 3), np.float32)] + ([] if constant else [at])
    assert run_op(model, *feeds)[0].shape == result


@pytest.mark.parametrize("axis", [44, -4])
def test_expand_dims_refuses_an_axis_that_is_not_there(axis: int) -> None:
    model = one_op_model("EXPAND_DIMS", [Spec("float32", (2, 3)), np.array(axis, np.int32)], [Spec("float32", (2, 3, 1))])
    with pytest.raises(OpletError, match=f"axis is {axis}"):
        run_op(model, np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("type", [TensorType.INT32, TensorType.INT64])
def test_shape_is_known_before_anything_runs(type: TensorType) -> None:
    model = one_op_model("SHAPE", [Spec("float32", (2, 3))], [Spec(type, (2,))], ShapeOptions(out_type=type))
    interpreter = Interpreter(model_content=model)
    interpreter.resize_tensor_input(0, (4, 5, 6))
    interpreter.allocate_tensors()
    output = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert output.tolist() == [4, 5, 6]
    assert output.dtype == ("int32" if type == TensorType.INT32 else "int64")


def test_shape_refuses_to_count_in_floats() -> None:
    model = one_op_model("SHAPE", [Spec("float32", (2,))], [Spec("float32", (1,))], ShapeOptions(out_type=TensorType.FLOAT32))
    with pytest.raises(OpletError, match="out_type is"):
        run_op(model, np.zeros(2, np.float32))


def test_more_dimensions_than_arrays_have_are_counted_not_listed() -> None:
    model = one_op_model("RESHAPE", [Spec("float32", [1]), np.full(65535, 7, np.int32)], [Spec("float32", [1])])
    with pytest.raises(OpletError, match="the new shape has 65535 dimensions; 64 are possible"):
        run_op(model, np.zeros(1, np.float32))
