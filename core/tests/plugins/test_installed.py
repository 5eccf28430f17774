"""Entry points are those that importlib_metadata finds, read with less."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import importlib_metadata
import pytest
from tests.children import run_child

from oplet import PluginManager, installed

GROUP = "oplet"


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the only one where packages are looked for, by a process that has not imported importlib_metadata."""
    monkeypatch.delitem(sys.modules, "importlib_metadata")
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if not hasattr(finder, "find_distributions")])
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def install(site: Path, name: str, entries: str, *, metadata: str | None = None, version: str = "1.0") -> None:
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(metadata or f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: other\n")
    (info / "entry_points.txt").write_text(entries)


def test_the_installed_plugins_are_those_that_importlib_metadata_finds() -> None:
    code = (
        "import sys; from oplet import installed; found = installed.entry_points('oplet');"
        "print('importlib_metadata' in sys.modules); print(sorted((e.name, e.value, e.dist.name, e.dist.version) for e in found))"
    )
    done = run_child([sys.executable, "-c", code])
    before, found = done.stdout.splitlines()
    expected = [(e.name, e.value, e.dist.name, e.dist.version) for e in importlib_metadata.entry_points(group=GROUP) if e.dist]
    assert found == str(sorted(expected))
    assert before == "False"


def test_groups_comments_attributes_and_extras_are_read(alone: Path) -> None:
    entries = "# a comment\n[other]\na = x\n\n[oplet]\nb = pack.mod : Part.inner [more]\n c=d\n[oplet.modules]\ne = f\n"
    install(alone, "My-Ops", entries)
    install(alone, "without", "[console_scripts]\noplet = x:main\n")
    b, c = installed.entry_points(GROUP)
    assert (b.name, b.module, b.attr, c.name, c.module, c.attr) == ("b", "pack.mod", "Part.inner", "c", "d", "")
    assert b.dist is not None
    assert (b.dist.name, b.dist.version) == ("My-Ops", "1.0")
    assert "importlib_metadata" not in sys.modules


def test_of_two_packages_of_a_name_the_first_on_the_path_counts(alone: Path) -> None:
    for folder, value in (("first", "a"), ("second", "b")):
        (alone / folder).mkdir()
        install(alone / folder, "ops", f"[oplet]\nname = {value}\n", version="2.0" if value == "b" else "1.0")
        sys.path.append(str(alone / folder))
    assert [entry.value for entry in installed.entry_points(GROUP)] == ["a"]


def test_an_entry_point_loads_what_it_names(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(alone, "loads", "[oplet]\na = oplet.texts:shown.__name__\nb = oplet.texts\n")
    monkeypatch.setattr(installed, "import_module", {"oplet.texts": sys.modules["oplet.texts"]}.__getitem__)
    a, b = installed.entry_points(GROUP)
    assert a.load() == "shown"
    assert b.load() is sys.modules["oplet.texts"]


def test_what_names_no_module_is_no_reason_to_have_no_plugins(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(alone, "ops", "[oplet]\nodd\na = b c\nd =\ne = sys:x:y\nf\0 = g\0:h\x1b\ni = oplet.texts\n")
    file = alone / "ops-1.0.dist-info" / "entry_points.txt"
    file.write_bytes(file.read_bytes() + b"\xff = \xff\n")
    *odd, good, broken = installed.entry_points(GROUP)
    monkeypatch.undo()
    assert [entry.name for entry in odd] == ["a", "d", "e", "f\0"]
    assert good.load() is sys.modules["oplet.texts"]
    for entry in (*odd, broken):
        with pytest.raises((ImportError, ValueError, AttributeError)):
            entry.load()
    manager = PluginManager(entry_points=[*odd, good, broken])
    assert {plugin.state for plugin in manager.plugins() if plugin.name != "i"} == {"broken"}


@pytest.mark.parametrize("case", ["twice", "no version", "a zip", "a finder", "loaded"])
def test_what_is_unusual_is_left_to_importlib_metadata(alone: Path, monkeypatch: pytest.MonkeyPatch, case: str) -> None:
    asked: list[str] = []

    class Instead:
        @staticmethod
        def entry_points(group: str) -> list[Any]:
            asked.append(group)
            return []

    install(alone, "ops", "[oplet]\na = b\n")
    if case == "twice":
        install(alone, "Ops", "[oplet]\na = b\n", version="2.0")
    if case == "no version":
        (alone / "ops-1.0.dist-info" / "METADATA").write_text("Name: ops\n")
    if case == "a zip":
        (alone / "packages.zip").write_bytes(b"PK")
        sys.path.append(str(alone / "packages.zip"))
    if case == "a finder":
        sys.meta_path.append(type("Finder", (), {"find_distributions": None})())
    if case == "loaded":
        monkeypatch.setitem(sys.modules, "importlib_metadata", Instead)
    else:
        real = installed._read

        def read(*arguments: Any) -> Any:
            yield from real(*arguments)

        monkeypatch.setattr(installed, "_read", read)
        monkeypatch.setattr(sys, "modules", {**sys.modules})
        sys.modules["importlib_metadata"] = Instead  # type: ignore[assignment]
        monkeypatch.setattr(installed, "sys", type("sys", (), {"modules": {}, "path": sys.path, "meta_path": sys.meta_path}))
    assert installed.entry_points(GROUP) == ()
    assert asked == [GROUP]
