"""Operators on sparse tensors give what TensorFlow gives, and refuse what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from plugins.flex_ops.tests.sweeps import Case, difference, dtype_of, oplet_results

from oplet import TensorType as T

rng = np.random.default_rng(23)
REAL = (T.FLOAT32, T.FLOAT64, T.INT32)


def values(type: T, count: int) -> Any:
    whole = rng.integers(-5, 9, count)
    return np.array([b"%d" % each for each in whole] + [b""], object)[:-1] if type == T.STRING else whole.astype(dtype_of(type))


def sparse(type: T, shape: Sequence[int], count: int, *, order: bool = True) -> list[Any]:
    """Indices, values and shape of a sparse tensor with distinct places."""
    places = rng.choice(int(np.prod(shape)), count, replace=False)
    places = np.sort(places) if order else places
    indices = np.stack(np.unravel_index(places, shape), 1).astype(np.int64)
    return [indices, values(type, count), np.array(shape, np.int64)]


def longs(*given: int) -> Any:
    return np.array(given, np.int64)


def ints(*given: int) -> Any:
    return np.array(given, np.int32)


def layout() -> Iterator[Case]:
    for type in (*REAL, T.STRING):
        for shape, count in (((4, 5), 7), ((3, 2, 4), 9), ((6,), 3), ((4, 5), 0)):
            yield Case("SparseReorder", sparse(type, shape, count, order=False), {"T": type}, 2)
            indices, found, sizes = sparse(type, shape, count)
            for wanted in ((-1,), (2, -1), (5, 4), (-1, -1), (7, 3)):
                yield Case("SparseReshape", [indices, sizes, longs(*wanted)], {}, 2)
            for start, size in (
                ((1,) * len(shape), (2,) * len(shape)),
                ((0,) * len(shape), (9,) * len(shape)),
                ((9, 0, 0), (1, 1, 1)),
            ):
                inputs = [indices, found, sizes, longs(*start[: len(shape)]), longs(*size[: len(shape)])]
                yield Case("SparseSlice", inputs, {"T": type}, 3)
            for axis in range(-1, len(shape) + 1):
                other = sparse(type, shape, count)
                inputs = [indices, other[0], found, other[1], sizes, other[2]]
                yield Case("SparseConcat", inputs, {"T": type, "N": 2, "concat_dim": axis}, 3)
                for pieces in (1, 2, 3):
                    if 0 <= axis < len(shape):
                        inputs = [np.array(axis, np.int64), indices, found, sizes]
                        yield Case("SparseSplit", inputs, {"T": type, "num_split": pieces}, 3 * pieces)
            default = values(type, 1).reshape(())
            yield Case("SparseFillEmptyRows", [indices, found, sizes, default], {"T": type}, 4)
            for validate in (True, False):
                given = {"T": type, "Tindices": T.INT64, "validate_indices": validate}
                yield Case("SparseToDense", [indices, sizes, found, default], given)
                yield Case("SparseToDense", [indices, sizes, default, default], given)
                if validate and count:
                    yield Case("SparseToDense", [indices[::-1].copy(), sizes, found, default], given)
                    yield Case("SparseToDense", [indices + 9, sizes, found, default], given)
        yield Case("SparseToDense", [longs(1, 3), longs(5), values(type, 2), default], {"T": type, "Tindices": T.INT64})
    bad = [np.array([[7, 0]], np.int64), values(T.FLOAT32, 1), longs(3, 2)]
    yield Case("SparseFillEmptyRows", [*bad, np.float32(1)], {"T": T.FLOAT32}, 4)
    yield Case(
        "SparseFillEmptyRows", [np.zeros((0, 2), np.int64), values(T.FLOAT32, 0), longs(0, 2), np.float32(1)], {"T": T.FLOAT32}, 4
    )


def arithmetic() -> Iterator[Case]:
    for type in (*REAL, T.COMPLEX64):
        for shape, count in (((4, 5), 7), ((3, 2, 4), 9), ((6,), 3)):
            a, b = sparse(type, shape, count), sparse(type, shape, count)
            thresholds = (0, 3) if type != T.COMPLEX64 else (0,)
            for limit in thresholds:
                real = T.FLOAT32 if type == T.COMPLEX64 else type
                yield Case("SparseAdd", [*a, *b, np.array(limit, dtype_of(real))], {"T": type, "Treal": real}, 3)
            if type != T.COMPLEX64:
                for op in ("SparseSparseMaximum", "SparseSparseMinimum"):
                    yield Case(op, [*a, *b], {"T": type}, 2)
            dense = values(type, int(np.prod(shape))).reshape(shape)
            yield Case("SparseTensorDenseAdd", [*a, dense], {"T": type, "Tindices": T.INT64})
            dense = np.where(dense == 0, dense.dtype.type(1), dense)
            for other in (dense, dense[:1], dense[..., :1], dense.reshape(-1)[: shape[-1]], dense.reshape(-1)[:2]):
                for op in ("Add", "Mul", "Div"):
                    if type != T.COMPLEX64:
                        yield Case(f"SparseDenseCwise{op}", [*a, other], {"T": type})
        for left, right in ((False, False), (True, False), (False, True), (True, True)):
            indices, found, shape = sparse(type, (4, 5), 8, order=False)
            for size in ((5, 3), (4, 3), (3, 5), (3, 4)):
                dense = values(type, size[0] * size[1]).reshape(size)
                given = {"T": type, "Tindices": T.INT64, "adjoint_a": left, "adjoint_b": right}
                yield Case("SparseTensorDenseMatMul", [indices, found, shape, dense], given)
    for left, right in ((False, False), (True, False), (False, True), (True, True)):
        matrices = [values(T.FLOAT32, 12).reshape(3, 4), values(T.FLOAT32, 12).reshape(4, 3)]
        given = {"Ta": T.FLOAT32, "Tb": T.FLOAT32, "transpose_a": left, "transpose_b": right, "a_is_sparse": True}
        yield Case("SparseMatMul", matrices, given)


def reductions() -> Iterator[Case]:
    for type in REAL:
        for shape, count in (((4, 5), 7), ((3, 2, 4), 9)):
            for axes in ((0,), (1,), (0, 1), (-1,), (9,), ()):
                for keep in (False, True):
                    for op in ("Sum", "Max"):
                        inputs = [*sparse(type, shape, count), ints(*axes)]
                        yield Case(f"SparseReduce{op}", inputs, {"T": type, "keep_dims": keep})
                        yield Case(f"SparseReduce{op}Sparse", inputs, {"T": type, "keep_dims": keep}, 3)
            if type != T.INT32:
                yield Case("SparseSoftmax", sparse(type, shape, count), {"T": type})
                yield Case("SparseSoftmax", sparse(type, shape, 0), {"T": type})
    yield Case("SparseSoftmax", sparse(T.FLOAT32, (5,), 3), {"T": T.FLOAT32})


def segments() -> Iterator[Case]:
    for type in REAL:
        for indices, ids, count in (
            ([0, 2, 1], [0, 0, 2], 4), ([3, 3, 0, 1], [0, 1, 1, 3], 3), ([0, 9], [0, 1], 2), ([0, 1], [1, 0], 2), ([], [], 2),
            ([0], [0, 1], 2), ([1, 2], [1, 1], 2), ([1, 2], [-1, 1], 2),
        ):  # fmt: skip
            for op in ("Sum", "Mean", "SqrtN"):
                if type == T.INT32 and op != "Sum":
                    continue
                inputs = [values(type, 12).reshape(4, 3), ints(*indices), ints(*ids)]
                given = {"T": type, "Tidx": T.INT32, "Tsegmentids": T.INT32}
                yield Case(f"SparseSegment{op}", inputs, given)
                yield Case(f"SparseSegment{op}WithNumSegments", [*inputs, ints(count)[0]], {**given, "Tnumsegments": T.INT32})


def counting() -> Iterator[Case]:
    for type in (T.INT32, T.INT64, T.FLOAT32, T.FLOAT64):
        numbers = rng.integers(0, 7, 9).astype(np.int32)
        indices, _, shape = sparse(T.FLOAT32, (4, 5), 9)
        for weights in (values(type, 0), values(type, 9), values(type, 4)):
            for binary in (False, True):
                for size in (4, 9, 0):
                    given = {"T": type, "Tidx": T.INT32, "binary_output": binary}
                    inputs = [indices, numbers, shape, ints(size)[0], weights]
                    if weights.size != 4:  # which TensorFlow reads beyond their end
                        yield Case("SparseBincount", inputs, given)
                        yield Case("RaggedBincount", [longs(0, 3, 3, 9), numbers, ints(size)[0], weights], given)
                for least, most in ((-1, -1), (10, -1), (-1, 4), (2, 3), (-1, 0)):
                    given = {"T": T.INT32, "output_type": type, "binary_output": binary, "minlength": least, "maxlength": most}
                    if binary and weights.size:
                        continue  # TensorFlow gives 1 for it or the weight, as the version may be
                    yield Case("DenseCountSparseOutput", [numbers, weights], given, 3)
                    yield Case("DenseCountSparseOutput", [numbers.reshape(3, 3), weights.reshape(-1)], given, 3)
                    yield Case("SparseCountSparseOutput", [indices, numbers, shape, weights], given, 3)
                    yield Case("RaggedCountSparseOutput", [longs(0, 3, 3, 9), numbers, weights], given, 3)


SWEEPS = [layout, arithmetic, reductions, segments, counting]


@pytest.mark.sweep
@pytest.mark.parametrize("cases", SWEEPS)
def test_they_agree_with_tensorflow(cases: Callable[[], Iterator[Case]]) -> None:
    assert max(difference(case) for case in cases()) < 1e-6


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (
            Case("RaggedBincount", [longs(0, 3, 2, 4), ints(1, 2, 3, 4), ints(5)[0], ints()], {"T": T.INT32, "Tidx": T.INT32}),
            "ascend",
        ),
        (
            Case("RaggedBincount", [longs(0, 9), ints(1, 2), ints(5)[0], ints()], {"T": T.INT32, "Tidx": T.INT32}),
            "ascend from 0 to 2",
        ),
        (
            Case(
                "SparseBincount",
                [np.zeros((2, 1), np.int64), ints(1, 2), longs(3), ints(5)[0], ints(1)],
                {"T": T.INT32, "Tidx": T.INT32},
            ),
            "1 weights for 2 values",
        ),
    ],
)
def test_what_tensorflow_reads_beyond_its_end_is_refused(case: Case, reason: str) -> None:
    with pytest.raises(RuntimeError, match=reason):
        oplet_results(case)
