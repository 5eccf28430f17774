"""Plugins are found by metadata alone, in an order that installation does not change, and can be switched off."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import importlib_metadata
import pytest

from oplet import Interpreter, PluginManager
from oplet.errors import OpConflictError, PluginError
from oplet.plugins.manager import default_manager
from oplet.runtime.loading import manager_of
from oplet_testing.distributions import fake_distribution, installed
from oplet_testing.one_op import Spec, one_op_model

RELU = one_op_model("RELU", [Spec("float32", [1])], [Spec("float32", [1])])

OP = """
    from oplet import Registration, hookimpl

    @hookimpl
    def register_ops(resolver):
        resolver.add_custom("Twice", Registration(invoke=print))
    """


def run_python(code: str, site: Path, **environ: str) -> str:
    """What a fresh interpreter with `site` on its path prints."""
    path = os.pathsep.join([str(site), *filter(None, sys.path)])
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path, "OPLET_PLUGINS": "oplet-twice", **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_importing_oplet_and_listing_metadata_imports_no_plugin(tmp_path: Path) -> None:
    fake_distribution(tmp_path, "oplet-twice", "1.0", {"twice": "oplet_twice"}, {"oplet_twice": OP})
    code = """if True:
        import sys, oplet, oplet.plugins.manager
        manager = oplet.PluginManager()
        print([(p.name, p.state) for p in manager.plugins(load=False) if p.name == 'twice'], 'oplet_twice' in sys.modules)
        print(manager.resolver().find_op('Twice', 1).provenance, 'oplet_twice' in sys.modules)
        """
    assert run_python(code, tmp_path).splitlines() == ["[('twice', 'found')] False", "oplet-twice 1.0 True"]


def test_importing_oplet_imports_neither_pluggy_nor_importlib_metadata(tmp_path: Path) -> None:
    code = "import sys, oplet; print({'pluggy', 'importlib_metadata'} & set(sys.modules))"
    assert run_python(code, tmp_path) == "set()"


def test_what_is_installed_first_on_the_path_is_the_plugin(tmp_path: Path) -> None:
    for folder, version in (("first", "2.0"), ("second", "1.0")):
        fake_distribution(tmp_path / folder, "oplet-twice", version, {"twice": "oplet_twice"}, {"oplet_twice": OP})
    code = "import oplet; print([p.version for p in oplet.PluginManager().plugins(load=False) if p.name == 'twice'])"
    first, second = tmp_path / "first", tmp_path / "second"
    assert run_python(f"import sys; sys.path.append({str(second)!r}); {code}", first) == "['2.0']"


@pytest.mark.parametrize("order", [("oplet-b", "OPLET_A", "oplet.c"), ("oplet.c", "oplet-b", "OPLET_A")])
def test_plugins_are_sorted_by_distribution_however_they_were_installed(site: Any, order: tuple[str, ...]) -> None:
    for distribution in order:
        site.add_op(distribution, module=distribution.lower().translate(str.maketrans("-.", "__")))
    assert [p.distribution for p in site.manager().plugins(load=False)] == ["OPLET_A", "oplet-b", "oplet.c"]


def test_plugins_of_one_distribution_are_sorted_by_name(site: Any) -> None:
    fake_distribution(site.path, "oplet-two", "1.0", {"z": "two_z", "a": "two_a"}, {"two_z": OP, "two_a": OP})
    assert [p.name for p in site.manager().plugins()] == ["a", "z"]


def test_a_plugin_is_described_with_what_it_brings(site: Any) -> None:
    site.add_op("oplet-x", "2.1", versions="1, 3", head="OPLET_API = '1-2'", name="x")
    [info] = site.manager().plugins()
    assert info.as_dict() == {
        "name": "x",
        "distribution": "oplet-x",
        "version": "2.1",
        "module": "oplet_x",
        "api": "1-2",
        "tier": "plugin",
        "hooks": ("register_ops",),
        "ops": [{"op": "Atan", "min_version": 1, "max_version": 3}],
        "delegates": (),
        "commands": (),
        "state": "loaded",
        "error": "",
        "notes": (),
    }


def test_a_registration_carries_the_provenance_of_its_plugin(site: Any) -> None:
    site.add_op("oplet-x", "2.1", name="x")
    found = site.manager().resolver().find_op("Atan", 1)
    assert str(found.provenance) == "oplet-x 2.1"
    assert (found.provenance.plugin, found.provenance.module) == ("x", "oplet_x")


def test_the_default_manager_is_one_object() -> None:
    assert default_manager() is default_manager()


def test_the_manager_of_the_same_names_is_one_object_until_the_environment_or_the_path_differs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = manager_of(["no:x"])
    assert manager_of(["no:x"]) is manager_of(("no:x",)) is first
    assert manager_of(["no:y"]) is not first
    with monkeypatch.context() as patch:
        patch.setenv("OPLET_DISABLE_PLUGINS", "y")
        assert manager_of(["no:x"]) is not first
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path)
        assert manager_of(["no:x"]) is not first
    assert manager_of(["no:x"]) is first
    assert PluginManager.named(["no:x"], "plugins") is not first
    default_manager.cache_clear()
    assert manager_of(["no:x"]) is not first


@pytest.mark.parametrize(
    ("arguments", "environ", "loaded"),
    [
        ({}, {}, {"a", "b"}),
        ({"load": []}, {}, set()),
        ({"load": ["a"]}, {}, {"a"}),
        ({"load": ["OPLET.A"]}, {}, {"a"}),
        ({"load": "a,b", "block": ["a"]}, {}, {"b"}),
        ({"block": ["oplet_b"]}, {}, {"a"}),
        ({"block": "b"}, {}, {"a"}),
        ({}, {"OPLET_PLUGINS": ""}, set()),
        ({}, {"OPLET_PLUGINS": "oplet-a, b"}, {"a", "b"}),
        ({}, {"OPLET_PLUGINS": "oplet-b"}, {"b"}),
        ({"load": ["a"]}, {"OPLET_PLUGINS": ""}, {"a"}),
        ({}, {"OPLET_DISABLE_PLUGINS": "oplet-a"}, {"b"}),
        ({"block": ["b"]}, {"OPLET_DISABLE_PLUGINS": "a"}, set()),
        ({"load": ["a"]}, {"OPLET_DISABLE_PLUGINS": "a"}, set()),
        ({"load": ["no:a"]}, {}, {"b"}),
        ({"load": "NO:oplet_b"}, {}, {"a"}),
        ({"load": ["a", "b", "no:b"]}, {}, {"a"}),
        ({"load": ["no:a"]}, {"OPLET_PLUGINS": "a"}, set()),
        ({}, {"OPLET_PLUGINS": "no:a"}, {"b"}),
    ],
)
def test_switches(site: Any, monkeypatch: pytest.MonkeyPatch, arguments: Any, environ: dict[str, str], loaded: set[str]) -> None:
    site.add_op("oplet-a", name="a")
    site.add_op("oplet-b", name="b", op="Sign")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    states = {p.name: p.state for p in site.manager(**arguments).plugins()}
    assert states == {name: "loaded" if name in loaded else "blocked" for name in ("a", "b")}


def test_a_blocked_plugin_is_never_imported_and_says_who_blocked_it(site: Any) -> None:
    site.add("oplet-x", source="raise SystemError('imported')")
    [info] = site.manager(block=["oplet-x"]).plugins()
    assert (info.state, info.error) == ("blocked", "switched off by block=oplet-x")
    [info] = site.manager(load=["no:oplet-x"]).plugins()
    assert (info.state, info.error) == ("blocked", "switched off by load=no:oplet-x")


def test_a_name_that_no_plugin_has_is_reported(site: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    site.add_op("oplet-atan")
    monkeypatch.setenv("OPLET_PLUGINS", "oplet-atn")
    site.manager().plugins()
    assert caplog.messages == ["OPLET_PLUGINS names 'oplet-atn', and no plugin is called so."]


def test_a_needless_no_is_reported(site: Any, caplog: Any) -> None:
    site.add_op("oplet-atan")
    site.manager(load=["no:oplet-atn"]).plugins()
    assert caplog.messages == ["load=no:oplet-atn names nothing: no plugin is called so."]


def test_names_that_no_plugin_has_are_reported_wherever_they_stand(
    site: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    site.add_op("oplet-atan")
    monkeypatch.setenv("OPLET_DISABLE_PLUGINS", "oplet-atn")
    monkeypatch.setenv("OPLET_PREFER", "first,Atan=second")
    manager = site.manager(block=["oplet-tan"])
    manager.resolver(prefer="third")
    assert caplog.messages == [
        "OPLET_DISABLE_PLUGINS=oplet-atn names nothing: no plugin is called so.",
        "block=oplet-tan names nothing: no plugin is called so.",
        "prefer= names 'third', and no plugin is called so.",
        "OPLET_PREFER names 'first', and no plugin is called so.",
        "OPLET_PREFER names 'second', and no plugin is called so.",
    ]


def test_names_that_plugins_have_are_not_reported(site: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    site.add_op("oplet-atan")
    site.add_op("oplet-b", name="b", op="RELU")
    monkeypatch.setenv("OPLET_DISABLE_PLUGINS", "B")
    monkeypatch.setenv("OPLET_PREFER", "oplet_atan,Atan=oplet-atan")
    site.manager().resolver(prefer="oplet-b")
    assert caplog.messages == []


@pytest.mark.parametrize("name", ["no:b", "no:B", "no:oplet-b", "no:oplet_b", " NO: Oplet.B "])
def test_the_interpreter_takes_names_behind_no_as_the_command_line_does(
    site: Any, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    site.add_op("oplet-a", name="a", op="RELU")
    site.add_op("oplet-b", name="b", op="RELU", versions="1, 2")
    entry_points = site.manager()._entry_points
    monkeypatch.setattr(importlib_metadata, "entry_points", lambda group: entry_points)
    with pytest.raises(OpConflictError):
        Interpreter(model_content=RELU, plugins=PluginManager())
    interpreter = Interpreter(model_content=RELU, plugins=[name])
    assert [report.plugin for report in interpreter.explain()] == ["a"]


def test_the_interpreter_refuses_a_plugin_that_nobody_has_and_names_its_argument(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.add_op("oplet-a", name="a", op="RELU")
    entry_points = site.manager()._entry_points
    monkeypatch.setattr(importlib_metadata, "entry_points", lambda group: entry_points)
    with pytest.raises(
        PluginError, match="^plugins= names 'oplet-b', and no installed plugin is called so; installed are oplet-a"
    ):
        Interpreter(model_content=RELU, plugins=["a", "oplet_b"])
    with pytest.raises(PluginError, match="^plugins= names plugins or distributions; 3 is a int"):
        Interpreter(model_content=RELU, plugins=[3])  # type: ignore[list-item]


def test_plugins_that_share_a_name_are_named_and_both_work(site: Any, caplog: Any) -> None:
    site.add_op("oplet-a", name="same")
    site.add_op("oplet-b", "2.0", name="same", op="Sign")
    manager = site.manager()
    assert [p.state for p in manager.plugins()] == ["loaded", "loaded"]
    assert caplog.messages == [
        "The plugin name 'same' is used by oplet-a 1.0 and oplet-b 2.0; tell them apart by distribution, as in -p no:oplet-b."
    ]
    assert all("oplet-a 1.0 and oplet-b 2.0" in p.notes[0] for p in manager.plugins())


def test_what_a_test_installs_is_gone_from_the_default_plugins_after_it(tmp_path: Path) -> None:
    from oplet.plugins.manager import default_manager

    fake_distribution(tmp_path, "passing-ops", "1.0", {"passing": "passing_ops"}, {"passing_ops": ""})
    with installed(tmp_path):
        assert "passing" in {plugin.name for plugin in default_manager().plugins()}
    assert "passing" not in {plugin.name for plugin in default_manager().plugins()}
