"""Converts the stored records of all rows to one .parquet or .npz file, a few rows at a time."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from oplet.errors import TensorError
from oplet.schema.naming import shown
from oplet.toolkit import atomic_write
from oplet_tools.running.many.keeping.results import OutputForm, Record, Records
from oplet_tools.running.many.reading.arrow_tables import arrow_needs
from oplet_tools.running.outputs import check_member
from oplet_tools.running.values.result_sizes import OPTION

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_joinable", "join_npz", "join_parquet"]

Array = NDArray[Any]

#: Rows and bytes of a group in a .parquet file.
_GROUP_ROWS, _GROUP_BYTES = 4096, 64 << 20
#: How many times their own bytes texts may take in an .npz, whatever that is.
_PADDED = 16


@dataclass
class _Kind:
    """Type of an output over all rows: the common dtype (None before the first value, object for text), and a shape for its rank."""

    dtype: np.dtype[Any] | None = None
    shape: tuple[int, ...] = ()
    longest: int = 1  #: The most bytes of a text.
    texts: int = 0  #: The bytes of all texts.
    utf8: bool = True  #: Whether all text is UTF-8.

    def see(self, array: Array) -> None:
        if self.dtype is None:
            self.dtype, self.shape = array.dtype, array.shape
        elif self.dtype != array.dtype:
            self.dtype = np.result_type(self.dtype, array.dtype)
        if array.dtype.hasobject:
            for text in array.ravel().tolist():
                self.longest = max(self.longest, len(text))
                self.texts += len(text)
                self.utf8 = self.utf8 and _is_utf8(text)


def check_joinable(kind: str, output: Path, forms: Sequence[OutputForm]) -> None:
    """Check, before rows are run, that their results can be written as a file of this kind, "parquet" or "npz".

    Raises:
        TensorError: pyarrow is missing, or an output's name cannot be that of an array in an .npz.
    """
    if kind == "parquet":
        try:
            import pyarrow
        except ModuleNotFoundError as error:
            raise TensorError(f"'{output}' cannot be written: {arrow_needs()}.") from error
        del pyarrow
    else:
        for form in forms:
            check_member(form.name, output)


def join_npz(output: Path, format: Records, forms: Sequence[OutputForm], most: int, file: BinaryIO) -> None:
    """Write the stored results of many rows as an .npz: an array for each output, with the rows along the first axis, and arrays
    of the rows' names and errors.

    Rows that failed have NaN, 0 or "". If an output is called "row_name" or "row_error", that array's name gets more underscores.

    Args:
        most: the most bytes that an output's strings may take, padded to the longest; more is allowed where padding adds little.

    Raises:
        TensorError: an output's padded strings would take more.
        OSError: the file cannot be written.
    """
    kinds = _kinds(format, forms, file)
    rows = sum(1 for _ in _again(format, file))
    for name, kind in kinds.items():
        padded = rows * math.prod(kind.shape) * kind.longest
        if kind.dtype is not None and kind.dtype.hasobject and padded > max(most, _PADDED * kind.texts):
            raise TensorError(
                f"The texts of '{shown(name)}' have up to {kind.longest} bytes and would take {padded} in an .npz, where each is as long as the longest, "
                f"and {OPTION} {most} allows no more; give --resume and a higher number, or begin anew with .jsonl or .parquet."
            )
    names, errors = (_free(name, kinds) for name in ("row_name", "row_error"))
    with atomic_write(output) as target, zipfile.ZipFile(target, "w") as archive:
        for name, kind in kinds.items():
            if kind.dtype is None:  # no row has it
                continue
            dtype = np.dtype(f"S{kind.longest}") if kind.dtype.hasobject else kind.dtype
            missing = np.full(kind.shape, np.nan if dtype.kind in "fc" else b"" if dtype.kind == "S" else 0, dtype)
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                _write_header(member, dtype, (rows, *kind.shape))
                for record in _again(format, file):
                    value = record.outputs.get(name, missing)
                    member.write(np.ascontiguousarray(value.astype(dtype)).tobytes())
        _write_texts(archive, names, rows, lambda: (record.name for record in _again(format, file)))
        _write_texts(archive, errors, rows, lambda: (record.error for record in _again(format, file)))


def join_parquet(output: Path, format: Records, forms: Sequence[OutputForm], file: BinaryIO) -> None:
    """Write the stored records of `file` as a .parquet file with the columns "row", "name", one for each output and "error".

    Outputs are numbers or nested lists; those with highest scores are lists of their indices, labels and values. Rows that failed
    have nulls. Where an output has the name of one of the other columns, that column gets more underscores.

    Raises:
        OSError: the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = _kinds(format, forms, file)
    row, name, error = (_free(each, {form.name: None for form in forms}) for each in ("row", "name", "error"))
    score = pa.struct([("index", pa.int64()), ("label", pa.string()), ("value", pa.float64())])

    def column(form: OutputForm, records: Sequence[Record]) -> pa.Array:
        if form.top:
            return pa.array([record.top.get(form.name) for record in records], pa.list_(score))
        return _column(kinds[form.name], [record.outputs.get(form.name) for record in records])

    def table(records: Sequence[Record]) -> pa.Table:
        return pa.table(
            {
                row: pa.array([record.number for record in records], pa.int64()),
                name: pa.array([record.name.encode("utf-8", "backslashreplace").decode() for record in records], pa.string()),
                **{form.name: column(form, records) for form in forms},
                error: pa.array([record.error or None for record in records], pa.string()),
            }
        )

    with atomic_write(output) as target, pq.ParquetWriter(target, table([]).schema) as writer:
        for records in _groups(_again(format, file)):
            writer.write_table(table(records))


def _column(kind: _Kind, values: Sequence[Array | None]) -> pa.Array:
    """Return the values of an output, None for a row that failed, as an Arrow array of numbers or nested lists."""
    import pyarrow as pa

    if kind.dtype is None:
        return pa.nulls(len(values))
    nothing = np.empty((0,) * len(kind.shape), kind.dtype)
    there = [nothing if value is None else value for value in values]
    if kind.dtype.hasobject:
        flat = pa.array([text for value in there for text in value.ravel().tolist()], pa.binary())
        flat = flat.cast(pa.string()) if kind.utf8 else flat
    else:
        numbers = [value.astype(kind.dtype).ravel() for value in there]
        flat = pa.array(np.concatenate(numbers) if numbers else np.zeros(0, kind.dtype))
    missing = np.array([value is None for value in values], bool)
    if not kind.shape:
        return pa.array([None if gone else value for gone, value in zip(missing, flat.to_pylist())], flat.type)
    for axis in reversed(range(len(kind.shape))):
        lengths = np.concatenate(
            [np.full(int(np.prod(value.shape[:axis], dtype=np.int64)), value.shape[axis], np.int32) for value in there]
            or [np.zeros(0, np.int32)]
        )
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
        gone = np.append(missing, False) if axis == 0 else None
        flat = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64(), mask=gone), flat)
    return flat


def _kinds(format: Records, forms: Sequence[OutputForm], file: BinaryIO) -> dict[str, _Kind]:
    kinds = {form.name: _Kind() for form in forms}
    for record in _again(format, file):
        for name, array in record.outputs.items():
            kinds[name].see(array)
    return kinds


def _again(format: Records, file: BinaryIO) -> Iterator[Record]:
    file.seek(0)
    return format.records(file)


def _groups(records: Iterator[Record]) -> Iterator[list[Record]]:
    group: list[Record] = []
    size = 0
    for record in records:
        group.append(record)
        size += sum(array.nbytes for array in record.outputs.values())
        if len(group) >= _GROUP_ROWS or size >= _GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _write_header(member: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(member, header)


def _write_texts(archive: zipfile.ZipFile, name: str, rows: int, texts: Callable[[], Iterator[str]]) -> None:
    dtype = np.dtype(f"<U{max((len(text) for text in texts()), default=0) or 1}")
    info = zipfile.ZipInfo(f"{name}.npy")
    info.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(info, "w", force_zip64=True) as member:
        _write_header(member, dtype, (rows,))
        for text in texts():
            member.write(np.array(text, dtype).tobytes())


def _free(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
