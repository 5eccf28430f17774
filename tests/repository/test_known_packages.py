"""Advice names the packages of the directory of plugins, and no others: what messages tell users to install was looked at."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts import directory
from scripts.directory_page import page
from scripts.packages import version
from scripts.requirements import tomllib
from tests.every_package import not_installed
from tests.places import ROOT, name_of

from oplet import Composite, PluginManager, companions
from oplet.errors import DelegateLoadError
from oplet.plugins import install_commands, known_packages

FOLDERS = sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))


def test_the_data_and_the_page_are_made_of_the_directory() -> None:
    found, oplet = directory.entries(), version()
    assert directory.DATA.read_text("utf-8") == directory.data(found, oplet), "run python -m scripts.directory"
    assert directory.PAGE.read_text("utf-8") == page(found, oplet), "run python -m scripts.directory"


@pytest.mark.skipif(bool(not_installed(ROOT)), reason="not all packages are installed: pip install -r requirements-dev.txt")
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_entry_of_a_package_is_what_it_says_of_itself_and_registers(folder: Path) -> None:
    said = directory.entries()[name_of(folder)]
    assert {key: said[key] for key in said if key not in ("parity", "advised", "families")} == directory.facts(folder), (
        "run python -m scripts.directory --own"
    )


def test_an_op_is_advised_by_its_whole_name() -> None:
    brought = known_packages.known().items()
    packages: dict[str | Composite, str] = {op: package for package, said in brought for op in said.get("ops", ())}
    packages |= {Composite(name): package for package, said in brought for name in said.get("composites", ())}
    assert packages["Atan"] == "oplet-atan-op"
    assert packages[Composite("odml.scaled_dot_product_attention")] == "oplet-builtin-ops"
    assert {op: known_packages.known_distribution(op) for op in packages} == packages


@pytest.mark.parametrize(("op", "package"), [("FlexNobodysOp", "oplet-flex-delegate"), ("TFText>Newest", "oplet-text-ops")])
def test_an_op_of_a_family_that_no_kernel_is_known_for_is_that_of_the_family_s_package(op: str, package: str) -> None:
    assert known_packages.known_distribution(op) == known_packages.family_distribution(op) == package


def test_every_package_that_is_advised_has_its_source_where_the_advice_says() -> None:
    names = {name_of(folder): folder.name for folder in FOLDERS}
    assert known_packages.known().keys() == names.keys()
    for package, folder in names.items():
        assert f"plugins/{folder} in" in known_packages.package_origin(package)


@pytest.mark.parametrize("name", ["Signal", "SignalBoost", "signalrfft", "SignalRfft2", "Atan2", "Mfcc ", ""])
def test_a_name_that_no_package_registers_is_not_advised(name: str) -> None:
    assert known_packages.known_distribution(name) == ""


def test_a_command_of_a_package_that_is_not_installed_is_advised_by_who_brings_it() -> None:
    brought = {
        name: name_of(plugin.parents[2])
        for plugin in ROOT.glob("plugins/*/src/*/plugin.py")
        for name in re.findall(r"registry\.add\(\s*[\"]([\w-]+)", plugin.read_text("utf-8"))
    }
    assert {name: known_packages.known_command(name) for name in brought} == brought
    assert len(brought) > 3
    assert known_packages.known_command("nobodys") == ""


def test_a_companion_that_is_not_installed_is_advised_by_who_brings_it() -> None:
    brought: dict[str, str] = {}
    for folder in FOLDERS:
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        brought |= dict.fromkeys(project.get("entry-points", {}).get("oplet.modules", ()), project["name"])
    assert brought == companions.KNOWN


def test_every_package_of_the_repository_is_known_as_the_project_s() -> None:
    for package in ("oplet", "oplet-core", *map(name_of, FOLDERS)):
        assert known_packages.is_ours(package), "run python -m scripts.directory --own"
    assert not known_packages.is_ours("oplet-nobodys")


def test_a_package_of_somebody_else_is_advised_with_its_keeper_and_from_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = {"keeper": "Waves Ltd", "source": "https://example.com/waves", "ops": ["Wave"]}
    monkeypatch.setattr(known_packages, "known", lambda: {"waves": theirs})
    monkeypatch.setattr(known_packages, "_by_name", known_packages._by_name.__wrapped__)
    monkeypatch.setattr(known_packages, "NAMES_ARE_OURS", False)
    assert PluginManager(entry_points=[]).advice("Wave") == (
        "Install the package that brings Wave (of Waves Ltd, https://example.com/waves): pip install waves."
    )


def test_a_delegate_that_is_not_installed_is_advised_by_who_brings_it() -> None:
    brought = {
        name: name_of(source.parents[2])
        for source in ROOT.glob("plugins/*_delegate/src/*/__init__.py")
        for name in re.findall(r"registry\.add\(\"([\w-]+)", source.read_text("utf-8"))
    }
    assert len(brought) > 3
    assert {name: known_packages.known_delegate(name) for name in brought} == brought
    for name, package in brought.items():
        with pytest.raises(DelegateLoadError, match=f"{package} brings it and is not installed, .*: pip install {package}"):
            PluginManager(entry_points=[]).registry().find(name)


def test_no_message_asks_an_index_for_a_name_that_is_not_ours_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(known_packages, "NAMES_ARE_OURS", False)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    for package in known_packages.known():
        assert "PyPI" not in known_packages.package_origin(package)
        for options in ({}, {"upgrade": True}, {"version": "1.0"}, {"extra": "cli"}):
            command = install_commands.install_command(package, **options)
            assert "--constraint WHEELS/constraints.txt" in command, command
            assert "extra" not in options or "WHEELS/oplet_" in command, "pip gives constrained names no extras"
            assert "WHEELS: the folder that scripts/wheels.sh of oplet's repository makes" in command
    folders = [tmp_path / name for name in ("others", "mine")]
    for folder, package in zip(folders, ("some-core", "oplet-core"), strict=True):
        folder.mkdir()
        (folder / "constraints.txt").write_text(f"{package} @ {(folder / 'core.whl').as_uri()}\n")
    monkeypatch.setenv("PIP_FIND_LINKS", " ".join(["https://example.com/wheels", *map(str, folders)]))
    assert install_commands.install_command("oplet-lm") == f"pip install --constraint {folders[1]}/constraints.txt oplet-lm"
    # Of others' packages the project knows nothing.
    assert install_commands.install_command("my-ops", upgrade=True) == "pip install --upgrade my-ops"


def test_names_are_ours_no_earlier_than_releasing_says() -> None:
    """The flag is turned with the first release, whose section the changelog then has."""
    released = re.search(r"^## \d+\.\d+\.", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE) is not None
    assert "NAMES_ARE_OURS" in (ROOT / "RELEASING.md").read_text("utf-8")
    source = (ROOT / "core/src/oplet/plugins/known_packages.py").read_text("utf-8")
    assert f"\nNAMES_ARE_OURS = {released}\n" in source


def test_the_command_that_resolves_names_says_where_they_come_from() -> None:
    text = (ROOT / "RELEASING.md").read_text()
    assert "Reserve every name before the first release" in text
