"""Pipeline elements (examples): conversion to model inputs, and their size in bytes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from oplet.errors import TensorError

__all__ = ["Input", "byte_count", "with_shared", "without_pandas"]


class Input(Protocol):
    """A model input as this module sees it: an object with the input's dtype and the shape of one row."""

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def shape(self) -> tuple[int, ...]: ...


def without_pandas(inputs: Mapping[str, Input], example: Any) -> Any:
    """Convert a pandas Series, or a DataFrame of one row, to a mapping of input names to arrays; return other examples unchanged.

    Args:
        inputs: the model's inputs by name.
        example: an element of a pipeline.

    Raises:
        TensorError: a DataFrame has not just one row, a cell has no value of the input's dtype, or the cells are too many or too few.
    """
    pandas = sys.modules.get("pandas")  # who has an object of pandas has imported it
    if pandas is None or not isinstance(example, (pandas.Series, pandas.DataFrame)):
        return example
    if isinstance(example, pandas.DataFrame):
        if len(example) != 1:
            raise TensorError(f"an example is one row, and not a DataFrame of {len(example)}; give its rows one by one.")
        cells = {name: example[name].iloc[0] for name in example.columns}
    else:
        cells = dict(example.items())
    [name, *others] = inputs or [""]
    if not others and name and name not in cells and _bare(name) not in cells:
        return {name: _row_of_columns(name, inputs[name], cells)}
    known = {**{_bare(each): column for each, column in inputs.items()}, **inputs}
    return {key: _cell(key, known[key], value) if key in known else value for key, value in cells.items()}


def with_shared(inputs: Mapping[str, Input], example: Any, shared: Mapping[str, Any], uri: str) -> Any:
    """Return the example merged with the rows that all examples share; `uri` names the model in messages.

    Raises:
        TensorError: the example is no mapping although the model has several inputs left, or has one of the shared rows itself.
    """
    if not shared:
        return example
    if not isinstance(example, Mapping):
        left = [name for name in inputs if name not in shared and _bare(name) not in shared]
        if len(left) != 1:
            raise TensorError(
                f"'{uri}' has {len(left)} inputs besides those of inference_args; an example is a mapping with a row for each of them: "
                f"{', '.join(map(repr, left)) or 'none'}."
            )
        example = {left[0]: example}
    twice = [name for name in example if name in shared]
    if twice:
        raise TensorError(f"the input {twice[0]!r:.80} is in the example and in inference_args; give it in one of them.")
    return {**example, **shared}


def byte_count(example: Any) -> int:
    """Return the bytes of an example's values; a str counts one byte per character."""
    if isinstance(example, Mapping):
        return sum(map(byte_count, example.values()))
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(example, (pandas.Series, pandas.DataFrame)):
        values = example.to_numpy().ravel() if example.ndim == 1 or len({*example.dtypes}) > 1 else example.to_numpy()
        return byte_count(values)
    if isinstance(example, (bytes, str)):
        return len(example)
    array = example if isinstance(example, np.ndarray) else np.asarray(example)
    return sum(map(byte_count, array.flat)) if array.dtype == object and array.size and array.ndim else int(array.nbytes)


def _row_of_columns(name: str, column: Input, cells: Mapping[Any, Any]) -> NDArray[Any]:
    """Combine the cells of all columns, in order, into one input row."""
    shape = (len(cells),) if column.shape == (-1,) else column.shape
    if min(shape, default=1) < 0 or int(np.prod(shape)) != len(cells):
        raise TensorError(
            f"input '{name}': a row of {len(cells)} columns does not fill {list(column.shape)}; drop columns, or name one '{name}'."
        )
    row = np.empty(len(cells), column.dtype)
    for place, (key, value) in enumerate(cells.items()):
        cell = _cell(str(key), column, value)
        if np.ndim(cell):
            raise TensorError(
                f"input '{name}': the column {key!r:.80} has an array of shape {list(np.shape(cell))}, not one value."
            )
        row[place] = cell
    return row.reshape(shape)


def _cell(key: str, column: Input, value: Any) -> NDArray[Any]:
    """Convert a cell's value to the input's dtype; numpy arrays stay as they are."""
    if isinstance(value, np.ndarray) or column.dtype == object:
        return value  # type: ignore[no-any-return]
    array = np.asarray(value)
    if array.dtype == column.dtype:
        return array
    if np.can_cast(array.dtype, column.dtype, "same_kind") or (array.dtype.kind in "iu" and column.dtype.kind in "iuf"):
        with np.errstate(over="ignore"):
            made = array.astype(column.dtype)
        if column.dtype.kind not in "iu" or np.array_equal(made, array):
            return made
    raise TensorError(f"the column {key!r:.80} has {value!r:.80}, which {column.dtype} does not hold.")


def _bare(name: str) -> str:
    return name.removeprefix("serving_default_").removesuffix(":0")
