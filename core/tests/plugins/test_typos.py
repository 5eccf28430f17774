"""Switches, preferences and variables that name nothing, or have no effect, are told; what many plugins have in common is said once."""

from __future__ import annotations

from typing import Any

import pytest

from oplet import DelegateRegistry, PluginManager
from oplet.errors import DelegateError, PluginError
from oplet.model.files.cache_folder import FOLDER_VARIABLE
from oplet.plugins.selection import VARIABLES


def test_many_plugins_that_are_off_for_one_reason_are_one_sentence(site: Any) -> None:
    for number in range(7):
        site.add_op(f"oplet-p{number}", name=f"p{number}")
    text = site.manager(load=[]).advice("Frobnicate")
    assert text.endswith("The plugins p0, p1, p2, p3, p4, p5, p6 may bring it, but are not among those that load= allows.")
    assert text.count("allows") == 1


@pytest.mark.parametrize("name", ["OPLET_DISABLE_PLUGIN", "OPLET_PREFERS", "OPLET_PLUGIN", "OPLET_CACHEDIR"])
def test_a_misspelt_variable_is_told(
    site: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    monkeypatch.setenv(name, "x")
    monkeypatch.setenv("OPLET_OF_SOMEBODY_ELSE", "x")
    site.manager().plugins(load=False)
    [message] = caplog.messages
    assert message.startswith(f"{name} in the environment is no variable of oplet's; it reads OPLET_")
    assert FOLDER_VARIABLE in VARIABLES


def test_a_preference_without_effect_is_told(
    site: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    site.add_op("oplet-x", op="Atan")
    site.add("oplet-none", source="")
    monkeypatch.setenv("OPLET_PREFER", "ATAN=oplet-x,Tan=oplet-x,Atan=oplet-x,oplet-none,Atan=oplet-none")
    site.manager().resolver()
    assert caplog.messages == [
        "OPLET_PREFER names 'oplet-none', which brings no operators.",
        "OPLET_PREFER names 'oplet-x' for ATAN, which it does not serve (did you mean Atan?).",
        "OPLET_PREFER names 'oplet-x' for Tan, which it does not serve.",
        "OPLET_PREFER names 'oplet-none' for Atan, which it does not serve.",
    ]


@pytest.mark.parametrize("wrong", ["CONV_2D=", "=oplet-x", "a,="])
def test_half_a_preference_is_refused(monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    monkeypatch.setenv("OPLET_PREFER", wrong)
    with pytest.raises(PluginError, match=r"^OPLET_PREFER has '.*=.*', which is no preference; write PACKAGE, or OP=PACKAGE"):
        PluginManager()


def test_another_word_before_a_colon_is_part_of_the_name(site: Any, caplog: pytest.LogCaptureFixture) -> None:
    site.add_op("oplet-x", name="x")
    site.manager(load=["yes:x"]).plugins(load=False)
    assert caplog.messages == ["load= names 'yes:x', and no plugin is called so."]


def test_nothing_names_no_delegate() -> None:
    registry = DelegateRegistry()
    registry.add("mine", lambda options: None)  # type: ignore[arg-type,return-value]
    with pytest.raises(DelegateError, match="no installed package brings"):
        registry.find(":mine")
    with pytest.raises(DelegateError, match="as in mine:key=VALUE"):
        registry.find("mine:")
