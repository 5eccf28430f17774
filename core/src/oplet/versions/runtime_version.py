"""Which runtime could first run an operator, and the lowest that a model needs.

The table `runtime_versions.csv` holds LiteRT's map (tflite/converter/tools/versioning/runtime_version.cc).
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterable, Mapping
from importlib import resources

__all__ = ["first_runtime", "minimum_runtime", "version_key"]


@functools.cache
def _table() -> dict[tuple[str, int], str]:
    text = resources.files(__package__).joinpath("runtime_versions.csv").read_text("utf-8")
    return {(row["name"], int(row["op_version"])): row["min_runtime_version"] for row in csv.DictReader(text.splitlines())}


def first_runtime(op: str, version: int, extra: Mapping[tuple[str, int], str] | None = None) -> str | None:
    """The first release of TensorFlow Lite or LiteRT that runs this version of an operator; None if it is not known.

    Args:
        op: the operator's name, "CONV_2D".
        version: the operator's version.
        extra: rows of operators that the table does not have, which go before its own.
    """
    key = op, version
    return (extra or {}).get(key) or _table().get(key)


def version_key(release: str) -> tuple[int, ...]:
    """A release as numbers, for comparing: 1.14.0 comes after 1.9.0."""
    return tuple(int(part) if part.isdigit() else 0 for part in release.split("."))


def minimum_runtime(ops: Iterable[tuple[str, int]], extra: Mapping[tuple[str, int], str] | None = None) -> str | None:
    """The first release that runs all of these (operator, version) pairs; None if no pair is in the table.

    Pairs that are not in the table, such as custom ops, do not count, as with LiteRT's converter.
    """
    known = [release for op, version in ops if (release := first_runtime(op, version, extra)) is not None]
    return max(known, key=version_key, default=None)
