"""The callable that Ray Data's actors run: batches of columns in, batches of columns out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from oplet.errors import OpletError
from oplet_predictor import Predictor

__all__ = ["ERRORS", "PredictBatches"]

#: The column with an error's sentence in each row, "" where the row was run.
ERRORS = "error"

Columns = dict[str, NDArray[Any]]


class PredictBatches:
    """A model as a callable class for `Dataset.map_batches`: each actor has an instance, which opens the model at its first
    batch.

    Args:
        model: the model's path, which each node of the cluster must have, or its bytes.
        inputs: the column of each input of the model; None for the columns that are called as the inputs, or, for a model with
            one input, the only column of the batch that is not kept.
        outputs: the new column of each output; None for columns that are called as the outputs.
        keep: the columns of the batch that are kept; None for all.
        errors: "raise" ends the job with the error of a row that cannot be run; "column" adds a column `error` with each row's
            error, "" if it ran; outputs of rows with an error are zeros.
        predictor: the further arguments of `oplet.Predictor`.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | bytes,
        *,
        inputs: Mapping[str, str] | None = None,
        outputs: Mapping[str, str] | None = None,
        keep: Sequence[str] | None = None,
        errors: Literal["raise", "column"] = "raise",
        **predictor: Any,
    ) -> None:
        if errors not in ("raise", "column"):
            raise ValueError(f"errors is {errors!r}; it must be 'raise' or 'column'.")
        self._predict = Predictor(model, **predictor)
        self._inputs, self._outputs, self._keep, self._errors = inputs, outputs, keep, errors

    def __call__(self, batch: Columns) -> Columns:
        """Run the model on a batch.

        Args:
            batch: columns of N values each, as numpy arrays; rows of tensors as an array (N, *row), or of dtype object for rows of several
                shapes. Types are cast where no value changes: Arrow has no other width for some of them.

        Raises:
            OpletError: a column is missing or does not fit, or a row cannot be run, with `errors="raise"`.
        """
        wanted = self._predict.inputs
        columns = self._columns(wanted, batch)
        rows = {name: _as_input(batch[column], wanted[name].dtype) for name, column in columns.items()}
        kept = {
            name: batch[name]
            for name in (batch if self._keep is None else self._keep)
            if name not in columns.values() or self._keep
        }
        count = len(next(iter(batch.values()), ()))
        try:
            results, sentences = self._predict(rows), [""] * count
        except OpletError:
            if self._errors == "raise":
                raise
            results, sentences = self._one_by_one(rows, count)
        if self._errors == "column":
            kept[ERRORS] = np.array(sentences, object)
        names = self._outputs or {}
        return {**kept, **{names.get(name, name): value for name, value in results.items()}}

    def _columns(self, wanted: Mapping[str, Any], batch: Columns) -> dict[str, str]:
        """Return the name of the column that feeds each input."""
        if self._inputs is not None:
            found = dict(self._inputs)
        elif set(wanted) <= set(batch):
            found = {name: name for name in wanted}
        else:
            others = [name for name in batch if name not in (self._keep or ())]
            found = dict(zip(wanted, others)) if len(wanted) == len(others) == 1 else {name: name for name in wanted}
        missing = sorted({column for column in found.values() if column not in batch})
        if missing:
            raise KeyError(
                f"The batch has no column {', '.join(missing)}; it has {', '.join(batch) or 'none'}, and the inputs of {self._predict!r} are "
                f"{', '.join(wanted)}: name the column of each with inputs={{...}}."
            )
        return found

    def _one_by_one(self, rows: Mapping[str, Any], count: int) -> tuple[Columns, list[str]]:
        """Run row by row; return the results, with zeros for failed rows, and each row's error message ("" if none)."""
        found: list[dict[str, NDArray[Any]] | None] = []
        sentences = []
        for number in range(count):
            try:
                found.append(self._predict({name: values[number : number + 1] for name, values in rows.items()}))
                sentences.append("")
            except OpletError as error:
                found.append(None)
                sentences.append(str(error))
        results = {}
        for name, column in self._predict.outputs.items():
            shape = next(
                (each[name].shape[1:] for each in found if each is not None), tuple(max(size, 0) for size in column.shape)
            )
            empty = np.full((1, *shape), b"", object) if column.dtype.hasobject else np.zeros((1, *shape), column.dtype)
            results[name] = np.concatenate([empty if each is None else each[name] for each in found])
        return results, sentences


def _as_input(values: NDArray[Any], dtype: np.dtype[Any]) -> Any:
    """Cast values to an input's dtype if that changes none of them; ragged rows become a list."""
    array = np.asarray(values)
    if array.dtype == dtype or dtype.hasobject:
        return array
    if array.dtype.hasobject:
        return [_as_input(row, dtype) for row in array]
    cast = array.astype(dtype)
    return cast if np.array_equal(cast, array) else array  # the Predictor refuses it by name
