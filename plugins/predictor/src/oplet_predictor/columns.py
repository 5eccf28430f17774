"""Columns: the inputs and outputs of a model over many rows. Their names, and the checks of given values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oplet.errors import OpletError, TensorError, failures, text_of
from oplet.schema.enums import TensorType
from oplet.schema.naming import shown
from oplet.toolkit import string_array

if TYPE_CHECKING:
    from oplet import Tensor

__all__ = ["Collected", "Column", "Rows", "input_column", "joined", "named", "output_column", "placed", "read_item", "read_rows"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Column:
    """An input or output of a Predictor.

    Attributes:
        name: its name: that of the signature's argument or result, or the tensor's.
        dtype: the numpy dtype of its rows; object for text, which has elements of bytes.
        shape: the shape of one row; -1 where rows may differ.
        details: the tensor's dictionary of `Interpreter.get_input_details`, with its quantization.
        index: the tensor's index.
        fills_batch: whether the tensor has a leading batch dimension (of 1 for one row); else a row is the whole tensor.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    details: Mapping[str, Any] = field(repr=False, compare=False)
    index: int
    fills_batch: bool

    def tensor_value(self, row: Array) -> Array:
        """Return the value that the tensor gets for one row: with a leading dimension of 1 if `fills_batch`."""
        return row[np.newaxis] if self.fills_batch else row

    def row_of(self, value: Array) -> Array:
        """Return the row in a tensor's value: without the leading dimension of 1 if `fills_batch`."""
        return value[0, ...] if self.fills_batch and value.shape[:1] == (1,) else value

    def fits(self, shape: Sequence[int]) -> bool:
        """Return whether a row may have this shape."""
        return len(shape) == len(self.shape) and all(mine in (-1, its) for mine, its in zip(self.shape, shape))

    @property
    def described(self) -> str:
        """Dtype and shape of a row in words, for messages."""
        return f"rows of {'text' if self.dtype == object else self.dtype} {list(self.shape)}"


def input_column(name: str, tensor: Tensor, details: Mapping[str, Any]) -> Column:
    """Make the column of an input; its rows may differ in shape where the model's `shape_signature` is -1."""
    signature = _signature(tensor)
    fills = bool(signature) and (signature[0] == -1 or tensor.shape[0] == 1)
    return Column(name, _dtype(tensor), signature[1:] if fills else signature, details, tensor.index, fills)


def output_column(name: str, tensor: Tensor, details: Mapping[str, Any]) -> Column:
    """Make the column of an output from its tensor, which is allocated for one row."""
    signature = _signature(tensor)
    if tensor.is_dynamic:  # its shape is known when it has run, and whether a free leading dimension counts rows is not told
        fills = signature[:1] == (1,)
        shape = signature
    else:
        fills = tensor.shape[:1] == (1,)
        shape = tensor.shape
    return Column(name, _dtype(tensor), tuple(shape[1:] if fills else shape), details, tensor.index, fills)


def named(tensors: Sequence[Tensor]) -> dict[str, Tensor]:
    """Map tensors' names to tensors; a tensor whose name is empty or not unique is called "tensor_INDEX"."""
    counts = Counter(tensor.name for tensor in tensors)
    return {t.name if t.name and counts[t.name] == 1 else f"tensor_{t.index}": t for t in tensors}


class Rows:
    """Checked input values of a Predictor's call: for each input, a value for every row.

    Attributes:
        count: the number of rows.
    """

    def __init__(self, columns: Sequence[Column], values: Sequence[Array | list[Array]], count: int) -> None:
        self.count = count
        self._columns = columns
        self._values = values

    @property
    def alike(self) -> bool:
        """Whether all rows of an input have the same shape, for each input."""
        return not any(isinstance(value, list) for value in self._values)

    def one(self, row: int) -> list[Array]:
        """Return the value that each input tensor gets for one row, in the order of the inputs."""
        return [
            value[row : row + 1]
            if column.fills_batch and not isinstance(value, list)
            else column.tensor_value(value[row, ...] if not isinstance(value, list) else value[row])
            for column, value in zip(self._columns, self._values)
        ]

    def several(self, start: int, stop: int, size: int) -> list[Array]:
        """Return each input tensor's value for rows `start` to `stop` (excluded); the last row is repeated up to `size` rows."""
        blocks = [np.asarray(value[start:stop]) for value in self._values]
        more = size - (stop - start)
        return [np.concatenate([block, np.repeat(block[-1:], more, 0)]) for block in blocks] if more else blocks


def read_rows(columns: Mapping[str, Column], given: object, model: str) -> Rows:
    """Check the rows that a Predictor was called with, and return them as `Rows`.

    Raises:
        TensorError: names, dtypes or shapes are wrong, or the inputs have different numbers of rows.
    """
    values = []
    counts: dict[str, int] = {}
    for name, value in _by_column(columns, given, model).items():
        column = columns[name]
        read = _read(column, value)
        counts[name] = len(read)
        values.append(read)
    if len(set(counts.values())) > 1:
        told = ", ".join(f"'{name}' {count}" for name, count in counts.items())
        raise TensorError(f"The inputs of {model} have different numbers of rows: {told}.")
    return Rows(list(columns.values()), values, next(iter(counts.values()), 0))


def read_item(columns: Mapping[str, Column], given: object, model: str) -> Rows:
    """Check one item, a row for each input; a whole tensor value with its leading dimension of 1 is accepted too.

    Raises:
        TensorError: names, dtypes or shapes are wrong.
    """
    values: list[Array | list[Array]] = []
    for name, value in _by_column(columns, given, model).items():
        column = columns[name]
        array = _array(column, value)
        if column.fills_batch and array.ndim == len(column.shape) + 1 and len(array) == 1:
            array = array[0, ...]
        if not column.fits(array.shape):
            raise _misfit(column, array.shape)
        values.append([array])
    return Rows(list(columns.values()), values, 1)


def joined(items: Sequence[Rows]) -> Rows:
    """Concatenate several `Rows` of one row each into one."""
    first = items[0]
    values: list[Array | list[Array]] = []
    for place in range(len(first._values)):
        rows = [row for item in items for row in item._values[place]]
        values.append(rows if len({row.shape for row in rows}) > 1 else np.stack(rows))
    return Rows(first._columns, values, len(items))


def _read(column: Column, value: object) -> Array | list[Array]:
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and _is_ragged(column, value)):
        rows = list(value)
        if len({row.shape if isinstance(row, np.ndarray) else None for row in rows}) > 1:
            return [_row(column, row, number) for number, row in enumerate(rows)]
    array = _array(column, value)
    if array.ndim == len(column.shape) + 2 and column.fills_batch and array.shape[1] == 1:
        array = array[:, 0]  # values as `set_tensor` takes them, stacked
    if not array.ndim or not column.fits(array.shape[1:]):
        if array.ndim and not array.size and not array.shape[0] and array.ndim == 1:
            return np.empty((0, *(max(size, 0) for size in column.shape)), column.dtype)  # an empty list of rows
        raise _misfit(column, array.shape, rows=True)
    return array


def _is_ragged(column: Column, value: Array) -> bool:
    """Return whether the value is an array of arrays, the form in which a Predictor returns rows of several shapes."""
    return (
        value.dtype == object and value.ndim == 1 and bool(column.shape) and any(isinstance(row, np.ndarray) for row in value[:1])
    )


def _row(column: Column, value: object, number: int) -> Array:
    try:
        array = _array(column, value)
        if column.fits(array.shape):
            return array
        raise _misfit(column, array.shape)
    except OpletError as error:
        raise placed(error, f"row {number}") from None


def _array(column: Column, value: object) -> Array:
    """Return the value as an array of the column's dtype, by the rule of `Interpreter.set_tensor`: nothing is cast."""
    try:
        array: Array = string_array(value) if column.dtype == object else np.asarray(value)
    except failures() as error:
        raise TensorError(
            f"input '{shown(column.name)}': a {type(value).__name__} is no array of rows ({text_of(error)}); it takes {column.described}."
        ) from error
    if array.dtype != column.dtype and array.size:
        advice = f"; convert with .astype(np.{column.dtype})" if column.dtype != object and array.dtype.kind in "biufc" else ""
        raise TensorError(f"input '{shown(column.name)}': the value is {array.dtype}, but it takes {column.described}{advice}.")
    return array


def _misfit(column: Column, shape: Sequence[int], rows: bool = False) -> TensorError:
    inner = ", ".join(map(str, column.shape))
    got, wanted = ("rows", f"[N, {inner}]" if inner else "[N]") if rows else ("a row", f"[{inner}]")
    free = ", where -1 may be any size" if -1 in column.shape else ""
    return TensorError(f"input '{shown(column.name)}': got {got} of the shape {list(shape)}, but it takes {wanted}{free}.")


def _by_column(columns: Mapping[str, Column], given: object, model: str) -> dict[str, object]:
    """Return the given values by the full names of the columns, in the columns' order."""
    takes = ", ".join(f"'{shown(name)}'" for name in columns) or "none"
    if not isinstance(given, Mapping):
        if len(columns) != 1:
            raise TensorError(f"{model} has {len(columns)} inputs; give a mapping with rows for each of them: {takes}.")
        return {next(iter(columns)): given}
    short = _short_names(columns)
    found: dict[str, object] = {}
    for key, value in given.items():
        name = key if key in columns else short.get(key) if isinstance(key, str) else None
        if name is None or name in found:
            raise TensorError(f"{model} has no {'second ' if name else ''}input {key!r:.80}; its inputs are {takes}.")
        found[name] = value
    missing = [name for name in columns if name not in found]
    if missing:
        raise TensorError(f"{model} needs rows for its input '{shown(missing[0])}' too; its inputs are {takes}.")
    return {name: found[name] for name in columns}


def _short_names(columns: Mapping[str, Column]) -> dict[str, str]:
    """Map short names to columns: without what converters add ("serving_default_x:0" is x), where that is unique."""
    bare = {name: name.removeprefix("serving_default_").removesuffix(":0") for name in columns}
    counts = Counter(bare.values())
    return {short: name for name, short in bare.items() if counts[short] == 1}


class Collected:
    """Collector that assembles one output's rows, which come one by one or in batches, into one array.

    Args:
        column: the output.
        count: the number of rows.
    """

    def __init__(self, column: Column, count: int) -> None:
        self._column = column
        self._count = count
        self._array: Array | None = None
        self._rows: list[Array] | None = None

    def put(self, row: int, value: Array) -> None:
        """Store an output's `value` for one row, batch dimension included, as row number `row`; rows must come in ascending order."""
        value = self._column.row_of(value)
        array = self._array
        if array is None and self._rows is None:
            array = self._array = np.empty((self._count, *value.shape), value.dtype)
        if array is not None and array.shape[1:] == value.shape:
            array[row, ...] = value  # a text without dimensions too, of which array[row] would hold the array
            return
        if self._rows is None:
            self._rows = [] if array is None else [array[i].copy() for i in range(row)]
            self._array = None
        self._rows.append(value.copy())

    def put_several(self, start: int, stop: int, value: Array, size: int) -> None:
        """Store rows `start` to `stop` (excluded) from an output's value for `size` rows, of which the last ones may be padding."""
        inside = value.shape[1:] if self._column.fills_batch else (value.shape[0] // size, *value.shape[1:])
        if self._array is None:
            self._array = np.empty((self._count, *inside), value.dtype)
        self._array[start:stop] = value.reshape(size, *inside)[: stop - start]

    @property
    def rows(self) -> Array:
        """All rows: one array, or if their shapes differ, an array of objects that holds an array for each row."""
        if self._rows is not None:
            together = np.empty(self._count, object)
            for number, row in enumerate(self._rows):
                together[number] = row
            return together
        if self._array is None:
            return np.empty((0, *(max(size, 0) for size in self._column.shape)), self._column.dtype)
        return self._array


def placed(error: OpletError, place: str) -> OpletError:
    """Prefix an error's message by the row or item that it is about ("row 3"); return the error."""
    error.args = (f"{place}: {error}",)
    return error


def _signature(tensor: Tensor) -> tuple[int, ...]:
    signature = tuple(map(int, tensor.shape_signature))
    return signature if len(signature) == len(tensor.shape) else tuple(map(int, tensor.shape))


def _dtype(tensor: Tensor) -> np.dtype[Any]:
    return np.dtype(object) if tensor.type is TensorType.STRING else np.dtype(tensor.dtype)
