"""Rows of Parquet and Arrow files, read by pyarrow: a column for each input, of numbers, nested lists, text, or the bytes of pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.errors import TensorError, text_of
from oplet.toolkit import install_command, open_file
from oplet_tools.running.many.identity import file_identity
from oplet_tools.running.many.reading.rows import Row, ValuePart, own_names
from oplet_tools.running.model_runner import Details

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ArrowTable", "arrow_needs"]

#: Rows that are read together, and the longest name of a row that is kept, in characters.
_BATCH, _LONGEST_NAME = 64, 1000


def arrow_needs() -> str:
    """Return the part of an error message that says which package Parquet and Arrow files need, and how to install it."""
    return f"Parquet and Arrow files need pyarrow: {install_command('oplet-tools', 'arrow')}"


class ArrowTable:
    """The rows of a Parquet or Arrow table. Columns that are no inputs are ignored, except "name", which has the rows' names.

    Args:
        path: the file.
        name: the input that the table's only column is for; "" to match columns with inputs by name.
        details: the inputs' details.

    Raises:
        TensorError: pyarrow is missing, the file is damaged, or an input has no column.
        OSError: the file cannot be read.
    """

    def __init__(self, path: Path, name: str, details: Mapping[str, Details]) -> None:
        self._path = path
        open_file(path).close()
        try:
            import pyarrow
        except ModuleNotFoundError as error:
            raise TensorError(f"'{path}' cannot be read: {arrow_needs()}.") from error
        del pyarrow
        self._details = {name: details[name]} if name else details
        try:
            schema, self._rows = self._shape()
        except Exception as error:  # whatever a damaged file leads to
            raise self._damaged(error) from error
        self._columns: dict[str, str] = own_names({column: column for column in schema.names}, self._details, str(path))
        self._names = "name" if "name" in schema.names and "name" not in self._columns.values() else ""

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(self._details)

    @property
    def count(self) -> int:
        return self._rows

    def rows(self, start: int) -> Iterator[Row]:
        number = 0
        batches = self._batches()
        while True:
            try:
                batch = next(batches, None)
            except Exception as error:
                raise self._damaged(error) from error
            if batch is None:
                return
            for place in range(batch.num_rows):
                if number >= start:
                    yield self._row(batch, place, number)
                number += 1

    def identity(self) -> dict[str, Any]:
        return file_identity(self._path) | {"rows": self._rows}

    def _shape(self) -> tuple[pa.Schema, int]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._path.suffix.lower() == ".parquet":
            with pq.ParquetFile(self._path) as file:
                return file.schema_arrow, file.metadata.num_rows
        with pa.memory_map(str(self._path)) as mapped:
            try:
                reader = pa.ipc.open_file(mapped)
                return reader.schema, sum(reader.get_batch(number).num_rows for number in range(reader.num_record_batches))
            except pa.ArrowInvalid:
                mapped.seek(0)
                stream = pa.ipc.open_stream(mapped)
                return stream.schema, sum(batch.num_rows for batch in stream)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        wanted = [*self._columns.values(), *([self._names] if self._names else [])]
        if self._path.suffix.lower() == ".parquet":
            with pq.ParquetFile(self._path) as file:
                for batch in file.iter_batches(_BATCH, columns=wanted, use_threads=False):
                    batch.validate(full=True)
                    yield batch
            return
        with pa.memory_map(str(self._path)) as mapped:
            try:
                reader = pa.ipc.open_file(mapped)
            except pa.ArrowInvalid:
                mapped.seek(0)
                source: Iterator[pa.RecordBatch] = iter(pa.ipc.open_stream(mapped))
            else:
                source = (reader.get_batch(number) for number in range(reader.num_record_batches))
            for batch in source:
                batch.validate(full=True)
                yield batch.select(wanted)

    def _row(self, batch: pa.RecordBatch, place: int, number: int) -> Row:
        source = f"{self._path.name}[{number}]"
        called = source
        try:
            if self._names:
                told = batch.column(self._names)[place].as_py()
                called = str(told)[:_LONGEST_NAME] if isinstance(told, (str, int)) and str(told) else source
            parts = []
            for name, column in self._columns.items():
                value = _value(batch.column(column)[place], np.dtype(self._details[name]["dtype"]).kind == "S")
                if value is None:
                    return Row(called, error=f"'{source}' has no value for the input '{name}'.")
                parts.append(ValuePart(name, _in_shape(value, self._details[name]), source))
        except Exception as error:  # values of types that have no arrays, uneven lists, text that is not UTF-8
            return Row(called, error=f"'{source}' cannot be read: {text_of(error).rstrip('.')}.")
        return Row(called, tuple(parts))

    def _damaged(self, error: Exception) -> TensorError:
        if isinstance(error, TensorError):
            return error
        why = "there is not enough memory" if isinstance(error, MemoryError) else text_of(error).rstrip(".")[:300]
        return TensorError(f"'{self._path}' is no Parquet or Arrow file, or a damaged one: {why}; write it again.")


def _in_shape(value: Any, details: Details) -> Any:
    """Reshape a flat list that has all values of the input to its shape, as tables may hold flat lists; other values are
    unchanged.
    """
    shape = tuple(map(int, details["shape"]))
    flat = isinstance(value, np.ndarray) and value.ndim == 1 and -1 not in details["shape_signature"]
    return value.reshape(shape) if flat and value.size == math.prod(shape) else value


def _value(scalar: pa.Scalar, text: bool) -> Any:
    """Convert a cell to an array, to text or to the bytes of a picture; None for a null."""
    import pyarrow as pa

    if not scalar.is_valid:
        return None
    kind = scalar.type
    if isinstance(kind, pa.FixedShapeTensorType):
        return _array(scalar.value).reshape(kind.shape)
    if isinstance(scalar, pa.ExtensionScalar):
        return _value(scalar.value, text)
    if pa.types.is_struct(kind):  # as `datasets` has pictures
        names = [kind.field(number).name for number in range(kind.num_fields)]
        if "bytes" not in names:
            raise TensorError(f"its type {kind} has no field 'bytes'")
        return _value(scalar["bytes"], text)
    if _is_list(kind):
        return _array(scalar)
    value = scalar.as_py()
    if isinstance(value, (str, bytes)):
        if text:
            return np.array([value], object)
        if isinstance(value, bytes):
            return value
        raise TensorError("it is text where the input takes numbers")
    return _numbers(pa.array([value], kind)).reshape(())


def _array(scalar: pa.Scalar) -> Any:
    """Convert nested lists of equal lengths to an array."""
    values, shape = scalar.values, [len(scalar.values)]
    while _is_list(values.type):
        if values.null_count:
            raise TensorError("a list in it is null")
        lengths = np.unique(np.asarray(values.value_lengths())) if len(values) else np.zeros(1, np.int64)
        if len(lengths) > 1:
            raise TensorError(f"lists in it have {lengths[0]} and {lengths[1]} values")
        shape.append(int(lengths[0]))
        values = values.flatten()
    if math.prod(shape) != len(values):
        raise TensorError(f"it has {len(values)} values for the shape {shape}")
    import pyarrow as pa

    if any(
        check(values.type)
        for check in (pa.types.is_string, pa.types.is_binary, pa.types.is_large_string, pa.types.is_large_binary)
    ):
        return np.array(values.to_pylist(), object).reshape(shape)
    return _numbers(values).reshape(shape)


def _numbers(values: pa.Array) -> Any:
    import pyarrow as pa

    if values.null_count:
        raise TensorError("a number in it is null")
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_boolean(values.type)):
        raise TensorError(f"its type {values.type} is none of numbers, text or pictures")
    return values.to_numpy(zero_copy_only=False)


def _is_list(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))
