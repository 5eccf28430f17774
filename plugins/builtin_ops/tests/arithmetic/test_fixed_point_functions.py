"""Fixed-point functions: close to the real ones, and the same number by number as in arrays."""

from __future__ import annotations

import numpy as np

from oplet.kernels.fixed_point import rounding_divide_by_pot, wrapping_divide_by_pot
from oplet_builtin_ops.arithmetic.fixed_point_functions import inverse_square_root, logarithm


def test_inverse_square_roots_come_as_multiplier_and_shift() -> None:
    x = np.array([2, 3, 4, 100, 65025, 2**29 - 1, 2**29, 2**31 - 1] * 2)
    factors, shifts = inverse_square_root(x)
    np.testing.assert_allclose(factors * 2.0 ** (shifts - 31), 1 / np.sqrt(x), rtol=1e-5)
    for i, value in enumerate(x):
        factor, shift = inverse_square_root(np.array([value]))
        assert (factor[0], shift[0]) == (factors[i], shifts[i])


def test_the_inverse_square_root_of_0_is_that_of_1() -> None:
    factors, shifts = inverse_square_root(np.array([[0, 1]]))
    assert factors.tolist() == [[2**31 - 1, 2**31 - 1]]
    assert shifts.tolist() == [[0, 0]]
    assert inverse_square_root(np.zeros((0, 1), np.int32))[0].shape == (0, 1)


def test_logarithms() -> None:
    x = np.geomspace(2**19, 2**31 - 1, 50).astype(np.int64)
    logarithms = logarithm(x)
    np.testing.assert_allclose(logarithms / 2.0**26, np.log(x / 2.0**19), atol=5e-8)
    assert [int(logarithm(x[i : i + 1])[0]) for i in range(50)] == logarithms.tolist()


def test_shifts_inside_the_width_round_and_others_do_as_x86_does() -> None:
    x = np.random.default_rng(0).integers(-(2**31), 2**31, 500).astype(np.int32)
    for exponent in (0, 1, 7, 30, 31):
        np.testing.assert_array_equal(wrapping_divide_by_pot(x, exponent), rounding_divide_by_pot(x, exponent))
    # -1 shifts by 31; under a mask of all ones, what is not negative is carried.
    assert wrapping_divide_by_pot([5, 0, -5], -1).tolist() == [1, 1, -1]
    # 40 shifts by 8.
    assert wrapping_divide_by_pot([0, 1000, -1000], 40).tolist() == [1, 4, -4]
