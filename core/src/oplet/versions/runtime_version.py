"""The first runtime release that has an operator version, and the lowest release that runs a model.

The table `runtime_versions.csv` holds LiteRT's map (tflite/converter/tools/versioning/runtime_version.cc).
"""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterable, Mapping
from importlib import resources

from oplet.errors import PluginError

__all__ = ["RuntimeVersions", "first_runtime", "minimum_runtime", "version_key"]


@functools.cache
def _table() -> dict[tuple[str, int], str]:
    text = resources.files(__package__).joinpath("runtime_versions.csv").read_text("utf-8")
    return {(row["name"], int(row["op_version"])): row["min_runtime_version"] for row in csv.DictReader(text.splitlines())}


def first_runtime(op: str, version: int, extra: Mapping[tuple[str, int], str] | None = None) -> str | None:
    """Return the first release of TensorFlow Lite or LiteRT that runs this version of an operator; None if it is unknown.

    Args:
        op: the operator's name, "CONV_2D".
        version: the operator's version.
        extra: additional rows for operators that LiteRT's table does not have; they take precedence over its own.
    """
    key = op, version
    return (extra or {}).get(key) or _table().get(key)


def version_key(release: str) -> tuple[int, ...]:
    """Return the numbers of a release, as a sort key: 1.14.0 is later than 1.9.0."""
    return tuple(int(part) if part.isdigit() else 0 for part in release.split("."))


def minimum_runtime(ops: Iterable[tuple[str, int]], extra: Mapping[tuple[str, int], str] | None = None) -> str | None:
    """Return the first release that runs all of these (operator, version) pairs; None if no pair is in the table.

    Pairs that are not in the table, such as custom ops, are ignored, as in LiteRT's converter.
    """
    known = [release for op, version in ops if (release := first_runtime(op, version, extra)) is not None]
    return max(known, key=version_key, default=None)


class RuntimeVersions:
    """First releases of plugins' own operators, in addition to LiteRT's table.

    Attributes:
        rows: the first release by operator and version, as `first_runtime` takes them for `extra`.

    Examples:
        >>> table = RuntimeVersions()
        >>> table.add("Atan", 1, "2.3.0")
        >>> first_runtime("Atan", 1, table.rows)
        '2.3.0'
    """

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], str] = {}

    def add(self, op: str, version: int, release: str) -> None:
        """Add the first release of the runtime that runs a version of an operator.

        Args:
            op: the operator's name.
            version: its version, from 1.
            release: the release in numbers and dots, "2.3.0".

        Raises:
            PluginError: LiteRT's table or an earlier call has another release, or an argument is malformed.
        """
        if not isinstance(op, str) or not op or not isinstance(version, int) or version < 1:
            raise PluginError(f"a row for {op!r} in version {version!r}; an operator's name and a version from 1 are wanted")
        if not isinstance(release, str) or not all(part.isdigit() for part in release.split(".")):
            raise PluginError(f"{op} version {version} is said to run since {release!r}, which is not a release such as '2.3.0'")
        known = first_runtime(op, version, self.rows)
        if known not in (None, release):
            raise PluginError(f"{op} version {version} is said to run since {release}; it is known to run since {known}")
        self.rows[op, version] = release
