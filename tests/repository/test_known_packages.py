"""Advice names the packages of this release, and nobody else's: what messages tell users to install must be ours."""

from __future__ import annotations

import pytest
from tests.places import ROOT, name_of

from oplet import MutableOpResolver
from oplet.ops.composite import Composite
from oplet.plugins import known_packages

FOLDERS = sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))
#: Its kernels take the place of others, so it is never what a model lacks.
NOT_ADVISED = {"oplet-numba-ops"}


class Listener(MutableOpResolver):
    """Keeps the names that a plugin registers."""

    def __init__(self) -> None:
        super().__init__()
        self.custom: set[str] = set()
        self.composites: set[str] = set()

    def add_custom(self, name: str, *arguments: object, **options: object) -> None:  # type: ignore[override]
        self.custom.add(name)

    def add_composite(self, name: str, *arguments: object, **options: object) -> None:  # type: ignore[override]
        self.composites.add(name)


def registered() -> dict[str, Listener]:
    found = {}
    for folder in FOLDERS:
        module = pytest.importorskip(f"oplet_{folder.name}")
        found[name_of(folder)] = listener = Listener()
        if hasattr(module, "register_ops"):
            module.register_ops(resolver=listener)
    return found


def test_the_list_of_custom_ops_is_what_the_packages_of_this_repository_register() -> None:
    ours = {op: package for package, listener in registered().items() for op in listener.custom if package not in NOT_ADVISED}
    assert len(ours) > 20
    assert ours == known_packages._CUSTOM
    assert {op: known_packages.known_distribution(op) for op in ours} == ours


def test_the_list_of_composites_is_what_the_packages_of_this_repository_register() -> None:
    ours = {op: package for package, listener in registered().items() for op in listener.composites}
    assert ours
    assert {op: known_packages.known_distribution(Composite(op)) for op in ours} == ours
    assert set(ours) == set(known_packages._COMPOSITES)


def test_every_package_that_is_advised_has_its_source_where_the_advice_says() -> None:
    names = {name_of(folder): folder.name for folder in FOLDERS}
    for package in {known_packages.BUILTIN_OPS, *known_packages._CUSTOM.values()}:
        assert f"plugins/{names[package]} in" in known_packages.package_origin(package)


@pytest.mark.parametrize("name", ["Signal", "SignalBoost", "signalrfft", "SignalRfft2", "Atan2", "Mfcc ", ""])
def test_a_name_that_no_package_registers_is_not_advised(name: str) -> None:
    assert known_packages.known_distribution(name) == ""


def test_the_command_that_resolves_names_says_where_they_come_from() -> None:
    text = (ROOT / "RELEASING.md").read_text()
    assert "Reserve every name before the first release" in text
