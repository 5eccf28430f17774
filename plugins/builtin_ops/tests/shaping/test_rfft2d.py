"""RFFT2D against LiteRT."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oplet.errors import OpletError
from oplet_testing import one_op_model, run_op
from oplet_testing.one_op import Spec


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("lengths", [(4, 8), (8, 4), (16, 2), (2, 16), (4, 4)])
@pytest.mark.parametrize("shape", [(4, 8), (2, 3, 5, 7)])
def test_equals_litert(litert: Callable[..., Any], shape: Any, lengths: Any, constant: bool) -> None:
    source, sizes = np.random.default_rng(1).normal(size=shape).astype(np.float32), np.array(lengths, np.int32)
    model = one_op_model(
        "RFFT2D", [Spec("float32", shape), sizes if constant else Spec("int32", (2,))], [Spec("complex64", (1,) * len(shape))]
    )
    feeds = [source] if constant else [source, sizes]
    mine, theirs = run_op(model, *feeds)[0], litert(model, *feeds)[0]
    assert mine.dtype == np.complex64
    np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("lengths", [(0, 4), (4, 0), (-1, 4)])
def test_refuses_lengths_that_are_not_above_0(lengths: Any) -> None:
    model = one_op_model("RFFT2D", [Spec("float32", (4, 4)), np.array(lengths, np.int32)], [Spec("complex64", (1, 1))])
    with pytest.raises(OpletError, match=r"length -?\d is not above 0"):
        run_op(model, np.zeros((4, 4), np.float32))


def discrete_fourier(length: int) -> Any:
    """The matrix of a transform, from its definition."""
    return np.exp(-2j * np.pi * np.outer(np.arange(length), np.arange(length)) / length)


@pytest.mark.parametrize("shape", [(3, 5, 9), (1, 80), (2, 2, 7, 100)])
@pytest.mark.parametrize("height", [1, 2, 3, 5, 12, 31])
@pytest.mark.parametrize("width", [1, 2, 3, 6, 7, 80, 97, 129])
@pytest.mark.parametrize("constant", [True, False])
def test_transforms_of_any_length_are_the_definition_s(shape: Any, height: int, width: int, constant: bool) -> None:
    source, sizes = np.random.default_rng(4).normal(size=shape).astype(np.float32), np.array([height, width], np.int32)
    model = one_op_model(
        "RFFT2D", [Spec("float32", shape), sizes if constant else Spec("int32", (2,))], [Spec("complex64", (1,) * len(shape))]
    )
    padded = np.zeros((*shape[:-2], height, width))
    part = source[..., :height, :width]
    padded[..., : part.shape[-2], : part.shape[-1]] = part
    expected = (discrete_fourier(height) @ padded @ discrete_fourier(width))[..., : width // 2 + 1]
    [mine] = run_op(model, *([source] if constant else [source, sizes]))
    np.testing.assert_allclose(mine, expected, rtol=1e-5, atol=1e-4)


def test_an_angle_of_a_negative_sum_is_tensorflow_s_where_litert_has_none() -> None:
    model = one_op_model("RFFT2D", [Spec("float32", (1, 80)), np.array([1, 80], np.int32)], [Spec("complex64", (1, 41))])
    [mine] = run_op(model, np.full((1, 80), -1, np.float32))
    assert mine[0, 0] == -80
    assert np.angle(mine[0, 0]) == np.float32(np.pi)


@pytest.mark.parametrize("poison", [None, np.nan, np.inf])
@pytest.mark.parametrize("lengths", [(1, 2), (1, 8), (2, 2), (2, 8), (4, 4), (8, 16)])
def test_the_imaginary_part_of_what_is_real_is_litert_s_negative_zero(
    litert: Callable[..., Any], lengths: Any, poison: float | None
) -> None:
    source = np.random.default_rng(2).normal(size=(3, *lengths)).astype(np.float32)
    if poison is not None:
        source[:, 0, 1] = poison
    height, width = lengths
    model = one_op_model(
        "RFFT2D", [Spec("float32", source.shape), np.array(lengths, np.int32)], [Spec("complex64", (3, height, width // 2 + 1))]
    )
    mine, theirs = run_op(model, source)[0].imag, litert(model, source)[0].imag
    places = np.ix_([0, 1, 2], sorted({0, height // 2}), [0, width // 2])
    assert not mine[places].any()
    assert np.signbit(mine[places]).all()
    assert not theirs[places].any()
    assert np.signbit(theirs[places]).all()
    if poison is None:
        np.testing.assert_array_equal(np.signbit(mine), np.signbit(theirs))
