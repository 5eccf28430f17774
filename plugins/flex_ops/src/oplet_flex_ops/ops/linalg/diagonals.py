"""Diagonals and bands of matrices. Layouts: tensorflow/core/kernels/linalg/matrix_diag_op.cc and matrix_set_diag_op.cc.

A band from diagonal `low` to `high` is stored highest first, one row each; shorter ones are padded at the end or the beginning, as
the attribute `align` says for those above and below the main diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from oplet import Node, Registration, Tensor, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.axes import read_ints
from oplet.kernels.limits import paced
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.numerics.matrices import ensure_matrices
from oplet_flex_ops.numerics.operator import Step, operator
from oplet_flex_ops.numerics.types import EVERY, INDEX

_ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


class _Band(NamedTuple):
    """A band of diagonals of matrices of one shape.

    Attributes:
        low: the number of the lowest diagonal; 0 is the main one, those above are positive.
        high: the number of the highest diagonal.
        rows: the number of rows of a matrix.
        columns: the number of columns of a matrix.
        align: the alignment of diagonals above and below the main one.
    """

    low: int
    high: int
    rows: int
    columns: int
    align: str

    @property
    def count(self) -> int:  # type: ignore[override]
        """Number of diagonals in the band."""
        return self.high - self.low + 1

    @property
    def longest(self) -> int:
        """Length of the longest diagonal."""
        return min(self.rows + min(self.high, 0), self.columns - max(self.low, 0))

    @property
    def shape(self) -> Shape:
        """Shape in which one matrix's diagonals are stored."""
        return (self.longest,) if self.low == self.high else (self.count, self.longest)

    def ensure(self, subject: Tensor) -> None:
        """Raise an error for diagonals outside the matrix."""
        for k in (self.low, self.high):
            ensure(
                k == 0 or -self.rows < k < self.columns,
                f"the matrices of {subject}, {self.rows} by {self.columns}, have no diagonal {k}.",
            )

    def places(self) -> Iterator[tuple[int, slice, Array, Array]]:
        """Yield for each diagonal its storage row, the slice of that row, and its row and column indices in the matrix."""
        above, below = self.align.split("_")
        for number in paced(range(self.count), 16):
            k = self.high - number
            length = min(self.rows + min(k, 0), self.columns - max(k, 0))
            side = above if k >= 0 else below
            start = self.longest - length if side == "RIGHT" else 0
            steps = np.arange(length)
            yield number, slice(start, start + length), steps + max(-k, 0), steps + max(k, 0)


def _bounds(tensor: Tensor | None) -> tuple[int, int]:
    if tensor is None:
        return 0, 0
    return _bounds_of(tensor.ndim, read_ints(tensor), tensor)


def _bounds_of(rank: int, values: list[int], subject: object) -> tuple[int, int]:
    ensure(rank <= 1 and len(values) in (1, 2), f"{subject} names the diagonals; it must hold one number or two.")
    low, high = values[0], values[-1]
    ensure(low <= high, f"the lowest diagonal {low} must not be above the highest, {high}.")
    return low, high


def _alignment(attributes: Attributes, version: int) -> str:
    return attributes.text("align", *_ALIGNMENTS, default="RIGHT_LEFT") if version == 3 else "LEFT_LEFT"


def _stored(array: Array, band: _Band) -> Array:
    """Reshape diagonals' storage to one row per diagonal, also for a single diagonal."""
    return array if len(band.shape) == 2 else array[..., None, :]


def _matrix_diag(version: int) -> Registration:
    def band(rank: int, ks: list[int], sizes: list[int], shape: Shape, align: str) -> _Band:
        low, high = _bounds_of(rank, ks, "k")
        single = low == high
        ensure(len(shape) >= (1 if single else 2), "the diagonals must have one dimension, and two where there are several.")
        longest = shape[-1]
        ensure(
            single or shape[-2] == high - low + 1, f"there are {shape[-2:][0]} rows of diagonals for those from {low} to {high}."
        )
        least_rows, least_columns = longest - min(high, 0), longest + max(low, 0)
        rows, columns = sizes
        if rows == columns == -1:
            rows = columns = max(least_rows, least_columns)
        rows, columns = (least_rows if rows == -1 else rows), (least_columns if columns == -1 else columns)
        fits = rows >= least_rows and columns >= least_columns and (rows == least_rows or columns == least_columns)
        ensure(fits, f"diagonals of {longest} values from {low} to {high} do not fit {rows} rows and {columns} columns.")
        return _Band(low, high, rows, columns, align)

    def sizes_of(values: Sequence[Sequence[int]]) -> list[int]:
        for found in values:
            ensure(len(found) == 1, "the numbers of rows and columns must be one number each.")
        return [found[0] for found in values]

    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        diagonal = node.inputs[0]
        align = _alignment(attributes, version)
        if version == 1:
            found = band(0, [0], [-1, -1], diagonal.shape, align)
        else:
            _ensure_padding(node.inputs[4])
            k = node.inputs[1]
            found = band(k.ndim, read_ints(k), sizes_of([read_ints(each) for each in node.inputs[2:4]]), diagonal.shape, align)
        found.ensure(diagonal)
        return [(*diagonal.shape[: -len(found.shape)], found.rows, found.columns)]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        [output], diagonal = outputs, inputs[0]
        align = _alignment(attributes, version)
        ks = [0] if version == 1 else inputs[1].ravel().tolist()
        found = _Band(ks[0], ks[-1], output.shape[-2], output.shape[-1], align)
        stored = _stored(diagonal, found)

        def run() -> None:
            output[...] = 0 if version == 1 else inputs[4]
            for number, part, rows, columns in found.places():
                output[..., rows, columns] = stored[..., number, part]

        return run

    return operator("T -> T" if version == 1 else "T, INT32!, INT32!, INT32!, T -> T", shapes, widened={}, T=EVERY)(formula)


def _ensure_padding(tensor: Tensor) -> None:
    ensure(tensor.size == 1 and tensor.ndim == 0, f"the padding {tensor} must be a scalar.")


def _matrix_diag_part(version: int) -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        source = node.inputs[0]
        ensure_matrices(source)
        if version > 1:
            _ensure_padding(node.inputs[2])
        low, high = _bounds(node.inputs[1] if version > 1 else None)
        found = _Band(low, high, source.shape[-2], source.shape[-1], _alignment(attributes, version))
        found.ensure(source)
        return [(*source.shape[:-2], *found.shape)]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        [output], source = outputs, inputs[0]
        ks = [0] if version == 1 else inputs[1].ravel().tolist()
        found = _Band(ks[0], ks[-1], source.shape[-2], source.shape[-1], _alignment(attributes, version))
        stored = _stored(output, found)

        def run() -> None:
            if version > 1:
                output[...] = inputs[2]
            for number, part, rows, columns in found.places():
                stored[..., number, part] = source[..., rows, columns]

        return run

    return operator("T -> T" if version == 1 else "T, INT32!, T -> T", shapes, widened={}, T=EVERY)(formula)


def _matrix_set_diag(version: int) -> Registration:
    def shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
        source, diagonal = node.inputs[:2]
        ensure_matrices(source)
        low, high = _bounds(node.inputs[2] if version > 1 else None)
        found = _Band(low, high, source.shape[-2], source.shape[-1], _alignment(attributes, version))
        found.ensure(source)
        wanted = (*source.shape[:-2], *found.shape)
        ensure(diagonal.shape == wanted, f"{diagonal} must have the shape {list(wanted)} of the diagonals of {source}.")
        return [source.shape]

    def formula(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
        [output], (source, diagonal) = outputs, inputs[:2]

        def run() -> None:
            ks = [0] if version == 1 else inputs[2].ravel().tolist()
            found = _Band(ks[0], ks[-1], source.shape[-2], source.shape[-1], _alignment(attributes, version))
            stored = _stored(diagonal, found)
            np.copyto(output, source)
            for number, part, rows, columns in found.places():
                output[..., rows, columns] = stored[..., number, part]

        return run

    return operator("T, T -> T" if version == 1 else "T, T, INT32! -> T", shapes, widened={}, T=EVERY)(formula)


def _band_part_shapes(node: Node, attributes: Attributes) -> Sequence[Shape]:
    ensure_matrices(node.inputs[0])
    for tensor in node.inputs[1:]:
        ensure(tensor.ndim == 0, f"{tensor} is a number of diagonals; it must be a scalar.")
    return [node.inputs[0].shape]


@operator("T, Tindex=INT64, Tindex -> T", _band_part_shapes, widened={}, T=EVERY, Tindex=INDEX)
def MATRIXBANDPART(attributes: Attributes, inputs: Sequence[Array], outputs: Sequence[Array]) -> Step:
    """Keep a number of diagonals below and above the main one; a negative number keeps all."""
    [output], (source, lower, upper) = outputs, inputs
    rows, columns = source.shape[-2:]
    below = np.arange(rows)[:, None] - np.arange(columns)

    def run() -> None:
        counts = lower.item(), upper.item()
        for count, size in zip(counts, (rows, columns)):
            ensure(count <= size, f"a band of {count} diagonals is wider than the matrix, of {size}.")
        inside = ((counts[0] < 0) | (below <= counts[0])) & ((counts[1] < 0) | (-below <= counts[1]))
        output.fill(0)
        np.copyto(output, source, where=inside)

    return run


MATRIXDIAG = BATCHMATRIXDIAG = _matrix_diag(1)
MATRIXDIAGPART = BATCHMATRIXDIAGPART = _matrix_diag_part(1)
MATRIXDIAGPARTV2 = _matrix_diag_part(2)
MATRIXDIAGPARTV3 = _matrix_diag_part(3)
MATRIXDIAGV2 = _matrix_diag(2)
MATRIXDIAGV3 = _matrix_diag(3)
MATRIXSETDIAG = BATCHMATRIXSETDIAG = _matrix_set_diag(1)
MATRIXSETDIAGV2 = _matrix_set_diag(2)
MATRIXSETDIAGV3 = _matrix_set_diag(3)
