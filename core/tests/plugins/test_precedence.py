"""A plugin beats a builtin; between two plugins somebody has to choose."""

from __future__ import annotations

from typing import Any

import pytest

from oplet import MutableOpResolver
from oplet.errors import OpConflictError, PluginError
from oplet.plugins.selection import Preference

BUILTIN = 'OPLET_TIER = "builtin"'


def provider(resolver: Any, op: str, version: int = 1) -> str:
    return str(resolver.find_op(op, version).provenance)


@pytest.fixture
def rivals(site: Any) -> Any:
    """Two plugins and a builtin that all serve Atan version 1."""
    site.add_op("oplet-builtin", head=BUILTIN, versions="1, 3")
    site.add_op("oplet-fast", "2.0", name="fast", versions="1, 2")
    site.add_op("oplet-slow", "3.0", name="slow")
    return site


def test_a_plugin_overrides_a_builtin_in_the_versions_that_it_serves(site: Any) -> None:
    site.add_op("oplet-zz", head=BUILTIN, versions="1, 3")
    site.add_op("oplet-a", versions="2, 2")
    resolver = site.manager().resolver()
    assert [provider(resolver, "Atan", v) for v in (1, 2, 3)] == ["oplet-zz 1.0", "oplet-a 1.0", "oplet-zz 1.0"]
    assert resolver.find_op("Atan", 4) is None
    assert resolver.versions("Atan") == [1, 2, 3]
    assert resolver.why("Atan", 1) == "only provider"
    assert resolver.why("Atan", 2) == "overrides oplet-zz 1.0"
    assert resolver.why("Atan", 4) == "oplet-a 1.0 serves up to version 2, oplet-zz 1.0 serves up to version 3"
    assert resolver.why("Sign", 1) == "nobody registered it"


def test_a_selection_goes_between_plugins_and_builtins(site: Any) -> None:
    site.add_op("oplet-builtin", head=BUILTIN, versions="1, 3")
    site.add_op("my-app-ops", head='OPLET_TIER = "selection"', versions="1, 2")
    site.add_op("oplet-fast", versions="1, 1")
    resolver = site.manager().resolver()
    assert [provider(resolver, "Atan", v) for v in (1, 2, 3)] == ["oplet-fast 1.0", "my-app-ops 1.0", "oplet-builtin 1.0"]
    assert resolver.why("Atan", 2) == "overrides oplet-builtin 1.0"


def test_a_version_that_a_selection_lacks_is_no_matter_of_upgrading_it(site: Any) -> None:
    site.add_op("my-app-ops", head='OPLET_TIER = "selection"', versions="1, 2")
    assert site.manager().advice("Atan") == (
        "Install the package that brings Atan (of the oplet project, on PyPI or plugins/atan_op in its repository): "
        "pip install oplet-atan-op."
    )


def test_a_manager_without_some_plugins_keeps_what_the_other_one_blocks(site: Any) -> None:
    for name in ("oplet-a", "oplet-b", "oplet-c"):
        site.add_op(name)
    left = site.manager(block=["oplet-a"]).without(["oplet-b"])
    assert [info.distribution for info in left.plugins() if info.state == "loaded"] == ["oplet-c"]


def test_two_plugins_for_one_op_are_an_error_that_names_both_and_how_to_choose(rivals: Any) -> None:
    resolver = rivals.manager().resolver()
    with pytest.raises(OpConflictError) as caught:
        resolver.find_op("Atan", 1)
    assert str(caught.value) == (
        "Atan version 1 is claimed by oplet-fast 2.0 and oplet-slow 3.0; choose with prefer=['oplet-fast'], with "
        "OPLET_PREFER=oplet-fast in the environment, or switch one off with -p no:slow."
    )
    assert isinstance(caught.value, ValueError)
    assert resolver.why("Atan", 1) == "claimed by oplet-fast 2.0 and oplet-slow 3.0: choose with prefer="


def test_a_conflict_concerns_only_the_versions_that_both_claim(rivals: Any) -> None:
    resolver = rivals.manager().resolver()
    assert provider(resolver, "Atan", 2) == "oplet-fast 2.0"
    assert provider(resolver, "Atan", 3) == "oplet-builtin 1.0"


@pytest.mark.parametrize(
    ("prefer", "chosen"),
    [
        ("oplet-slow", "oplet-slow 3.0"),
        (["slow"], "oplet-slow 3.0"),
        (["not-installed", "OPLET_FAST", "slow"], "oplet-fast 2.0"),
        ({"Atan": "slow"}, "oplet-slow 3.0"),
        ("fast,Atan=slow", "oplet-slow 3.0"),
        ("fast,Sign=slow", "oplet-fast 2.0"),
        (["oplet-builtin"], "oplet-builtin 1.0"),
    ],
)
def test_prefer_chooses(rivals: Any, monkeypatch: pytest.MonkeyPatch, prefer: Any, chosen: str) -> None:
    resolver = rivals.manager().resolver(prefer=prefer)
    assert provider(resolver, "Atan") == chosen
    assert resolver.why("Atan", 1).startswith("preferred over oplet-")
    if isinstance(prefer, str):
        monkeypatch.setenv("OPLET_PREFER", prefer)
        assert provider(rivals.manager().resolver(), "Atan") == chosen


def test_the_argument_goes_before_the_environment(rivals: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPLET_PREFER", "slow")
    assert provider(rivals.manager().resolver(prefer="fast"), "Atan") == "oplet-fast 2.0"


def test_a_preference_for_one_that_does_not_serve_the_version_changes_nothing(rivals: Any) -> None:
    assert provider(rivals.manager().resolver(prefer="slow"), "Atan", 2) == "oplet-fast 2.0"


def test_switching_one_off_settles_a_conflict(rivals: Any) -> None:
    assert provider(rivals.manager(block=["slow"]).resolver(), "Atan") == "oplet-fast 2.0"


def test_prefer_of_another_kind_is_refused(rivals: Any) -> None:
    with pytest.raises(PluginError, match="3 is a int"):
        rivals.manager().resolver(prefer=[3])


def test_two_plugins_of_one_package_are_told_apart_by_plugin_name(site: Any) -> None:
    from oplet_testing.distributions import fake_distribution

    source = """
        from oplet import Registration, hookimpl
        @hookimpl
        def register_ops(resolver):
            resolver.add_custom("Atan", Registration(invoke=print))
        """
    fake_distribution(site.path, "oplet-two", "1.0", {"one": "two_a", "two": "two_b"}, {"two_a": source, "two_b": source})
    with pytest.raises(OpConflictError, match=r"plugin 'one' of oplet-two 1.0 and plugin 'two' of .*prefer=\['one'\]"):
        site.manager().resolver().find_op("Atan", 1)
    assert site.manager().resolver(prefer="two").find_op("Atan", 1).provenance.plugin == "two"


def test_the_result_is_remembered_and_the_resolver_shared(rivals: Any) -> None:
    manager = rivals.manager()
    assert manager.resolver(prefer=["fast"]) is manager.resolver(prefer="fast")
    assert manager.resolver(prefer="fast").find_op("Atan", 1) is manager.resolver(prefer="fast").find_op("Atan", 1)


def test_claims_are_the_winning_ranges(rivals: Any) -> None:
    resolver = rivals.manager().resolver(prefer="fast")
    assert [(c.min_version, c.max_version, str(c.provenance)) for c in resolver.entries("Atan")] == [
        (1, 2, "oplet-fast 2.0"),
        (3, 3, "oplet-builtin 1.0"),
    ]
    assert list(resolver.entries()) == list(resolver.entries("Atan"))


def test_a_conflict_survives_being_copied_into_another_resolver(rivals: Any) -> None:
    copy = MutableOpResolver()
    copy.add_all(rivals.manager().resolver())
    assert provider(copy, "Atan", 2) == "oplet-fast 2.0"
    with pytest.raises(OpConflictError, match=r"oplet-fast 2\.0 and oplet-slow 3\.0"):
        copy.find_op("Atan", 1)


def test_a_builtin_and_a_custom_op_of_the_same_name_are_two_ops(site: Any) -> None:
    site.add_op("oplet-a", op="CONV_2D")
    resolver = site.manager().resolver()
    assert resolver.find_op("CONV_2D", 1) is None
    assert resolver.find_op(3, 1).name == "CONV_2D"


def test_preferences_add_up() -> None:
    assert Preference.read("a, Op=b ,c").before(Preference.read({"Op": "d"})).for_op("Op") == ("b", "d", "a", "c")
    assert Preference.read(None) == Preference.read("") == Preference.read([])
