"""The work on a row, in a worker: its values are read, the model runs, and the result is encoded for storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.errors import OpletError, TensorError, text_of
from oplet.texts import LONGEST, one_line
from oplet_predictor import Lent, Outcome, Predictor
from oplet_tools.metadata.detections import Detector
from oplet_tools.running.detecting import Objects, objects_in, picture_input
from oplet_tools.running.many.keeping.results import OutputForm, Records, ResultFormat, RowResult
from oplet_tools.running.many.reading.rows import InputOptions, Row
from oplet_tools.running.model_runner import Details, add_value_rules
from oplet_tools.running.outputs import top_scores
from oplet_tools.running.values.notices import Notice
from oplet_tools.running.values.quantization import dequantize
from oplet_tools.running.values.result_sizes import MOST_RESULT_BYTES, check_result_bytes

__all__ = ["Finished", "RowRunner"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Finished:
    """A row that was run, with its encoded result."""

    number: int
    name: str
    encoded: bytes  #: The result as bytes, in the format of the stored results.
    error: str  #: Why the row failed; "" if it did not.
    notices: tuple[Notice, ...]  #: Notices of what was done to its input values.
    shapes: Mapping[str, tuple[int, ...]]  #: The shapes of its outputs by name; empty if it failed.


@dataclass(eq=False)
class RowRunner:
    """Runs rows in workers of `map_items`: loads a row's values, runs a Predictor on them, encodes the result. Picklable."""

    predictor: Predictor
    constants: Mapping[str, Array]  #: Values of inputs that are the same in each row.
    options: InputOptions  #: Options of the conversion of given values to those of inputs.
    forms: Sequence[OutputForm]  #: The form of each output in the results.
    format: ResultFormat
    first: int  #: The number of the first row.
    max_result_bytes: int = MOST_RESULT_BYTES  #: The most bytes that the results of a row may take.
    detector: Detector | None = None  #: The format of the outputs of an object-detection model; None for other models.

    def _take(self) -> Lent:
        return self.predictor._take()

    def _give(self, lent: Lent) -> None:
        self.predictor._give(lent)

    def _batch_size(self, lent: Lent) -> int:
        return self.predictor._batch_size(lent)

    def _ensure_picklable(self) -> None:
        self.predictor._ensure_picklable()

    def _run_items(self, lent: Lent, first: int, items: Sequence[Any], stopped: Callable[[], bool]) -> list[Outcome]:
        details = input_details(lent)
        outcomes: list[Outcome] = [None] * len(items)
        notices: dict[int, list[Notice]] = {}
        ready: dict[int, dict[str, Array]] = {}
        for place, row in enumerate(items):
            if stopped():
                return outcomes
            notices[place] = []
            try:
                ready[place] = self._values(row, details, notices[place].append)
            except Exception as error:
                outcomes[place] = self._failed(first + place, row, error, notices[place])
        results = self.predictor._run_items(lent, 0, list(ready.values()), stopped)
        for number, (place, result) in enumerate(zip(ready, results)):
            if result is None:  # stopped before
                continue
            row = items[place]
            try:
                if isinstance(result, BaseException):
                    raise result
                objects = self._objects(ready[place], result, details, lent, notices[place])
                outcomes[place] = self._finished(first + place, row, result, lent, notices[place], objects)
            except OpletError as error:
                outcomes[place] = self._failed(first + place, row, error, notices[place], f"item {number}: ")
        return outcomes

    def _values(self, row: Row, details: Mapping[str, Details], notify: Callable[[Notice], None]) -> dict[str, Array]:
        if row.error:
            raise TensorError(row.error)
        values = dict(self.constants)
        for part in row.parts:
            values.update(part.load(details, self.options, notify))
        return values

    def _finished(
        self, number: int, row: Row, values: Mapping[str, Array], lent: Lent, notices: list[Notice], objects: Objects | None
    ) -> Finished:
        columns = lent.single.outputs
        records = self.format if isinstance(self.format, Records) else None
        keeps_all = records is not None and records.keep_top_values
        written = {form.name: values[form.name] for form in self.forms if keeps_all or not form.top}
        check_result_bytes(written, self.max_result_bytes, as_text=records is None, real=not self.options.raw)
        outputs, top = {}, {}
        for form in self.forms:
            value, details = values[form.name], columns[form.name].details
            if form.top:
                top[form.name] = top_scores(value, details, form.top, form.labels, raw=self.options.raw, rules=form.rules)
            outputs[form.name] = value if self.options.raw else _real(value, columns[form.name])
        told = None if objects is None else objects.as_dict()
        encoded = self.format.encode(RowResult(self.first + number, row.name, outputs, top, "", told))
        shapes = {name: value.shape for name, value in outputs.items()}
        return Finished(self.first + number, row.name, encoded, "", tuple(notices), shapes)

    def _objects(
        self,
        given: Mapping[str, Array],
        values: Mapping[str, Array],
        details: Mapping[str, Details],
        lent: Lent,
        notices: list[Notice],
    ) -> Objects | None:
        """Return the objects of a row; None if the model is no detector."""
        picture = picture_input(details)
        if self.detector is None or picture is None or self.options.raw:
            return None
        columns = lent.single.outputs
        real = {column.index: column.tensor_value(_real(values[name], column)) for name, column in columns.items()}
        return objects_in(self.detector, picture, given[picture.name], notices, real)

    def _failed(self, number: int, row: Row, error: Exception, notices: list[Notice], prefix: str = "") -> Finished:
        if isinstance(error, OSError) and error.strerror:
            text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        elif isinstance(error, OpletError):
            text = str(error).removeprefix(prefix)
        elif isinstance(error, MemoryError):
            text = "there is not enough memory for its values."
        else:
            text = f"unexpected {text_of(error, named=True)}"
        text = one_line(text, LONGEST)
        encoded = self.format.encode(RowResult(self.first + number, row.name, {}, {}, text))
        return Finished(self.first + number, row.name, encoded, text, tuple(notices), {})


def input_details(lent: Lent) -> dict[str, Details]:
    """Return the details of a Predictor's inputs by name, with "limits" and "picture_rules" as in `ModelRunner.inputs`."""
    opened = lent.single
    details = {name: dict(column.details) for name, column in opened.inputs.items()}
    for each in details.values():
        add_value_rules(each, opened.interpreter, opened.subgraph)
    return details


def _real(row: Array, column: Any) -> Array:
    """Dequantize one row of an output; `quantized_dimension` counts the dimensions of the whole tensor, batch included."""
    if column.fills_batch and row.ndim == len(column.shape):
        real: Array = dequantize(row[np.newaxis], column.details, column.name)[0, ...]
        return real
    return dequantize(row, column.details, column.name)
