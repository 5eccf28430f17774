"""Linear algebra agrees with TensorFlow's kernels; factors that are not unique multiply to what was factored."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from flatbuffers import flexbuffers
from numpy.typing import NDArray
from plugins.flex_ops.tests.agreement import (
    Case,
    apart,
    check_all,
    ops_of,
    refuses,
    resolver,
    run_case,
    tensorflow_batch,
    type_of,
)

from oplet import TensorType
from oplet_testing import Spec, one_op_model, run_op

Array = NDArray[Any]
WIDE = ["float32", "float64", "complex64", "complex128"]
LOOSE = {"float32": 3e-4, "complex64": 3e-4, "float16": 3e-2, "float64": 1e-9, "complex128": 1e-9}


def matrices(type: str, *shape: int, seed: int = 0) -> Array:
    """Random matrices."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=shape)
    if type.startswith("complex"):
        values = values + 1j * rng.normal(size=shape)
    return values.astype(type)


def positive(type: str, *shape: int) -> Array:
    """Random Hermitian matrices whose eigenvalues are above zero."""
    a = matrices(type, *shape)
    made: Array = (a @ np.conj(a.swapaxes(-1, -2)) + 2 * np.eye(shape[-1])).astype(type)
    return made


def case(op: str, inputs: list[Array], _constants: Any = (), **attributes: Any) -> Case:
    name = inputs[0].dtype.name
    return Case(op, inputs, {"T": type_of(inputs[0]), **attributes}, _constants, LOOSE.get(name))


BATCHES: tuple[tuple[int, ...], ...] = ((), (3,), (2, 2), (0,))


def solving_cases() -> Iterator[Case]:
    for type in WIDE:
        for batch in BATCHES:
            square = (matrices(type, *batch, 5, 5) + 3 * np.eye(5)).astype(type)
            right = matrices(type, *batch, 5, 2, seed=1)
            yield case("Cholesky", [positive(type, *batch, 5, 5)])
            yield case("Cholesky", [np.triu(matrices(type, *batch, 5, 5), 1) + np.tril(positive(type, *batch, 5, 5))])
            yield case("MatrixDeterminant", [square])
            yield case("LogMatrixDeterminant", [square])
            for flag in (False, True):
                yield case("MatrixInverse", [square], adjoint=flag)
                yield case("MatrixSolve", [square, right], adjoint=flag)
                for lower in (False, True):
                    yield case("MatrixTriangularSolve", [square, right], lower=lower, adjoint=flag)
            for index in ("int32", "int64"):
                yield case("Lu", [square], output_idx_type=TensorType[index.upper()])
            for rows, columns in ((7, 4), (4, 7), (5, 5)):
                matrix = (matrices(type, *batch, rows, columns) + 3 * np.eye(rows, columns)).astype(type)
                right = matrices(type, *batch, rows, 3, seed=4)
                for weight in (0.0, 0.5):
                    yield case("MatrixSolveLs", [matrix, right, np.array(weight)], fast=True)
                yield case("MatrixSolveLs", [matrix, right, np.array(0.0)], fast=False)
        large = np.tril(matrices(type, 2, 130, 130)) + 20 * np.eye(130, dtype=type)
        yield case("MatrixTriangularSolve", [large, matrices(type, 2, 130, 1)], lower=True, adjoint=True)
        yield case("MatrixTriangularSolve", [large[:1], matrices(type, 2, 130, 1)], lower=True, adjoint=False)
        for bands, size in ((1, 4), (3, 6), (6, 6)):
            for lower in (False, True):
                for adjoint in (False, True):
                    band = (matrices(type, 2, bands, size) + 4).astype(type)
                    yield case("BandedTriangularSolve", [band, matrices(type, 2, size, 2)], lower=lower, adjoint=adjoint)
        for pivoting in (True, False):
            diagonals = matrices(type, 2, 3, 6)
            diagonals[:, 1] += 0 if pivoting else 5
            yield case(
                "TridiagonalSolve", [diagonals, matrices(type, 2, 6, 2)], partial_pivoting=pivoting, perturb_singular=False
            )
        yield case("TridiagonalMatMul", [*(matrices(type, 2, 1, 6, seed=s) for s in range(3)), matrices(type, 2, 6, 4)])
    for type in ("float32", "float64"):
        factor = np.linalg.cholesky(positive(type, 2, 4, 4))
        yield case("CholeskyGrad", [factor, matrices(type, 2, 4, 4, seed=3)])
    half = (matrices("float16", 3, 4, 4) + 3 * np.eye(4)).astype("float16")
    yield case("MatrixInverse", [half], adjoint=True)


def function_cases() -> Iterator[Case]:
    for type in WIDE:
        for batch in ((), (3,)):
            for scale in (0.1, 1, 12):
                yield case("MatrixExponential", [(scale * matrices(type, *batch, 4, 4)).astype(type)])
            near = (matrices(type, *batch, 4, 4) * 0.4 + 2 * np.eye(4)).astype(type)
            yield case("MatrixSquareRoot", [near])
            yield case("MatrixSquareRoot", [positive(type, *batch, 4, 4)])
            if type.startswith("complex"):
                yield case("MatrixLogarithm", [near])
                yield case("MatrixLogarithm", [matrices(type, *batch, 4, 4)])
    for type in ("float32", "float64", "float16", "int32", "int8", "uint64"):
        a, b = (
            (4 * matrices("float64", 5, 3, seed=s)).astype(type if type[0] != "u" else "int32").astype(type) for s in range(2)
        )
        yield case("Cross", [a, b])


def qr_cases() -> Iterator[Case]:
    for type in [*WIDE, "float16"]:
        for rows, columns in ((5, 5), (6, 3), (3, 6), (1, 4), (4, 1)):
            for full in (False, True):
                if not (full and rows > columns and type.startswith("complex")):
                    yield case("Qr", [matrices(type, 2, rows, columns)], full_matrices=full)


EVERY = ["float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
         "complex64", "complex128", "bool"]  # fmt: skip


def numbered(type: str, *shape: int) -> Array:
    """The numbers 1, 2, ... in an array."""
    if type == "bfloat16":
        import ml_dtypes

        type = ml_dtypes.bfloat16
    made: Array = np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(type)
    return made


def int32(*values: int) -> Array:
    return np.array(values, "int32") if len(values) > 1 else np.array(values[0], "int32")


def diagonal_cases() -> Iterator[Case]:
    for number, type in enumerate(EVERY):
        fixed = [1, 2, 3] if number % 2 else []
        padding = numbered(type, 1)[0] if type != "bool" else np.array(True)
        padding = np.asarray(padding)
        yield case("MatrixDiag", [numbered(type, 2, 3)])
        yield case("MatrixDiagPart", [numbered(type, 2, 3, 4)])
        yield case("MatrixSetDiag", [numbered(type, 2, 3, 4), numbered(type, 2, 3)])
        yield case("MatrixDiagV2", [numbered(type, 2, 3), int32(1), int32(-1), int32(-1), padding], fixed)
        yield case("MatrixDiagPartV2", [numbered(type, 2, 3, 4), int32(-1, 2), padding], fixed[:1])
        yield case("MatrixSetDiagV2", [numbered(type, 2, 3, 4), numbered(type, 2, 2, 3), int32(0, 1)], fixed[1:2])
        for index in ("int32", "int64"):
            for low, high in ((0, 0), (1, 1), (-1, 2), (2, -1)):
                given = [numbered(type, 2, 4, 5), np.array(low, index), np.array(high, index)]
                yield case("MatrixBandPart", given, Tindex=type_of(given[1]))
    for align in ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT"):
        for low, high in ((0, 0), (-2, 1), (1, 3), (-2, -1), (-1, 1)):
            source = numbered("float64", 2, 4, 5)
            yield case("MatrixDiagPartV3", [source, int32(low, high), np.array(-1.0)], [1], align=align)
            longest = min(4 + min(high, 0), 5 - max(low, 0))
            stored = numbered("float64", 2, high - low + 1, longest) if low != high else numbered("float64", 2, longest)
            yield case("MatrixSetDiagV3", [source, -stored, int32(low, high)], align=align)
            yield case("MatrixDiagV3", [stored, int32(low, high), int32(4), int32(5), np.array(-1.0)], [1, 2, 3], align=align)
            yield case("MatrixDiagV3", [stored, int32(low, high), int32(-1), int32(5), np.array(-1.0)], align=align)
    for equation, shapes in {
        "ij,jk->ik": [(3, 4), (4, 5)], "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)], "abc,cd->abd": [(2, 3, 4), (4, 5)],
        "ij->ji": [(3, 4)], "ii->i": [(3, 3)], "ii->": [(3, 3)], "...ij,...jk->...ik": [(2, 1, 3, 4), (5, 4, 2)],
        "bhqd,bhkd->bhqk": [(2, 2, 3, 4), (2, 2, 5, 4)], "i,j->ij": [(3,), (4,)], "ijk->": [(2, 3, 4)], "a...->...a": [(2, 3, 4)],
        "ij,ij->": [(3, 4), (3, 4)], "abcd,cde->abe": [(2, 3, 4, 5), (4, 5, 6)],
    }.items():  # fmt: skip
        for type in ("float32", "float64", "complex64", "complex128", "int32", "int64", "float16", "bfloat16"):
            inputs = [numbered(type, *shape) if "int" in type else (matrices("float64", *shape)).astype(numbered(type, 1).dtype)
                      for shape in shapes]  # fmt: skip
            yield Case("Einsum", inputs, {"T": type_of(inputs[0]), "N": len(inputs), "equation": equation}, (),
                       {"bfloat16": 3e-2, "float16": 6e-3, "float32": 2e-5, "complex64": 2e-5}.get(type))  # fmt: skip


LEGACY = {
    "BatchCholesky": "Cholesky", "BatchCholeskyGrad": "CholeskyGrad", "BatchMatrixDeterminant": "MatrixDeterminant",
    "BatchMatrixDiag": "MatrixDiag", "BatchMatrixDiagPart": "MatrixDiagPart", "BatchMatrixInverse": "MatrixInverse",
    "BatchMatrixSetDiag": "MatrixSetDiag", "BatchMatrixSolve": "MatrixSolve", "BatchMatrixSolveLs": "MatrixSolveLs",
    "BatchMatrixTriangularSolve": "MatrixTriangularSolve",
}  # fmt: skip


def legacy_cases() -> Iterator[Case]:
    """The former names, of the same kernels."""
    first = {
        each.op: each for each in solving_cases() if each.inputs[0].dtype == np.float64 and each.inputs[0].shape[:-2] == (3,)
    }
    first |= {each.op: each for each in diagonal_cases() if each.inputs[0].dtype == np.float64}
    first |= {each.op: each for each in solving_cases() if each.op == "CholeskyGrad"}
    for legacy, op in LEGACY.items():
        yield first[op]._replace(op=legacy)


GROUPS = [solving_cases, function_cases, qr_cases, diagonal_cases, legacy_cases]
FACTORS = ["Svd", "BatchSvd", "SelfAdjointEigV2", "BatchSelfAdjointEigV2", "SelfAdjointEig", "BatchSelfAdjointEig", "Eig"]


@pytest.mark.sweep
@pytest.mark.parametrize("cases", GROUPS, ids=lambda cases: cases.__name__)
def test_linear_algebra_agrees_with_tensorflow(cases: Any) -> None:
    count, _ = check_all(cases())
    assert count >= 10


def factored() -> Iterator[Case]:
    for type in WIDE:
        for batch in ((), (3,)):
            for rows, columns in ((5, 5), (6, 3), (3, 6)):
                for full in (False, True):
                    yield case("Svd", [matrices(type, *batch, rows, columns)], compute_uv=True, full_matrices=full)
            yield case("BatchSvd", [matrices(type, *batch, 4, 3)], compute_uv=True, full_matrices=False)
            for op in ("SelfAdjointEigV2", "BatchSelfAdjointEigV2"):
                if not (op.startswith("Batch") and type.startswith("complex")):
                    yield case(op, [positive(type, *batch, 5, 5)], compute_v=True)
            for op in ("SelfAdjointEig", "BatchSelfAdjointEig"):
                if not type.startswith("complex"):
                    yield case(op, [positive(type, *batch, 5, 5)])
            out = TensorType.COMPLEX128 if type in ("float64", "complex128") else TensorType.COMPLEX64
            yield case("Eig", [matrices(type, *batch, 5, 5)], compute_v=True, Tout=out)


def adjoint(a: Array) -> Array:
    return np.conj(a.swapaxes(-1, -2))


def whole(each: Case, outputs: list[Array]) -> tuple[Array, Array]:
    """The values of a decomposition, in order, and the product of its factors."""
    if each.op.endswith("Svd"):
        s, u, v = outputs
        k = s.shape[-1]
        return s, (u[..., :k] * s[..., None, :]) @ adjoint(v[..., :k])
    if each.op.endswith("SelfAdjointEig"):
        outputs = [outputs[0][..., 0, :], outputs[0][..., 1:, :]]
    values, vectors = outputs
    if each.op == "Eig":
        order = np.lexsort((np.round(values.imag, 3), np.round(values.real, 3)), axis=-1)
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, rtol=1e-5)
        return np.take_along_axis(values, order, -1), (vectors * values[..., None, :]) @ np.linalg.inv(vectors)
    return values, (vectors * values[..., None, :]) @ adjoint(vectors)


def test_factors_that_are_not_unique_multiply_to_what_was_factored() -> None:
    cases = list(factored())
    assert {each.op for each in cases} == set(FACTORS)
    for each, expected in zip(cases, tensorflow_batch(cases)):
        found = run_case(each, [type_of(array) for array in expected])
        assert [(a.shape, a.dtype) for a in found] == [(a.shape, a.dtype) for a in expected], str(each)
        tolerance = 1e-4 if each.inputs[0].dtype.name in ("float32", "complex64") else 1e-10
        values, product = whole(each, found)
        np.testing.assert_allclose(values, whole(each, expected)[0], rtol=tolerance, atol=tolerance, err_msg=str(each))
        np.testing.assert_allclose(product, each.inputs[0], rtol=tolerance, atol=20 * tolerance, err_msg=str(each))


def test_values_alone_are_those_of_tensorflow() -> None:
    cases = [case("Svd", [matrices(type, 3, 4, 6)], compute_uv=False, full_matrices=False) for type in ("float32", "complex128")]
    cases += [case("SelfAdjointEigV2", [positive(type, 3, 4, 4)], compute_v=False) for type in ("float32", "complex128")]
    for each, expected in zip(cases, tensorflow_batch(cases)):
        found = run_case(each, [type_of(array) for array in expected])
        apart(each, found[0], expected[0])
        # In the place of vectors TensorFlow leaves what was in the memory.
        assert [array.shape for array in found] == [array.shape for array in expected]


def test_what_has_no_factors_gives_nan_as_in_tensorflow() -> None:
    mixed = np.stack([np.eye(3), -np.eye(3), 2 * np.eye(3)])
    triangular = np.array([[1.0, 0, 0], [2, 0, 0], [3, 4, 5]])
    singular = np.stack([np.eye(3), np.zeros((3, 3))])
    [factor] = run_case(case("Cholesky", [mixed]), [TensorType.FLOAT64])
    # What TensorFlow leaves above the diagonal then is not initialized.
    np.testing.assert_array_equal(np.tril(factor), np.tril(tensorflow_batch([case("Cholesky", [mixed])])[0][0]))
    cases = [
        case("TridiagonalSolve", [singular[:, [1, 1, 1]] + singular[:, [0, 1, 2]], np.ones((2, 3, 1))]), case("Svd", [np.stack([np.full((3, 3), np.nan)] * 2)], compute_uv=True),
        case("MatrixTriangularSolve", [triangular, np.ones((3, 1))], lower=True),
    ]  # fmt: skip
    assert check_all(cases)[0] == 3


def test_svd_is_served_under_the_name_that_converters_leave() -> None:
    given = case("Svd", [matrices("float32", 4, 3)], compute_uv=False)
    types = [TensorType.FLOAT32] * 3
    # The attributes are a map there, and element types have the numbers of .tflite.
    options = bytes(flexbuffers.Dumps({"T": int(TensorType.FLOAT32), "compute_uv": False, "full_matrices": False}))
    model = one_op_model("Svd", [Spec("float32", [4, 3])], [Spec("float32", [1])] * 3, custom_options=options)
    found = run_op(model, *given.inputs, op_resolver=resolver(), plugins=[])
    np.testing.assert_array_equal(found[0], run_case(given, types)[0])


SQUARE = matrices("float64", 4, 4)
SINGULAR = np.ones((3, 3))


@pytest.mark.parametrize(
    ("refused", "sentence"),
    [
        (case("Cholesky", [matrices("float64", 3, 4)]), "must be square"),
        (case("MatrixInverse", [np.zeros((3, 3))]), "not invertible"),
        (case("MatrixSolve", [np.zeros((3, 3)), np.ones((3, 1))]), "not invertible"),
        (case("MatrixSolve", [SQUARE, np.ones((3, 1))]), "as many rows"),
        (case("MatrixTriangularSolve", [SQUARE, np.ones((3, 1))]), "as many rows"),
        (case("BandedTriangularSolve", [np.zeros((2, 3)), np.ones((3, 1))]), "not invertible"),
        (case("TridiagonalSolve", [np.zeros((2, 3)), np.ones((3, 1))]), "three diagonals"),
        (case("Lu", [np.zeros((3, 3))], output_idx_type=TensorType.INT32), "not invertible"),
        (case("MatrixSolveLs", [np.zeros((3, 2)), np.ones((3, 1)), np.array(0.0)]), "rank deficient"),
        (case("SelfAdjointEigV2", [np.full((3, 3), np.nan)]), "not successful"),
        (case("MatrixDiagPartV3", [SQUARE, int32(9), np.array(0.0)]), "no diagonal 9"),
        (case("MatrixDiagPartV3", [SQUARE, int32(2, 1), np.array(0.0)]), "must not be above"),
        (case("MatrixDiagV3", [SQUARE, int32(0, 1), int32(2), int32(2), np.array(0.0)]), "rows of diagonals"),
        (case("MatrixSetDiagV3", [SQUARE, np.ones(3), int32(0)]), "must have the shape"),
        (case("MatrixBandPart", [SQUARE, np.array(9, "int64"), np.array(0, "int64")]), "wider than the matrix"),
        (case("Cross", [np.ones((2, 4)), np.ones((2, 4))]), "three values"),
        (Case("Einsum", [SQUARE, SQUARE[:2]], {"T": TensorType.FLOAT64, "N": 2, "equation": "ij,jk->ik"}), "stands for sizes"),
    ],
    ids=lambda value: value.op if isinstance(value, Case) else "",
)
def test_what_tensorflow_refuses_is_refused_with_a_sentence(refused: Case, sentence: str) -> None:
    outputs = 3 if refused.op == "Svd" else 2 if refused.op in ("Lu", "SelfAdjointEigV2") else 1
    types = [type_of(refused.inputs[0])] * outputs
    assert sentence in refuses(refused, types[:-1] + [TensorType.INT32] if refused.op == "Lu" else types)


def test_every_operator_of_the_family_is_compared() -> None:
    compared = {each.op for cases in GROUPS for each in cases()} | set(FACTORS)
    assert ops_of("linalg") == compared
