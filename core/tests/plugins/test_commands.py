"""Commands of plugins: each is refused, or kept apart from the others', in one sentence; and files that a plugin opens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oplet import CommandRegistry
from oplet.errors import OpConflictError, PluginError

ADD = """
    from oplet import hookimpl
    @hookimpl
    def register_commands(registry):
        registry.add({name!r}, {command}, {help!r})
"""
OPENER = """
    from oplet import MutableOpResolver, Registration, hookimpl
    from oplet.errors import PluginError
    @hookimpl
    def open_op_library(path, operators):
        if not path.endswith(".lib"):
            return None
        if "broken" in path:
            raise PluginError(f"{path} is broken.")
        if "crash" in path:
            raise KeyError(path)
        if "nonsense" in path:
            return 5
        resolver = MutableOpResolver()
        names = operators if isinstance(operators, dict) else {operators or "Atan": ""}
        for name in names:
            add = resolver.add_custom if isinstance(name, str) else resolver.add_builtin
            add(name, Registration(invoke=print, library=path))
        return resolver
"""


def add(name: str, command: str = "print", help: str = "Greet.") -> str:
    return ADD.format(name=name, command=command, help=help)


def test_a_plugin_adds_commands(site: Any) -> None:
    site.add("oplet-x", source=add("greet"))
    site.add("oplet-y", source=add("wave", "'nowhere:NAME'"))
    manager = site.manager()
    assert [(e.name, e.help, str(e.provenance)) for e in manager.commands().entries()] == [
        ("greet", "Greet.", "oplet-x 1.0"),
        ("wave", "Greet.", "oplet-y 1.0"),
    ]
    assert manager.commands().find("greet").load() is print
    assert manager.commands().find("bow") is None
    assert [info.commands for info in manager.plugins()] == [("greet",), ("wave",)]
    with pytest.raises(
        PluginError, match=r"The command 'wave' of oplet-y 1.0 cannot be imported from 'nowhere:NAME': ModuleNotFound"
    ):
        manager.commands().find("wave").load()


def test_the_registry_takes_every_name_as_it_knows_no_command_of_others(site: Any, caplog: pytest.LogCaptureFixture) -> None:
    site.add("oplet-x", source=add("run") + "        registry.add('greet', print, 'Greet.')\n")
    manager = site.manager()
    assert [entry.name for entry in manager.commands().entries()] == ["greet", "run"]
    assert manager.plugins()[0].notes == ()
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("name", "command", "help", "reason"),
    [
        ("Greet", "print", "Greet.", "A command is registered under 'Greet'; give small letters"),
        ("", "print", "Greet.", "A command is registered under ''"),
        ("-p", "print", "Greet.", "A command is registered under '-p'"),
        ("greet", "'nothing'", "Greet.", "The command 'greet' is registered with 'nothing', which is no typer.Typer"),
        ("greet", "3", "Greet.", "The command 'greet' is registered with 3"),
        ("greet", "print", " ", "The command 'greet' is registered without a line of help"),
    ],
)
def test_a_plugin_whose_command_cannot_be_used_is_named_and_the_others_work(
    site: Any, caplog: pytest.LogCaptureFixture, name: str, command: str, help: str, reason: str
) -> None:
    site.add("oplet-x", source=add(name, command, help))
    site.add("oplet-y", source=add("wave"))
    assert [entry.name for entry in site.manager().commands().entries()] == ["wave"]
    [message] = caplog.messages
    assert message.startswith(f"Plugin 'oplet-x' of oplet-x 1.0 is left out: its hook register_commands raised {reason}")


def test_a_command_that_two_packages_bring_is_an_error_when_it_is_used(site: Any) -> None:
    site.add("oplet-x", source=add("greet"))
    site.add("oplet-y", source=add("greet") + "        registry.add('wave', print, 'Wave.')\n")
    registry = site.manager().commands()
    assert [entry.name for entry in registry.entries()] == ["greet", "wave"]
    with pytest.raises(
        PluginError, match=r"'greet' is brought by oplet-x 1.0 and oplet-y 1.0; leave one out: oplet -p no:oplet-y"
    ):
        registry.find("greet").load()
    assert registry.find("wave").load() is print
    assert site.manager(block=["oplet-y"]).commands().find("greet").load() is print


def test_a_command_that_a_plugin_adds_twice_is_its_last() -> None:
    registry = CommandRegistry()
    registry.add("greet", print, "One.")
    registry.add("greet", repr, "Two.")
    assert [(entry.command, entry.help) for entry in registry.entries()] == [(repr, "Two.")]


def test_a_file_that_a_plugin_opens_goes_before_every_package(site: Any) -> None:
    site.add("oplet-opener", "2.0", source=OPENER)
    site.add_op("oplet-x")
    manager = site.manager()
    assert not manager.has_op_libraries
    before = manager.resolver()
    assert before.find_op("Atan", 1).provenance.distribution == "oplet-x"
    manager.add_op_library("folder/my.lib")
    assert manager.has_op_libraries
    found = manager.resolver().find_op("Atan", 1)
    assert (found.provenance.plugin, str(found.provenance), found.source) == (
        "my.lib",
        "oplet-opener 2.0",
        "oplet-opener 2.0 (my.lib)",
    )
    assert manager.resolver().why("Atan", 1) == "overrides oplet-x 1.0"
    assert manager.resolver(["oplet-x"]).find_op("Atan", 1).provenance.distribution == "oplet-x"
    assert manager.without(["oplet-x"]).resolver().find_op("Atan", 1).library == "folder/my.lib"
    manager.add_op_library("other.lib", {"Sinh": "f"})
    assert manager.resolver().find_op("Sinh", 1).library == "other.lib"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("broken.lib", "broken.lib is broken."),
        ("crash.lib", "The plugin 'oplet-opener' of oplet-opener 1.0 fails to open 'crash.lib': KeyError: 'crash.lib'"),
        ("nonsense.lib", "gives 5 for 'nonsense.lib', which is no MutableOpResolver"),
        ("my.lib", "Atan is twice in my.lib; name the functions"),
        ("other.lib", "Atan is in my.lib and in other.lib; name the functions"),
        ("my.so", "'my.so' cannot be opened: compiled operators run with oplet-native-ops, which is not installed: pip install"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence(site: Any, path: str, reason: str) -> None:
    site.add("oplet-opener", source=OPENER)
    manager = site.manager()
    manager.add_op_library("my.lib")
    with pytest.raises(PluginError, match=reason.replace("(", r"\(").replace(")", r"\)")):
        manager.add_op_library(path)
    assert manager.resolver().find_op("Atan", 1).library == "my.lib"


@pytest.mark.parametrize(
    ("source", "arguments", "reason"),
    [
        ("raise ValueError('no')", {}, "oplet-native-ops 1.0, which runs compiled operators, is broken: ValueError: no; pip"),
        ("", {"block": ["oplet-native-ops"]}, "oplet-native-ops 1.0, which runs compiled operators, is switched off by"),
        ("", {}, "There is no file 'my.so'; give a shared library"),
    ],
)
def test_who_would_open_a_file_and_cannot_is_named(site: Any, source: str, arguments: Any, reason: str) -> None:
    site.add("oplet-native-ops", source=source)
    with pytest.raises(PluginError, match=reason):
        site.manager(**arguments).add_op_library("my.so")


def test_a_file_of_no_kind_that_a_plugin_opens_is_named(site: Any, tmp_path: Path) -> None:
    site.add("oplet-native-ops", source="")
    (tmp_path / "my.txt").touch()
    with pytest.raises(PluginError, match=r"my\.txt' is of no kind that an installed plugin opens; give a shared library"):
        site.manager().add_op_library(tmp_path / "my.txt")


def test_a_file_that_two_plugins_open_is_an_error_that_names_both(site: Any) -> None:
    site.add("oplet-a", source=OPENER)
    site.add("oplet-b", source=OPENER)
    with pytest.raises(PluginError, match="'my.lib' is opened by oplet-a 1.0 and oplet-b 1.0; leave one out with -p no:oplet-b"):
        site.manager().add_op_library("my.lib")
    manager = site.manager(block=["oplet-b"])
    manager.add_op_library("my.lib")
    assert str(manager.resolver().find_op("Atan", 1).provenance) == "oplet-a 1.0"


def test_a_conflict_between_packages_is_settled_by_a_file(site: Any) -> None:
    site.add("oplet-opener", source=OPENER)
    site.add_op("oplet-x")
    site.add_op("oplet-y")
    manager = site.manager()
    with pytest.raises(OpConflictError):
        manager.resolver().find_op("Atan", 1)
    manager.add_op_library("my.lib")
    assert manager.resolver().find_op("Atan", 1).library == "my.lib"
