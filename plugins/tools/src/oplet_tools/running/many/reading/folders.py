"""Rows that are files of a folder, in the order of their names."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from oplet.errors import TensorError
from oplet.texts import counted
from oplet_tools.running.many.reading.rows import FilePart, Row
from oplet_tools.running.pictures import SUFFIXES as PICTURES

__all__ = ["Folder"]

_KINDS = (*PICTURES, ".npy", ".npz", ".json")


class Folder:
    """Rows from the files of a folder and its subfolders, one each: pictures, .npy, .npz and .json.

    Files of other kinds, hidden ones and linked folders are left out.

    Args:
        path: the folder.
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
