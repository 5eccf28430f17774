"""The map from operators to the releases that run them."""

from __future__ import annotations

from typing import Any

import pytest

from oplet.versions.runtime_version import first_runtime, minimum_runtime, version_key


def test_the_table_knows_when_each_version_came() -> None:
    assert first_runtime("CONV_2D", 1) == "1.5.0"
    assert first_runtime("AVERAGE_POOL_2D", 2) == "1.14.0"
    assert first_runtime("CONV_2D", 99) is None
    assert first_runtime("Atan", 1) is None


def test_releases_compare_by_number_not_by_letter() -> None:
    assert version_key("1.14.0") > version_key("1.9.0")
    assert version_key("2.10.0") > version_key("2.9.1")


def test_a_model_needs_the_latest_of_what_its_operators_need() -> None:
    assert minimum_runtime([("CONV_2D", 1), ("AVERAGE_POOL_2D", 2), ("Atan", 1)]) == "1.14.0"
    assert minimum_runtime([("Atan", 1)]) is None


def test_rows_of_others_go_before_the_table_s_own() -> None:
    assert first_runtime("Atan", 1, {("Atan", 1): "2.1.0"}) == "2.1.0"
    assert minimum_runtime([("CONV_2D", 1)], {("CONV_2D", 1): "9.0.0"}) == "9.0.0"


def test_a_plugin_brings_the_rows_of_its_own_ops(site: Any) -> None:
    site.add(
        "oplet-wave",
        name="wave",
        source="""
        from oplet import hookimpl
        @hookimpl
        def register_runtime_versions(table):
            table.add("Wave", 1, "2.3.0")
            table.add("Wave", 2, "2.11.0")
        """,
    )
    rows = site.manager().runtime_versions()
    assert rows == {("Wave", 1): "2.3.0", ("Wave", 2): "2.11.0"}
    assert minimum_runtime([("CONV_2D", 1), ("Wave", 2)], rows) == "2.11.0"


@pytest.mark.parametrize(
    ("row", "error"),
    [
        (("CONV_2D", 1, "1.4.0"), "it is known to run since 1.5.0"),
        (("Wave", 0, "2.3.0"), "a version from 1"),
        (("", 1, "2.3.0"), "a row for ''"),
        (("Wave", 1, "soon"), "since 'soon', which is not a release"),
    ],
)
def test_a_row_that_cannot_be_true_is_refused_and_the_plugin_named(site: Any, row: Any, error: str) -> None:
    source = f"from oplet import hookimpl\n@hookimpl\ndef register_runtime_versions(table):\n    table.add(*{row!r})\n"
    site.add("oplet-wave", name="wave", source=source)
    manager = site.manager()
    assert manager.runtime_versions() == {}
    [broken] = manager.broken()
    assert broken.name == "wave"
    assert error in broken.error
