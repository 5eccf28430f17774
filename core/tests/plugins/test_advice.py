"""A model that needs an op nobody serves is told what to install, upgrade or switch on."""

from __future__ import annotations

from typing import Any

import pytest

from oplet.plugins.known_packages import known_distribution


@pytest.mark.parametrize(
    ("op", "package"),
    [
        ("Atan", "oplet-atan-op"),
        ("CONV_2D", "oplet-builtin-ops"),
        (3, "oplet-builtin-ops"),
        ("MaxUnpooling2D", "oplet-mediapipe-ops"),
        ("SignalRfft", "oplet-signal-ops"),
    ],
)
def test_a_known_package_is_named(site: Any, op: Any, package: str) -> None:
    assert site.manager().advice(op).endswith(f": pip install {package}.")


def test_an_op_that_no_known_package_brings(site: Any) -> None:
    for name in ("Frobnicate", "SignalBoost", "Signal", "AtanOp"):
        assert known_distribution(name) == "", "a name that was merely guessed may be anybody's"
    assert site.manager().advice("Frobnicate") == (
        "No package that brings Frobnicate is known; write one ('oplet new-op NAME' begins it), register the op with "
        "MutableOpResolver.add_custom, or name a compiled library that has it (--custom-op-library, with oplet-native-ops)."
    )


def test_an_op_whose_name_is_written_in_other_letters_is_told_with_its_package(site: Any) -> None:
    site.add_op("oplet-x", op="sinh")
    assert site.manager().advice("Sinh").startswith("oplet-x 1.0 brings 'sinh'. No package that brings Sinh is known;")
    assert "brings" not in site.manager().advice("Sinh2").partition("No package")[0]


def test_an_op_served_in_other_versions(site: Any) -> None:
    site.add_op("oplet-x", versions="1, 3")
    assert site.manager().advice("Atan") == (
        "oplet-x 1.0 serves Atan in versions 1 to 3; a newer release may serve more: pip install --upgrade oplet-x."
    )
    assert [p.distribution for p in site.manager().providers("Atan")] == ["oplet-x"]
    assert site.manager().providers("Sign") == []


def test_an_installed_package_that_lacks_the_op(site: Any) -> None:
    site.add_op("oplet-builtin-ops", op="CONV_2D")
    assert site.manager().advice("TOPK_V2") == (
        "oplet-builtin-ops 1.0 is installed but does not bring TOPK_V2; a newer one may: pip install --upgrade oplet-builtin-ops."
    )


def test_the_package_is_installed_but_broken(site: Any) -> None:
    site.add("oplet-atan-op", source="1 / 0")
    text = site.manager().advice("Atan")
    assert "oplet-atan-op 1.0, which brings Atan, is installed but broken: ZeroDivisionError: division by zero" in text
    assert "pip install --upgrade oplet-atan-op" in text


def test_the_package_is_installed_but_blocked(site: Any) -> None:
    site.add_op("oplet-atan-op")
    assert site.manager(block="oplet-atan-op").advice("Atan") == (
        "oplet-atan-op 1.0, which brings Atan, is installed but switched off by block=oplet-atan-op."
    )


def test_others_that_did_not_load_are_named_as_a_possible_reason(site: Any) -> None:
    site.add("oplet-bad", source="1 / 0", name="bad")
    site.add_op("oplet-off", name="off")
    text = site.manager(block=["off"]).advice("Frobnicate")
    assert "Plugin 'bad' of oplet-bad 1.0 may have brought it, but is broken: ZeroDivisionError: division by zero." in text
    assert "Plugin 'off' of oplet-off 1.0 may bring it, but is switched off by block=off." in text
