"""Rows that are files of a folder, in the order of their names.

Rows of JSON lines, from a file or from standard input: an object with a value for each input, or the only input's value, in each line.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from oplet.errors import TensorError
from oplet.texts import counted
from oplet.toolkit import TEXT_BYTES, open_file
from oplet_tools.running.inputs import parse_json
from oplet_tools.running.many.identity import file_identity
from oplet_tools.running.many.reading.rows import FilePart, JsonPart, Row
from oplet_tools.running.pictures import SUFFIXES as PICTURES

__all__ = ["Folder"]

_KINDS = (*PICTURES, ".npy", ".npz", ".json")


class Folder:
    """Rows from the files of a folder and its subfolders, one each: pictures, .npy, .npz and .json.

    Files of other kinds, hidden ones and linked folders are left out.

    Args:
        names: the inputs that need values. Files have the value of the first, unless some are .npz or .json, which name their inputs.
        say: called with a sentence on files that were left out.

    Raises:
        TensorError: there is no file that can be an input.
        OSError: a folder cannot be listed.
    """

    def __init__(self, path: Path, names: tuple[str, ...], say: Callable[[str], None]) -> None:
        self._path = path
        others: Counter[str] = Counter()
        found: list[str] = []
        for folder, folders, files in os.walk(path, onerror=_raise):
            folders[:] = [each for each in folders if not each.startswith(".")]
            inside = os.path.relpath(folder, path)
            for file in files:
                suffix = os.path.splitext(file)[1].lower()
                if file.startswith("."):
                    continue
                if suffix in _KINDS:
                    found.append((file if inside == os.curdir else os.path.join(inside, file)).replace(os.sep, "/"))
                else:
                    others[suffix] += 1
        self.names = sorted(found)
        single = not any(name.lower().endswith((".npz", ".json")) for name in found)
        self.inputs = names[:1] if single else names
        if others:
            told = ", ".join(f"{number} {suffix or 'without a suffix'}" for suffix, number in others.most_common(5))
            say(f"'{path}': {counted(sum(others.values()), 'file')} of kinds that are no inputs left out: {told}")
        if not found:
            raise TensorError(f"The folder '{path}' has no files that can be inputs; the kinds are {', '.join(_KINDS)}.")

    @property
    def count(self) -> int:
        return len(self.names)

    def rows(self, start: int) -> Iterator[Row]:
        for name in self.names[start:]:
            yield Row(name, (FilePart(self._path / name, self.inputs),))

    def identity(self) -> dict[str, Any]:
        digest = hashlib.sha256()
        for name in self.names:
            try:
                status = os.stat(self._path / name)
                told = f"{status.st_size} {status.st_mtime_ns}"
            except OSError:  # a link that leads nowhere; the row tells
                told = "none"
            digest.update(f"{name}\0{told}\n".encode("utf-8", "surrogateescape"))
        return {"what": f"the folder '{self._path}'", "rows": len(self.names), "digest": digest.hexdigest()}

    def check_pairs(self, other: Folder) -> None:
        """Check that another folder has files of the same names, apart from their suffixes.

        Raises:
            TensorError: the names differ.
        """
        mine, others = ([os.path.splitext(name)[0] for name in folder.names] for folder in (self, other))
        for a, b in zip(mine, others):
            if a != b:
                first, missing = (min(a, b), other if a < b else self)
                raise TensorError(
                    f"'{missing._path}' has no file '{first}' that belongs to the one in the other folder; name both alike."
                )


def _raise(error: OSError) -> None:
    raise error


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
