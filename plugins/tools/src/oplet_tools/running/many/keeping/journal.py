"""Journal of a run: a folder beside the results' file, in which results are stored, and from which an interrupted run is resumed.

`results.csv.oplet-run` has what the run is in `run.json` and the finished rows in `rows.csv`. What is in there outlives the process
however it ends. When all rows are there, they take their place as `results.csv`, and the folder is removed. What it holds becomes the
results, so the folder is the user's own: one of somebody else, who knows its name beforehand, is refused.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from oplet.errors import StateError
from oplet.texts import counted
from oplet.toolkit import TEXT_BYTES, OwnFolder
from oplet_tools.running.many.identity import check_same
from oplet_tools.running.many.keeping.appending import AppendedFile, move_into_place, remove_folder
from oplet_tools.running.many.keeping.results import Kept, Records, ResultFormat

__all__ = ["Journal", "Sink", "Stream"]

_SUFFIX = ".oplet-run"
_RUN = "run.json"


class Sink(Protocol):
    """Protocol: a destination to which the results of rows are appended.

    Attributes:
        kept: the results that an interrupted run has already stored.
    """

    kept: Kept

    def append(self, encoded: bytes) -> None:
        """Add the result of a row, as `ResultFormat.encode` made it."""

    def finish(self) -> None:
        """Record that all rows are complete."""

    def close(self) -> None:
        """Close the destination, whether all rows are complete or not."""


class Stream:
    """Writes results to a stream, such as standard output; such a run cannot be resumed."""

    kept = Kept(0, 0, 0)

    def __init__(self, stream: BinaryIO, format: ResultFormat) -> None:
        self._stream = stream
        self._stream.write(format.header())

    def append(self, encoded: bytes) -> None:
        self._stream.write(encoded)
        self._stream.flush()

    def finish(self) -> None:
        self._stream.flush()

    def close(self) -> None:
        """Do nothing: whoever opened the stream closes it."""


class Journal:
    """The folder in which a run on many rows stores its results, so that it can be resumed; in the end they become the results' file.

    Args:
        output: the results' file.
        format: how results are encoded.
        identity: returns model, rows and options of this run, to be stored or compared with an interrupted run's.
        resume: True to continue an interrupted run if there is one, False to begin anew, None to raise an error if there is one.
        join: makes a .parquet or .npz of the stored records; None if the stored file itself becomes the results' file.

    Raises:
        StateError: there is an interrupted run and `resume` is None or the runs differ, or the folder may have been written by another
            user.
        BlockingIOError: another process uses the folder.
        OSError: the folder cannot be written.
    """

    def __init__(
        self,
        output: Path,
        format: ResultFormat,
        identity: Callable[[], Mapping[str, Any]],
        resume: bool | None,
        join: Callable[[BinaryIO], None] | None,
    ) -> None:
        self._output = output
        self._folder = output.with_name(output.name + _SUFFIX)
        self._rows = self._folder / format.file
        self._join = join
        self._format = format
        self.kept = Kept(0, 0, 0)
        self._store = OwnFolder(self._folder)
        self._make()
        try:
            self._file = AppendedFile(self._store, format.file)
        except OSError:
            with suppress(OSError):
                os.rmdir(self._folder)
            raise
        try:
            there = os.path.lexists(self._folder / _RUN)
            if there and resume is None:
                rows = self._read(format).rows
                raise StateError(
                    f"'{self._folder}' has {counted(rows, 'row')} of a run that was interrupted; give --resume to continue it, or --no-resume to "
                    "begin anew."
                )
            now = identity()
            if there and resume:
                check_same(self._run(), now, str(output))
                self.kept = self._read(format)
                self._file.cut(self.kept.nbytes)
            else:
                self._file.cut(0)
                with self._store.replace(_RUN) as file:
                    file.write(json.dumps(now, indent=1).encode() + b"\n")
            if not self.kept.nbytes:
                self._file.append(format.header())
        except BaseException:
            self._file.close()
            if not os.path.lexists(self._folder / _RUN):
                remove_folder(self._folder, [format.file])
            raise

    def append(self, encoded: bytes) -> None:
        """Store the encoded result of a row."""
        self._file.append(encoded)

    def first_shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the outputs' shapes in the first stored row that did not fail; empty if there is none, or if results are stored
        as text.
        """
        if isinstance(self._format, Records):
            with self._store.open(self._rows.name) as file:
                for record in self._format.records(file):
                    if not record.error:
                        return {name: array.shape for name, array in record.outputs.items()}
        return {}

    def finish(self) -> None:
        """Write the final results' file, and remove the folder.

        Raises:
            OSError: the results' file cannot be written.
        """
        self._file.ensure_in_place()
        self._file.close()
        if self._join is None:
            move_into_place(self._rows, self._output)
        else:
            with self._store.open(self._rows.name) as file:
                self._join(file)
        remove_folder(self._folder, [_RUN, self._rows.name])

    def close(self) -> None:
        """Close the file; what was stored stays in the folder, for a resumed run."""
        self._file.close()

    def _make(self) -> None:
        try:
            self._store.make()
        except PermissionError as error:
            if error.errno != errno.EPERM or not os.path.lexists(self._folder):
                raise
            raise StateError(
                f"'{self._folder}' is a link, no folder, or one that somebody else may write into, so the results cannot be kept there; "
                "remove it, or give --output a file in a folder of your own."
            ) from error

    def _run(self) -> dict[str, Any]:
        try:
            with self._store.open(_RUN) as file:
                run = json.loads(file.read(TEXT_BYTES))
        except (ValueError, RecursionError):
            run = None
        if not isinstance(run, dict):
            raise StateError(
                f"'{self._folder / _RUN}' is damaged, so the run cannot be continued; give --no-resume to begin anew."
            )
        return run

    def _read(self, format: ResultFormat) -> Kept:
        try:
            with self._store.open(self._rows.name) as file:
                return format.read(file)
        except (ValueError, RecursionError, KeyError, TypeError) as error:
            raise StateError(
                f"'{self._rows}' was changed, so the run cannot be continued ({error}); give --no-resume to begin anew."
            ) from error
