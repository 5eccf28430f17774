"""The map from operators to the releases that run them."""

from __future__ import annotations

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
