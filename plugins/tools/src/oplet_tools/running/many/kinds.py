"""Recognizes inputs with many rows by their file names alone."""

from __future__ import annotations

import os
from collections.abc import Sequence

__all__ = ["ARROW", "LINES", "STDIN", "has_many_rows", "is_many"]

#: Suffixes of files of JSON lines.
LINES = (".jsonl", ".ndjson")
#: Suffixes of Parquet and Arrow files.
ARROW = (".parquet", ".arrow", ".feather", ".ipc")
#: Standard input.
STDIN = "-"


def has_many_rows(given: Sequence[str]) -> bool:
    """Return whether an input surely has many rows, by the names: a folder, JSON lines, a Parquet or Arrow table, or standard input ("-").

    Args:
        given: "FILE" or "NAME=FILE" each. Whether an array (.npy, .npz) is one value or many rows depends on the model, so arrays don't
            count.
    """
    return any(is_many(candidate) for text in given for candidate in {text, text.partition("=")[2]} if candidate)


def is_many(source: str) -> bool:
    """Return whether a source surely has many rows: a folder, JSON lines, a Parquet or Arrow table, or standard input ("-")."""
    return source == STDIN or os.path.splitext(source)[1].lower() in (*LINES, *ARROW) or os.path.isdir(source)
