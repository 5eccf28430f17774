"""Long work of one call is cut, with the same results, or is refused before it begins where a deadline would pass; what it holds is charged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from plugins.text_ops.tests.meters import CountingMeter

from oplet.errors import DeadlineError, LimitError
from oplet.kernels import strings
from oplet.ops.ensure import swap_meter
from oplet_flex_ops.numerics import dense
from oplet_flex_ops.numerics.dense import portions
from oplet_flex_ops.numerics.matrices import solve_bands, solve_triangular
from oplet_flex_ops.ops.arrays import counting
from oplet_flex_ops.ops.linalg import einsum
from oplet_flex_ops.texts import fingerprints

_RNG = np.random.default_rng(0)


@pytest.fixture(name="meter")
def _meter() -> Iterator[CountingMeter]:
    """What counts looks at the clock and charges."""
    meter = CountingMeter()
    before = swap_meter(meter)
    yield meter
    swap_meter(before)


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4, 5), (2, 0, 3), (1, 1, 40), (5, 1, 2, 6)])
@pytest.mark.parametrize("most", [1, 4, 13, 1000])
def test_portions_have_each_element_once_in_order(shape: tuple[int, ...], most: int, meter: CountingMeter) -> None:
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    found = [numbers[part] for part in portions(shape, most)]
    assert all(part.size <= max(most, 1) for part in found)
    assert np.concatenate([part.reshape(-1) for part in found] or [numbers.reshape(-1)]).tolist() == numbers.reshape(-1).tolist()
    if shape and numbers.size > most:
        assert meter.checked > 0


@pytest.mark.parametrize("dtype", [np.float32, np.int8, object])
def test_long_rows_are_numbered_like_their_columns(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: Any = _RNG.integers(0, 2, (40, 4)).astype(dtype)
    if dtype is object:
        rows = np.array([[b"%d" % each for each in row] for row in rows.tolist()], object)
    if dtype is np.float32:
        rows[3:6, 0], rows[rows == 0] = np.nan, -0.0
        rows[::2][rows[::2] == 0] = 0.0
    by_columns = counting._unique(0, rows)
    monkeypatch.setattr(counting, "_FEW", 0)
    for one, other in zip(counting._unique(0, rows), by_columns):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 4), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((3, 1, 3, 4), (2, 4, 5)),
        ((5, 1, 4), (6, 1, 4, 1)),
        ((0, 4), (4, 5)),
        ((3, 0), (0, 2)),
    ],
)
@pytest.mark.parametrize("dtype", ["int64", "float64"])
def test_products_in_parts_are_the_same(left: Any, right: Any, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "_PART", 1e-7)
    a, b = (_RNG.integers(0, 9, shape).astype(dtype) for shape in (left, right))
    np.testing.assert_array_equal(dense.product(a, b), a @ b)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)]), ("ij->", [(3, 4)]), ("ii->i", [(4, 4)]), ("ii->", [(4, 4)]), ("a,b->ab", [(4,), (1,)]),
        ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 6)]), ("i...->...", [(4, 2, 3)]), ("ab,ab->b", [(4, 3), (4, 3)]),
        ("...,...->...", [(2, 1), (3,)]), ("ij,j->i", [(3, 5), (5,)]),
    ],
)  # fmt: skip
def test_sums_in_parts_are_the_same(equation: str, shapes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(einsum, "_PART", 1e-8)
    arrays = [_RNG.integers(0, 9, shape) for shape in shapes]
    expected = np.einsum(equation, *arrays)
    found = np.zeros(expected.shape, expected.dtype)
    given = type("Given", (), {"text": lambda self, name: equation})()
    einsum._formula(given, arrays, [found])()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ["inv", "cholesky", "det", "eigvalsh", "eigvals", "eigh", "slogdet", "eig"])
def test_batches_in_parts_are_the_same(name: str, monkeypatch: pytest.MonkeyPatch, meter: CountingMeter) -> None:
    monkeypatch.setattr(dense, "_PART", 1e-6)
    matrices = _RNG.normal(size=(2, 7, 5, 5))
    matrices = matrices @ matrices.swapaxes(-1, -2) + np.eye(5)
    found, expected = getattr(dense, name)(matrices), getattr(np.linalg, name)(matrices)
    if isinstance(found, np.ndarray):
        found, expected = (found,), (expected,)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs)
    assert meter.checked == 14


@pytest.mark.parametrize(("count", "size"), [(1, 5), (3, 6), (6, 6)])
@pytest.mark.parametrize("batches", [((), ()), ((2,), (2,)), ((2, 1), (3,))])
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("adjoint", [True, False])
def test_bands_are_solved_as_the_whole_matrix(count: int, size: int, batches: Any, lower: bool, adjoint: bool) -> None:
    bands = _RNG.normal(size=(*batches[0], count, size)) + 1j * _RNG.normal(size=(*batches[0], count, size))
    bands[..., 0 if lower else -1, :] += 4
    right = _RNG.normal(size=(*batches[1], size, 2)).astype(np.complex128)
    whole = np.zeros((*batches[0], size, size), np.complex128)
    for number in range(count):
        below = number if lower else count - 1 - number
        places = np.arange(size - below)
        rows, columns = (places + below, places) if lower else (places, places + below)
        whole[..., rows, columns] = bands[..., number, rows]
    expected = solve_triangular(whole, right, lower, adjoint)
    found = np.zeros(expected.shape, expected.dtype)
    solve_bands(bands, right, lower, adjoint, found)
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_large_matrix_is_refused_before_its_decomposition(meter: CountingMeter) -> None:
    meter.seconds = 2.0
    large = np.broadcast_to(np.float64(1), (3000, 3000))
    with pytest.raises(DeadlineError):
        dense.svd(large, False)
    meter.seconds, meter.most = float("inf"), 64 << 20
    with pytest.raises(LimitError):
        dense.svd(large, False)


def test_patterns_and_matches_are_bounded_before(meter: CountingMeter) -> None:
    pytest.importorskip("re2")
    meter.seconds = 1.0
    with pytest.raises(DeadlineError):
        strings.compile_pattern(b"\\pL" * 10_000)
    pattern = strings.compile_pattern(b"(a|b)*a(a|b){50}")
    strings.foresee_match(pattern, 10_000)
    with pytest.raises(DeadlineError):
        strings.foresee_match(pattern, 4_000_000)
    meter.seconds, meter.most = float("inf"), 1 << 20
    with pytest.raises(LimitError):
        strings.compile_pattern(b"\\pL" * 100)


@pytest.mark.parametrize(
    "function", [fingerprints.farm_fingerprint, fingerprints.murmur_hash, lambda text: fingerprints.sip_hash((1, 2), text)]
)
def test_hashes_of_long_texts_look_at_the_clock(function: Any, meter: CountingMeter) -> None:
    function(b"a" * 1_000_000)
    assert meter.checked >= 15
