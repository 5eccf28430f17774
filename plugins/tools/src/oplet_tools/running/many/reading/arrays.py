"""Rows of .npy and .npz files, along the first axis of their arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.errors import TensorError
from oplet_tools.running.many.identity import file_identity
from oplet_tools.running.many.reading.rows import Row, ValuePart, own_names
from oplet_tools.running.model_runner import Details
from oplet_tools.running.npy_files import Header, npy_rows, npz_names, npz_rows
from oplet_tools.running.values.conversion import check_type, shape_for

__all__ = ["Arrays"]

#: Most bytes of a row whose size the file decides; text takes more in memory.
_MOST_BYTES = 256 << 20


class Arrays:
    """The rows of an .npy file for one input, or of an .npz file's arrays for each input.

    Args:
        path: the file.
        name: the input that the file is for; "" for the first one, or in an .npz for the inputs of the arrays' names.
        details: the inputs' details.

    Raises:
        TensorError: the file is damaged, an array's rows do not fit its input, or arrays differ in their number of rows.
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path, name: str, details: Mapping[str, Details]) -> None:
        self._path = path
        #: The arrays' names in the file by the inputs' names; None for the only one of an .npy.
        self._members: dict[str, str | None] = {}
        if path.suffix.lower() == ".npz":
            names = {member: member for member in npz_names(path)}
            self._members = dict(own_names(names, {name: details[name]} if name else details, str(path)))
        else:
            self._members = {name or next(iter(details)): None}
        self._details = details
        counts = {name: self._count(name) for name in self._members}
        if len(set(counts.values())) > 1:
            told = ", ".join(f"'{name}' {count}" for name, count in counts.items())
            raise TensorError(f"The arrays of '{path}' have different numbers of rows: {told}.")
        self._rows = next(iter(counts.values()))

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(self._members)

    @property
    def count(self) -> int:
        return self._rows

    def rows(self, start: int) -> Iterator[Row]:
        columns = {name: self._values(name, start) for name in self._members}
        for number, values in enumerate(zip(*columns.values()), start):
            row = f"{self._path}[{number}]"
            yield Row(f"{self._path.name}[{number}]", tuple(ValuePart(name, value, row) for name, value in zip(columns, values)))

    def identity(self) -> dict[str, Any]:
        return file_identity(self._path) | {"rows": self._rows}

    def _values(self, name: str, start: int, headers: list[Header] | None = None) -> Iterator[NDArray[Any]]:
        check = partial(self._check, name, [] if headers is None else headers)
        member = self._members[name]
        return npy_rows(self._path, check, start) if member is None else npz_rows(self._path, member, check, start)

    def _count(self, name: str) -> int:
        headers: list[Header] = []
        try:
            next(self._values(name, 0, headers), None)  # the first row: its header is checked before
        except TensorError:
            if not headers:
                raise
        return headers[0].shape[0]

    def _check(self, name: str, headers: list[Header], header: Header, held: int) -> None:
        details, source = self._details[name], str(self._path)
        dtype = np.dtype(details["dtype"])
        check_type(header.dtype, dtype, name, source)
        if not header.shape:
            raise TensorError(f"'{source}' holds one value and no rows; input '{name}' takes rows of {_row_shape(details)}.")
        try:
            shape_for(header.shape[1:], details, name, source)
        except TensorError as error:
            raise TensorError(
                f"'{source}' has rows of the shape {list(header.shape[1:])}, input '{name}' takes {_row_shape(details)}."
            ) from error
        if header.row.nbytes > _MOST_BYTES or (header.fortran_order and header.nbytes > max(_MOST_BYTES, held)):
            raise TensorError(
                f"'{source}' has rows of {header.row.nbytes} bytes for input '{name}', more than the {_MOST_BYTES} that are read at once; "
                "give smaller ones, in C order."
            )
        headers.append(header)


def _row_shape(details: Details) -> list[int]:
    return [int(dim) for dim in details["shape"]]
