"""Rows of JSON lines, from a file or from standard input: an object with a value for each input, or the only input's value, in each line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from oplet.toolkit import TEXT_BYTES, open_file
from oplet_tools.running.inputs import parse_json
from oplet_tools.running.many.identity import file_identity
from oplet_tools.running.many.reading.rows import JsonPart, Row

__all__ = ["JsonLines"]

#: The longest name of a row that is kept, in characters.
_LONGEST_NAME = 1000
_CHUNK = 1 << 20


class JsonLines:
    """Rows from the JSON lines of a file or stream; empty lines are skipped. An entry "name" that is no input is the row's name.

    Args:
        source: the file, or a stream that is read once.
        names: the inputs that each line has values for.

    Raises:
        OSError: the file cannot be read.
    """

    def __init__(self, source: Path | BinaryIO, names: tuple[str, ...]) -> None:
        self._source = source
        self.inputs = names
        self.count: int | None = None
        if isinstance(source, Path):
            with open_file(source) as file:
                self.count = sum(1 for _ in _lines(file))

    def rows(self, start: int) -> Iterator[Row]:
        called = self._source.name if isinstance(self._source, Path) else "standard input"
        opened: AbstractContextManager[BinaryIO] = (
            open_file(self._source) if isinstance(self._source, Path) else nullcontext(self._source)
        )
        with opened as file:
            for place, (number, line) in enumerate(_lines(file)):
                if place < start:
                    continue
                source = f"{called}:{number}"
                if line is None:
                    yield Row(source, error=f"'{source}' is a line of more than the {TEXT_BYTES} bytes that are read.")
                else:
                    yield Row(self._row_name(line, source), (JsonPart(line, source, self.inputs),))

    def identity(self) -> dict[str, Any]:
        return file_identity(self._source) if isinstance(self._source, Path) else {"what": "standard input"}

    def _row_name(self, line: bytes, source: str) -> str:
        if b'"name"' not in line or "name" in self.inputs:
            return source
        try:
            content = parse_json(line, source)
        except Exception:  # the worker tells
            return source
        name = content.get("name") if isinstance(content, dict) else None
        return name[:_LONGEST_NAME] if isinstance(name, str) and name else source


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yield the numbers and texts of lines that are not empty; None in place of a text that is too long."""
    number = 0
    while line := file.readline(TEXT_BYTES + 1):
        number += 1
        if len(line) > TEXT_BYTES and not line.endswith(b"\n"):
            while (rest := file.readline(_CHUNK)) and not rest.endswith(b"\n"):
                pass
            yield number, None
        elif not line.isspace():
            yield number, line
