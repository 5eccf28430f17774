"""Names in, and writing of, what `oplet select` makes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from oplet.model.files.atomic_write import check_target, write_atomically
from oplet.tools.selection.needs import SelectionError

__all__ = ["check_made", "file_labels", "write_made"]

#: What every file that is made here has in it, so that no other is written over.
_MARK = b"oplet select"


def file_labels(paths: Iterable[str]) -> list[str]:
    """The names of files, without folders, sorted; fit for a comment."""
    return sorted({re.sub(r"[^\w .,+()@<>-]", "?", os.path.basename(path), flags=re.ASCII) for path in paths})


def check_made(path: str | os.PathLike[str]) -> None:
    """Say now that `write_made` could not write a file.

    Raises:
        SelectionError: a file is there that `oplet select` did not make.
        OSError: there is no such folder, or it cannot be written in.
    """
    target = Path(path)
    if target.exists() and (not target.is_file() or _MARK not in target.read_bytes()):
        raise SelectionError(f"'{path}' is there already and was not made by `oplet select`; name another file, or remove it.")
    check_target(target)


def write_made(path: str | os.PathLike[str], text: str) -> None:
    """Write a file, whole or not at all, over one of the same making only.

    Raises:
        SelectionError: a file is there that `oplet select` did not make.
    """
    check_made(path)
    write_atomically(path, text)
