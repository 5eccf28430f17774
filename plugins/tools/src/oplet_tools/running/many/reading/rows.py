"""A row that is still to be read: its name, and parts that load the values of inputs in a worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from numpy.typing import NDArray

from oplet.errors import TensorError
from oplet_tools.running.inputs import Entry, fitted, load_inputs, parse_json
from oplet_tools.running.model_runner import Details
from oplet_tools.running.pictures import load_picture
from oplet_tools.running.values.notices import NoticeCallback
from oplet_tools.running.values.preprocessing import Preprocessing

__all__ = ["FilePart", "InputOptions", "JsonPart", "Part", "Row", "RowSource", "ValuePart", "own_names"]

Array = NDArray[Any]


@dataclass(frozen=True)
class InputOptions:
    """Options of the conversion of given values to the inputs' types and shapes."""

    raw: bool = False  #: Whether values are the integers of quantized tensors.
    preprocessing: Preprocessing = field(default_factory=Preprocessing)  #: The preprocessing of pictures.


class Part(Protocol):
    """Protocol: a part of a row, which loads values of one or several inputs when a worker needs them. Parts are picklable."""

    def load(self, details: Mapping[str, Details], options: InputOptions, notify: NoticeCallback) -> dict[str, Array]:
        """Load the part's values; return them by the inputs' names. `notify` is called with a notice of each change to a value.

        Raises:
            TensorError: a value does not fit.
            OSError: a file cannot be read.
        """


@dataclass(frozen=True)
class Row:
    """One row: a value for each input, still to be loaded."""

    name: str  #: Its name in messages and results.
    parts: tuple[Part, ...] = ()  #: The parts that load the values.
    error: str = ""  #: Why the row has no values, "" if it has.


class RowSource(Protocol):
    """Protocol: a source of rows (a file, a folder, a stream) with values for one input or several."""

    @property
    def inputs(self) -> Sequence[str]:
        """The inputs that each row has values for."""

    @property
    def count(self) -> int | None:
        """The number of rows, None if it is known only when all are read."""

    def rows(self, start: int) -> Iterator[Row]:
        """Yield the rows from number `start` on."""

    def identity(self) -> dict[str, Any]:
        """Return JSON data that identify the rows, so that a resumed run can check that they are unchanged."""


@dataclass(frozen=True)
class FilePart:
    """A file that holds one row: a picture, or .npy, .npz or .json."""

    path: Path
    names: tuple[str, ...]  #: The inputs that it may have values for; if there are several, the entries of the file say which.

    def load(self, details: Mapping[str, Details], options: InputOptions, notify: NoticeCallback) -> dict[str, Array]:
        text = f"{self.names[0]}={self.path}" if len(self.names) == 1 else str(self.path)
        theirs = {name: details[name] for name in self.names}
        found = load_inputs([text], theirs, preprocessing=options.preprocessing, raw=options.raw, notify=notify)
        return {name: value for name, (value, _) in found.items()}


@dataclass(frozen=True)
class JsonPart:
    """A line of JSON: an object with values by the inputs' names, or for one input its value alone."""

    line: bytes  #: The text.
    source: str  #: The name of the line in messages.
    names: tuple[str, ...]  #: The inputs that the line has values for.

    def load(self, details: Mapping[str, Details], options: InputOptions, notify: NoticeCallback) -> dict[str, Array]:
        content = parse_json(self.line, self.source, "line of JSON")
        theirs = {name: details[name] for name in self.names}
        if isinstance(content, dict):
            values = own_names(content, theirs, self.source)
        elif len(self.names) == 1:
            values = {self.names[0]: content}
        else:
            raise TensorError(f"'{self.source}' is no object with a value for each input: {_list(theirs)}.")
        return {
            name: fitted(partial(_given, value), details[name], name, self.source, options.raw, notify)
            for name, value in values.items()
        }


@dataclass(frozen=True)
class ValuePart:
    """A value that was read already: an array, or the bytes of a picture."""

    name: str  #: The name of the input.
    value: Any  #: The array, or the bytes of a PNG or JPEG file.
    source: str  #: The name of the value in messages.

    def load(self, details: Mapping[str, Details], options: InputOptions, notify: NoticeCallback) -> dict[str, Array]:
        if isinstance(self.value, bytes):
            entry: Entry = partial(load_picture, Path(self.source), preprocessing=options.preprocessing, content=self.value)
        else:
            entry = partial(_given, self.value)
        return {self.name: fitted(entry, details[self.name], self.name, self.source, options.raw, notify)}


def own_names(entries: Mapping[str, Any], details: Mapping[str, Details], source: str) -> dict[str, Any]:
    """Return the entries whose names are those of inputs, keyed by the inputs' full names ("x" matches "serving_default_x:0");
    others are ignored.

    For a model with one input, a single entry (besides "name") may have any name.

    Raises:
        TensorError: an input has no entry.
    """
    found: dict[str, Any] = {}
    for name in details:
        short = name.removeprefix("serving_default_").removesuffix(":0")
        if name in entries or short in entries:
            found[name] = entries[name if name in entries else short]
    others = [name for name in entries if name != "name"]
    if not found and len(details) == len(others) == 1:
        return {next(iter(details)): entries[others[0]]}
    missing = [name for name in details if name not in found]
    if missing:
        has = _list(entries) if entries else "nothing"
        raise TensorError(f"'{source}' has no value for the input '{missing[0]}'; it has {has}.")
    return found


def _given(value: Any, details: Mapping[str, Any], name: str) -> Any:
    return value


def _list(names: Mapping[str, Any]) -> str:
    told = [f"'{name}'" for name in list(names)[:10]]
    return ", ".join(told) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
