"""Combines the sources that `--input` names into rows with values for all inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray

from oplet.errors import TensorError
from oplet.texts import counted
from oplet_tools.running.inputs import RowsError, load_inputs, split_input
from oplet_tools.running.many.kinds import ARROW, LINES, STDIN, is_many
from oplet_tools.running.many.reading.arrays import Arrays
from oplet_tools.running.many.reading.arrow_tables import ArrowTable
from oplet_tools.running.many.reading.folders import Folder, JsonLines
from oplet_tools.running.many.reading.rows import InputOptions, Row, RowSource
from oplet_tools.running.model_runner import Details
from oplet_tools.running.values.notices import NoticeCallback

__all__ = ["Sources", "open_sources"]


@dataclass
class Sources:
    """The sources (files, folders, streams) of all inputs' rows."""

    #: The inputs with the same value in every row: by name, the value and the file that it came from.
    constants: dict[str, tuple[NDArray[Any], str]] = field(default_factory=dict)
    _sources: dict[str, RowSource] = field(default_factory=dict)

    @property
    def count(self) -> int | None:
        """The number of rows, None if it is known only when all are read."""
        counts = [source.count for source in self._sources.values() if source.count is not None]
        return counts[0] if counts else None

    @property
    def can_come_again(self) -> bool:
        """Whether the rows can be read a second time, as a resumed run must; False for standard input."""
        return all(text.rpartition("=")[2] != STDIN for text in self._sources)

    @property
    def identity(self) -> dict[str, Any]:
        """Data that identify the rows, by the text that was given for each source; a resumed run compares them."""
        return {text: source.identity() for text, source in self._sources.items()}

    def add(self, text: str, source: RowSource) -> None:
        """Add a source of rows under `text`, its text on the command line.

        Raises:
            TensorError: the source has another number of rows than one added before, or two folders' files have different names.
        """
        if text in self._sources:
            raise TensorError(f"'{text}' is given twice.")
        for other, known in self._sources.items():
            if isinstance(source, Folder) and isinstance(known, Folder):
                known.check_pairs(source)
            if None not in (source.count, known.count) and source.count != known.count:
                raise TensorError(
                    f"'{other}' has {counted(known.count or 0, 'row')} and '{text}' {source.count}; give as many for each input."
                )
        self._sources[text] = source

    def rows(self, start: int) -> Iterator[Row]:
        """Yield the rows from number `start` on, with values for all inputs.

        Raises:
            TensorError: a file is damaged, or one input has fewer rows than another.
        """
        if len(self._sources) == 1:
            [only] = self._sources.values()
            yield from only.rows(start)
            return
        readers = {text: source.rows(start) for text, source in self._sources.items()}
        while True:
            rows = {text: next(reader, None) for text, reader in readers.items()}
            ended = [text for text, row in rows.items() if row is None]
            there = [row for row in rows.values() if row is not None]
            if not there:
                return
            if ended:
                raise TensorError(f"'{ended[0]}' ends before the others; give as many rows for each input.")
            errors = [row.error for row in there if row.error]
            yield Row(there[0].name, tuple(part for row in there for part in row.parts), errors[0] if errors else "")


def open_sources(
    given: Sequence[str],
    details: Mapping[str, Details],
    options: InputOptions,
    stdin: BinaryIO,
    notify: NoticeCallback,
    say: Callable[[str], None],
) -> Sources:
    """Open the sources of rows that `--input` names. A file with a single value is used in every row; an array that may be a
    value or rows is rows.

    Args:
        given: "SOURCE" or "NAME=SOURCE" each. Without a name, a source is for the next input without one; tables, JSON lines and
            .npz files may have several inputs by name.
        details: the inputs' details, by name, in order.
        options: options of the conversion of given values to those of inputs.
        stdin: standard input.
        notify: called with a notice of each change to a single value.
        say: called with a sentence on files that were left out.

    Raises:
        TensorError: an input is unknown, given twice or not at all, or a source does not fit.
        OSError: a file cannot be read.
    """
    sources = Sources()
    taken: set[str] = set()
    split = [(text, *split_input(text, details)) for text in given]
    named = {name for _, name, _ in split if name}
    for text, name, path in split:
        free = [each for each in details if each not in taken and each not in named]
        if name in taken:
            raise TensorError(f"The input '{name}' is given twice.")
        if name is None and not free:
            raise TensorError(f"There is no input left for '{path}'; the model takes {', '.join(map(repr, details))}.")
        theirs = {name: details[name]} if name else {each: details[each] for each in free}
        if not is_many(str(path)):
            single = _single_value(path, name, theirs, options, notify, len(given) > 1)
            if single is not None:
                sources.constants.update(single)
                taken.update(single)
                continue
        if len([1 for _, other, _ in split if other is None]) > 1 and name is None:
            name = free[0]
            theirs = {name: details[name]}
        source = _opened(path, name or "", theirs, stdin, say)
        sources.add(text, source)
        taken.update(source.inputs)
    missing = [name for name in details if name not in taken]
    if missing:
        raise TensorError(f"No value is given for the input '{missing[0]}'; in a run of many rows each input needs one.")
    if not sources._sources:
        raise TensorError(
            "Nothing that is given has rows: give a folder, .jsonl, .parquet, .npy or .npz, or - for standard input."
        )
    return sources


def _opened(path: Path, name: str, details: Mapping[str, Details], stdin: BinaryIO, say: Callable[[str], None]) -> RowSource:
    suffix = path.suffix.lower()
    if str(path) == STDIN:
        return JsonLines(stdin, tuple(details))
    if path.is_dir():
        return Folder(path, tuple(details), say)
    if suffix in LINES:
        return JsonLines(path, tuple(details))
    if suffix in ARROW:
        return ArrowTable(path, name, details)
    return Arrays(path, name, details)


def _single_value(
    path: Path, name: str | None, details: Mapping[str, Details], options: InputOptions, notify: NoticeCallback, several: bool
) -> dict[str, tuple[NDArray[Any], str]] | None:
    """Return the values of inputs from a file that holds one value for each; None if its arrays are rows. Where both fit it is
    rows, unless there is one row and `several` inputs are given.
    """
    if path.suffix.lower() in (".npy", ".npz"):
        with suppress(TensorError):
            if Arrays(path, name or "", details).count != 1 or not several:
                return None
    text = f"{name}={path}" if name else str(path)
    try:
        return load_inputs([text], details, preprocessing=options.preprocessing, raw=options.raw, notify=notify)
    except RowsError:
        return None
