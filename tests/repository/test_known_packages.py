"""Advice names the packages of this release, and nobody else's: what messages tell users to install must be ours."""

from __future__ import annotations

import re

import pytest
from scripts import known_ops
from scripts.requirements import tomllib
from tests.every_package import not_installed
from tests.places import ROOT, name_of

from oplet import Composite, PluginManager, companions
from oplet.errors import DelegateLoadError
from oplet.plugins import install_commands, known_packages
from oplet_tools.cli import plugin_commands

FOLDERS = sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))


@pytest.mark.skipif(bool(not_installed(ROOT)), reason="not all packages are installed: pip install -r requirements-dev.txt")
def test_the_list_is_what_the_packages_of_this_repository_register() -> None:
    assert known_ops.LIST.read_text() == known_ops.text(), "run python -m scripts.known_ops"
    packages = known_packages.known_ops()
    assert packages["Atan"] == "oplet-atan-op"
    assert packages[Composite("odml.scaled_dot_product_attention")] == "oplet-builtin-ops"
    assert {op: known_packages.known_distribution(op) for op in packages} == packages


@pytest.mark.parametrize(("op", "package"), [("FlexNobodysOp", "oplet-flex-delegate"), ("TFText>Newest", "oplet-text-ops")])
def test_an_op_of_a_family_that_no_kernel_is_known_for_is_that_of_the_family_s_package(op: str, package: str) -> None:
    assert known_packages.known_distribution(op) == known_packages.family_distribution(op) == package


def test_every_package_that_is_advised_has_its_source_where_the_advice_says() -> None:
    names = {name_of(folder): folder.name for folder in FOLDERS}
    for package in {known_packages.BUILTIN_OPS, *known_packages.known_ops().values(), *known_packages._FAMILIES.values()}:
        assert f"plugins/{names[package]} in" in known_packages.package_origin(package)


@pytest.mark.parametrize("name", ["Signal", "SignalBoost", "signalrfft", "SignalRfft2", "Atan2", "Mfcc ", ""])
def test_a_name_that_no_package_registers_is_not_advised(name: str) -> None:
    assert known_packages.known_distribution(name) == ""


def test_a_command_of_a_package_that_is_not_installed_is_advised_by_who_brings_it() -> None:
    brought = {
        name: name_of(plugin.parents[2])
        for plugin in ROOT.glob("plugins/*/src/*/plugin.py")
        for name in re.findall(r"registry\.add\(\s*[\"]([\w-]+)", plugin.read_text("utf-8"))
    }
    assert brought == plugin_commands.KNOWN


def test_a_companion_that_is_not_installed_is_advised_by_who_brings_it() -> None:
    brought: dict[str, str] = {}
    for folder in FOLDERS:
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        brought |= dict.fromkeys(project.get("entry-points", {}).get("oplet.modules", ()), project["name"])
    assert brought == companions.KNOWN


def test_every_package_of_the_repository_is_known_as_the_project_s() -> None:
    assert {"oplet", *map(name_of, FOLDERS)} == known_packages.PACKAGES


def test_a_delegate_that_is_not_installed_is_advised_by_who_brings_it() -> None:
    brought = {
        name: name_of(source.parents[2])
        for source in ROOT.glob("plugins/*_delegate/src/*/__init__.py")
        for name in re.findall(r"registry\.add\(\"([\w-]+)", source.read_text("utf-8"))
    }
    assert len(brought) > 3
    assert brought == known_packages.DELEGATES
    for name, package in brought.items():
        with pytest.raises(DelegateLoadError, match=f"{package} brings it and is not installed, .*: pip install {package}"):
            PluginManager(entry_points=[]).registry().find(name)


def test_no_message_asks_an_index_for_a_name_that_is_not_ours_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_packages, "NAMES_ARE_OURS", False)
    for package in known_packages.PACKAGES:
        assert "PyPI" not in known_packages.package_origin(package)
        for options in ({}, {"upgrade": True}, {"version": "1.0"}, {"extra": "cli"}):
            command = install_commands.install_command(package, **options)
            assert "--no-index --find-links WHEELS" in command, command
            assert "WHEELS: the folder that scripts/wheels.sh of oplet's repository makes" in command
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
