"""Delegates that are shared libraries are loaded by the package that says it can; names go before files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from oplet import Delegate, DelegateRegistry, PluginManager
from oplet.delegates.registry import is_library
from oplet.errors import DelegateError, DelegateLoadError, PluginError
from oplet.ops.serving.provenance import Provenance
from oplet.plugins.install_commands import install_command
from oplet_testing.distributions import fake_distribution, installed


class Loaded(Delegate):
    def __init__(self, path: str, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        self.name = Path(path).name


def registry_of(*packages: str) -> DelegateRegistry:
    merged = DelegateRegistry()
    for package in packages:
        registry = DelegateRegistry(Provenance("p", package, "1"))
        registry.add_loader(Loaded)
        merged.merge(registry)
    return merged


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("libfoo.so", True),
        ("libfoo.so.1.2", True),
        ("libfoo.dylib", True),
        ("foo.dll", True),
        ("./foo", True),
        ("/opt/x/libfoo.so", True),
        ("example", False),
        ("some-package:npu", False),
        ("also", False),
        ("libfoo.so.old", False),
        ("", False),
    ],
)
def test_a_library_is_known_by_its_name(name: str, expected: bool) -> None:
    assert is_library(name) is expected


def test_it_is_loaded_by_the_package_that_loads_libraries() -> None:
    delegate = registry_of("oplet-a").find("/opt/libfoo.so.1").create({"threads": 2})
    assert (delegate.name, delegate.options) == ("libfoo.so.1", {"threads": "2"})
    assert delegate.provenance.distribution == "oplet-a"


def test_without_such_a_package_one_sentence_says_what_to_install() -> None:
    for name in ("libfoo.so", "/opt/libfoo.so"):
        with pytest.raises(DelegateLoadError) as caught:
            PluginManager(entry_points=[]).registry().find(name)
        assert str(caught.value) == (
            f"Failed to load delegate from {name}: delegate libraries run with oplet-native-ops, which is not installed: "
            f"{install_command('oplet-native-ops')}."
        )
    with pytest.raises(DelegateLoadError, match="no package here loads delegate libraries"):
        DelegateRegistry().find("libfoo.so")


def test_a_package_that_is_switched_off_or_broken_is_named(tmp_path: Path) -> None:
    fake_distribution(tmp_path, "oplet-native-ops", "0.0", {"native_ops": "broken_loader"}, {"broken_loader": "1 / 0"})
    with installed(tmp_path) as entry_points:
        manager = PluginManager(entry_points=entry_points)
        with pytest.raises(
            DelegateLoadError, match="oplet-native-ops 0.0, which loads delegate libraries, is broken: .*; .*pip "
        ):
            manager.registry().find("libfoo.so")
        with pytest.raises(DelegateLoadError, match=r"oplet-native-ops 0.0, which loads delegate libraries, is .*without="):
            manager.without(["oplet-native-ops"]).registry().find("libfoo.so")


def test_of_two_packages_one_is_named() -> None:
    registry = registry_of("oplet-a", "oplet-b")
    with pytest.raises(DelegateLoadError, match="oplet-a 1 and oplet-b 1 both load libraries; name one as 'oplet-a:./libfoo.so'"):
        registry.find("./libfoo.so")
    assert registry.find("oplet-b:./libfoo.so").create().provenance.distribution == "oplet-b"
    assert registry.find("oplet-b:./libfoo.so").name == "./libfoo.so"


def test_a_name_that_a_package_brings_goes_before_files() -> None:
    registry = registry_of("oplet-a")
    registry.add("npu.so", lambda options: Delegate(options))
    assert registry.find("npu.so").create().name == "npu.so"
    assert type(registry.find("npu.so").create()) is Delegate


def test_an_option_without_a_value_is_told_as_such() -> None:
    with pytest.raises(
        DelegateLoadError, match="'fast' behind the delegate '/opt/libfoo.so' is no option; .*as in /opt/libfoo.so:fast=VALUE"
    ):
        registry_of("oplet-a").find("/opt/libfoo.so:fast")


def test_what_cannot_be_loaded_names_the_library() -> None:
    registry = DelegateRegistry(Provenance("p", "oplet-a", "1"))
    registry.add_loader(lambda path, options: 1 / 0)  # type: ignore[arg-type,return-value]
    with pytest.raises(ValueError, match="Failed to load delegate from libfoo.so: division by zero"):
        registry.find("libfoo.so").create()
    registry = DelegateRegistry(Provenance("p", "oplet-a", "1"))
    registry.add_loader("oplet_nowhere.delegates:load")
    with pytest.raises(PluginError, match="'libfoo.so' of oplet-a 1 cannot be imported from 'oplet_nowhere.delegates:load'"):
        registry.find("libfoo.so").create()
    with pytest.raises(DelegateError, match="to be loaded by 'nonsense', neither a callable nor 'module:NAME'"):
        registry.add_loader("nonsense")
