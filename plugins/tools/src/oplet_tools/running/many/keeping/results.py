"""Encodings in which the result of a row is stored while a run goes on: a line of JSON or CSV, or a binary record.

Each encodes one result as bytes, and counts how many complete results a file begins with. A file of lines is the final file
already; `joining` makes .parquet and .npz files from binary records.
"""

from __future__ import annotations

import csv
import io
import json
import re
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from oplet.texts import plain
from oplet_tools.metadata.scores import ScoreRules
from oplet_tools.running.outputs import Score, as_lists

__all__ = ["CsvLines", "JsonRows", "Kept", "OutputForm", "Record", "Records", "ResultFormat", "RowResult"]

Array = NDArray[Any]

#: Outputs of more values, or of shapes that differ, are one cell of JSON.
_MOST_COLUMNS = 1024
#: Where spreadsheets may take text for a formula: at its beginning, and after what some take for the end of a cell; spaces and quotes that
#: they leave out may come first. All forms of = + - @ that Unicode has for them count: East Asian keyboards and spreadsheets take the wide
#: ones for the same.
_FORMULA = re.compile(
    r"""(^|[;\t])(?=[ "]*[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b\u207c\u207a\u207b\u208c\u208a\u208b\u2212])"""
)
_RECORD = struct.Struct("<4sII")
_MAGIC = b"ROW\n"


@dataclass(frozen=True)
class OutputForm:
    """Form in which an output appears in results: all its values, or its highest scores."""

    name: str
    shape: tuple[int, ...]  #: The shape of a row; -1 where rows may differ.
    top: int = 0  #: The number of highest scores that stand in place of its values, 0 for the values.
    labels: tuple[str, ...] = ()  #: Labels of the scores.
    rules: ScoreRules | None = None  #: The calibration of the scores, and the threshold below which scores are left out.


class RowResult(NamedTuple):
    """The result of a row (one set of inputs of many)."""

    number: int
    name: str
    outputs: Mapping[str, Array]  #: The values of each output, by name; empty with an `error`.
    top: Mapping[str, Sequence[Score]]  #: The highest scores, by output, of outputs that are written so.
    error: str = ""  #: Why the row failed; "" if it did not.
    #: The objects that an object-detection model found (`Objects.as_dict`), for JSON lines; None for other models.
    objects: Mapping[str, Any] | None = None


class Kept(NamedTuple):
    """The complete results at the beginning of a file of stored results."""

    rows: int  #: The number of results.
    failed: int  #: How many of them are errors.
    nbytes: int  #: The bytes that they take in the file, header included.


class ResultFormat(Protocol):
    """Protocol of an encoding in which results of rows are stored in a file; its objects are picklable."""

    @property
    def file(self) -> str:
        """The name, without folder, of the file in which results are stored during the run."""

    def header(self) -> bytes:
        """Return the bytes before the first result."""

    def encode(self, result: RowResult) -> bytes:
        """Encode the result of a row as the bytes to append to the file."""

    def read(self, file: BinaryIO) -> Kept:
        """Count the complete results at the beginning of a file; an incomplete one may follow.

        Raises:
            ValueError: the incomplete result is not the last: more data follow.
        """


@dataclass(frozen=True)
class JsonRows:
    """Format with a line of JSON for each row, an object with the entries "row" (number), "name", "outputs" and "top" (by
    output), "objects" (of object-detection models), or "error".
    """

    outputs: tuple[OutputForm, ...]
    file: str = "rows.jsonl"

    def header(self) -> bytes:
        return b""

    def encode(self, result: RowResult) -> bytes:
        told: dict[str, Any] = {"row": result.number, "name": result.name}
        if result.error:
            told["error"] = result.error
        else:
            told["outputs"] = {form.name: as_lists(result.outputs[form.name]) for form in self.outputs if not form.top}
            if any(form.top for form in self.outputs):
                told["top"] = {name: [asdict(score) for score in scores] for name, scores in result.top.items()}
            if result.objects is not None:
                told["objects"] = result.objects
        return json.dumps(told).encode() + b"\n"

    def read(self, file: BinaryIO) -> Kept:
        rows = failed = size = 0
        for line in file:
            if not line.startswith(b'{"row": %d, "name": ' % rows) or not line.endswith(b"}\n"):
                _ensure_torn(line, file, rows)
                break
            failed += "error" in json.loads(line)
            rows += 1
            size += len(line)
        return Kept(rows, failed, size)


@dataclass(frozen=True)
class CsvLines:
    """Format with a CSV line for each row: its number and name, a column for each value or highest score, and the error.

    Line ends and control characters in texts are escaped; an apostrophe is put before what a spreadsheet would take for a formula.
    """

    outputs: tuple[OutputForm, ...]
    file: str = "rows.csv"

    def header(self) -> bytes:
        return self._line(["row", "name", *(column for form in self.outputs for column in _columns(form)), "error"])

    def encode(self, result: RowResult) -> bytes:
        cells: list[Any] = [result.number, _cell(result.name)]
        for form in self.outputs:
            if result.error:
                cells += [""] * len(_columns(form))
            elif form.top:
                found: list[Any] = []
                for score in result.top[form.name]:
                    found += [score.index, *([_cell(score.label)] if form.labels else []), score.value]
                cells += [*found, *[""] * (len(_columns(form)) - len(found))]  # scores that are too low were left out
            else:
                array = result.outputs[form.name]
                if _is_spread(form):
                    cells += [_cell(value) if isinstance(value, str) else value for value in as_lists(array.reshape(-1))]
                else:
                    cells.append(_json_cell(array))
        return self._line([*cells, _cell(result.error)])

    def read(self, file: BinaryIO) -> Kept:
        header = self.header()
        if (line := file.readline()) != header:
            _ensure_torn(line, file, 0)
            return Kept(0, 0, 0)
        width = len(next(csv.reader([header.decode()])))
        rows, failed, size = 0, 0, len(header)
        for line in file:
            cells = next(csv.reader([line.decode("utf-8", "replace").replace("\0", "")]), [])
            if not line.startswith(b"%d," % rows) or not line.endswith(b"\n") or len(cells) != width:
                _ensure_torn(line, file, rows)
                break
            failed += bool(cells[-1])
            rows += 1
            size += len(line)
        return Kept(rows, failed, size)

    def _line(self, cells: Sequence[object]) -> bytes:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(cells)
        return text.getvalue().encode()


def _columns(form: OutputForm) -> list[str]:
    name = _cell(form.name)
    if form.top:
        kinds = ["index", *(["label"] if form.labels else []), "score"]
        return [f"{name}_top{place}_{kind}" for place in range(1, form.top + 1) for kind in kinds]
    if not _is_spread(form):
        return [name]
    return [name + "".join(f"[{i}]" for i in index) for index in np.ndindex(form.shape)]


def _is_spread(form: OutputForm) -> bool:
    """Return whether an output has a CSV column for each of its values; otherwise one column has all values as JSON."""
    return -1 not in form.shape and int(np.prod(form.shape, dtype=np.float64)) <= _MOST_COLUMNS and len(form.shape) < 32


def _cell(text: str) -> str:
    return _FORMULA.sub(r"\1'", plain(text))


def _json_cell(array: Array) -> str:
    """Return values as JSON without ";", which stands only in texts, where an escape means the same."""
    return json.dumps(as_lists(array)).replace(";", "\\u003b")


class Record(NamedTuple):
    """The result of a row, read back from a file of `Records`."""

    number: int  #: The row's number.
    name: str
    error: str  #: Why the row failed; "" if it did not.
    outputs: dict[str, Array]  #: The values of each output.
    top: dict[str, list[dict[str, Any]]]  #: The highest scores, as dictionaries.


@dataclass(frozen=True)
class Records:
    """Format with a binary record for each row, oplet's own: length, CRC-32, then a line of JSON and the raw bytes of the
    outputs' arrays.
    """

    outputs: tuple[OutputForm, ...]
    keep_top_values: bool
    file: str = "rows.bin"

    def header(self) -> bytes:
        return b""

    def encode(self, result: RowResult) -> bytes:
        told: dict[str, Any] = {"row": result.number, "name": result.name}
        blocks: list[bytes] = []
        if result.error:
            told["error"] = result.error
        else:
            told["outputs"] = {}
            for form in self.outputs:
                if form.top and not self.keep_top_values:
                    continue
                array = result.outputs[form.name]
                shape = list(array.shape)
                if array.dtype.hasobject:
                    told["outputs"][form.name] = ["text", shape, as_lists(array.reshape(-1))]
                    continue
                array = array.astype(np.float32) if array.dtype.kind == "V" else array
                told["outputs"][form.name] = [array.dtype.str, shape, array.nbytes]
                blocks.append(array.tobytes())
            told["top"] = {name: [asdict(score) for score in scores] for name, scores in result.top.items()}
        content = json.dumps(told).encode() + b"\n" + b"".join(blocks)
        return _RECORD.pack(_MAGIC, len(content), zlib.crc32(content)) + content

    def read(self, file: BinaryIO) -> Kept:
        rows = failed = size = 0
        for content in _contents(file):
            head = json.loads(content[: content.index(b"\n")])
            if head["row"] != rows:
                raise ValueError(f"row {rows} is missing")
            failed += "error" in head
            rows += 1
            size += _RECORD.size + len(content)
        return Kept(rows, failed, size)

    def records(self, file: BinaryIO) -> Iterator[Record]:
        """Yield the results of a file of such records, in order."""
        for content in _contents(file):
            end = content.index(b"\n")
            head, position = json.loads(content[:end]), end + 1
            outputs: dict[str, Array] = {}
            for name, (dtype, shape, what) in head.get("outputs", {}).items():
                if dtype == "text":
                    texts = np.empty(len(what), object)
                    texts[:] = [text.encode("utf-8", "surrogateescape") for text in what]
                    outputs[name] = texts.reshape(shape)
                else:
                    outputs[name] = np.frombuffer(content[position : position + what], np.dtype(dtype)).reshape(shape)
                    position += what
            yield Record(head["row"], head["name"], head.get("error", ""), outputs, head.get("top", {}))


def _contents(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of each complete record of a file of `Records`; end at an incomplete record.

    Raises:
        ValueError: other data follow an incomplete record.
    """
    rows = 0
    while len(head := file.read(_RECORD.size)) == _RECORD.size:
        magic, length, checksum = _RECORD.unpack(head)
        if magic != _MAGIC:
            _ensure_torn(head, file, rows)
            return
        content = file.read(length)
        if len(content) != length:
            return
        if zlib.crc32(content) != checksum:
            _ensure_torn(b"\n", file, rows)
            return
        yield content
        rows += 1


def _ensure_torn(piece: bytes, file: BinaryIO, rows: int) -> None:
    """Check that record number `rows`, which begins with `piece`, is a cut-off write at the end: only zeros follow."""
    if not piece.endswith(b"\n") and piece.strip(b"\0") and not file.read(1):
        return
    while chunk := file.read(1 << 20):
        if chunk.strip(b"\0"):
            raise ValueError(f"row {rows} is damaged and others follow")
