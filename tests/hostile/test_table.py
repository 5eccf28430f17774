"""The table: every row of the list of bad inputs, and every class of advisories, has its tests."""

from __future__ import annotations

from . import test_calls, test_delegates, test_files, test_kernels, test_plugins, test_rules, test_size
from .harness import TABLE

#: Section 6.4 of the list has these rows, section 6.2 these classes.
ROWS, CLASSES = range(1, 61), range(1, 18)


def test_every_row_and_every_class_has_a_test() -> None:
    modules = (test_calls, test_delegates, test_files, test_kernels, test_plugins, test_rules, test_size)
    assert len(modules) == 7  # importing them fills the table
    assert [row for row in ROWS if row not in TABLE] == []
    assert [number for number in CLASSES if f"class {number}" not in TABLE] == []
    assert all(isinstance(row, str) or row in ROWS for row in TABLE)
