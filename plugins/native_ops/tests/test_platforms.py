"""Where there is no library for a platform, installing works, and using it says so in one sentence."""

from __future__ import annotations

import platform
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

from oplet.errors import PluginError
from oplet_native_ops import include_dir, load_ops
from oplet_native_ops.shim import library

HOOK = Path(__file__).parents[1] / "hatch_build.py"


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The package as it is where nothing was compiled."""
    monkeypatch.setattr(library, "library_path", lambda: tmp_path / "liboplet_native.so")
    library.shim.cache_clear()
    (tmp_path / "libatan.so").write_bytes(b"")
    yield monkeypatch, tmp_path / "libatan.so"
    library.shim.cache_clear()


@pytest.mark.parametrize(("name", "system"), [("darwin", "Darwin"), ("win32", "Windows")])
def test_another_system_is_told(without: Any, name: str, system: str) -> None:
    monkeypatch, path = without
    monkeypatch.setattr(sys, "platform", name)
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    with pytest.raises(
        PluginError, match=rf"^oplet-native-ops runs compiled operators on 64-bit Linux alone, and this is {system} on arm64\.$"
    ):
        load_ops(path)


def test_a_linux_where_nothing_was_compiled_is_told_what_to_do(without: Any) -> None:
    monkeypatch, path = without
    monkeypatch.setattr(sys, "platform", "linux")
    with pytest.raises(PluginError, match="without its library; install it again, with a C compiler or ziglang"):
        load_ops(path)


def test_the_headers_are_there_on_every_platform() -> None:
    assert (include_dir() / "tflite" / "c" / "c_api_opaque.h").is_file()


@pytest.mark.parametrize(
    ("name", "largest", "order", "supported"),
    [
        ("linux", 2**63 - 1, "little", True),
        ("linux", 2**31 - 1, "little", False),
        ("linux", 2**63 - 1, "big", False),
        ("darwin", 2**63 - 1, "little", False),
        ("win32", 2**63 - 1, "little", False),
    ],
)
def test_what_is_compiled_where(monkeypatch: pytest.MonkeyPatch, name: str, largest: int, order: str, supported: bool) -> None:
    pytest.importorskip("hatchling")
    hook = runpy.run_path(str(HOOK))
    monkeypatch.delenv("OPLET_NATIVE_TARGET", raising=False)
    monkeypatch.setattr(sys, "platform", name)
    monkeypatch.setattr(sys, "maxsize", largest)
    monkeypatch.setattr(sys, "byteorder", order)
    assert hook["is_supported"]() is supported
    data: dict[str, Any] = {"force_include": {}, "pure_python": True}
    if not supported:  # the wheel is made nevertheless, without a library
        made = object.__new__(hook["CustomBuildHook"])
        assert made.initialize("standard", data) is None
        assert data == {"force_include": {}, "pure_python": True}
        assert made.dependencies() == []


def test_the_compiler_is_the_given_one_the_machines_or_pip_s(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hatchling")
    hook = runpy.run_path(str(HOOK))
    compiler = hook["compiler"]
    monkeypatch.delenv("OPLET_NATIVE_TARGET", raising=False)
    monkeypatch.setenv("CC", "ccache clang -m64")
    assert compiler() == ["ccache", "clang", "-m64"]
    monkeypatch.delenv("CC")
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/gcc" if name == "gcc" else None)
    assert compiler() == ["gcc"]
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert compiler() == [sys.executable, "-m", "ziglang", "cc"]
    monkeypatch.setenv("CC", "gcc")
    monkeypatch.setenv("OPLET_NATIVE_TARGET", "aarch64-linux-musl")
    assert compiler() == [sys.executable, "-m", "ziglang", "cc"]
    monkeypatch.setenv("OPLET_NATIVE_TARGET", "sparc")
    with pytest.raises(SystemExit, match="OPLET_NATIVE_TARGET is 'sparc'; it must be one of x86_64-linux-gnu"):
        object.__new__(hook["CustomBuildHook"]).initialize("standard", {})
