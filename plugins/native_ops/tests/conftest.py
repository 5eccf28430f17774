"""Libraries of operators, compiled from `sources/` by each compiler that is there."""

from __future__ import annotations

import functools
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from oplet_native_ops import cflags

SOURCES = Path(__file__).with_name("sources")
#: The commands of the compilers, for C and C++.
COMPILERS = {
    "gcc": {"c": ["gcc"], "cc": ["g++"]},
    "ziglang": {"c": [sys.executable, "-m", "ziglang", "cc"], "cc": [sys.executable, "-m", "ziglang", "c++"]},
}
Compile = Callable[..., str]


def compile_library(compiler: str, source: Path, target: Path, *options: str) -> str:
    """Compile one file to a shared library with the flags that this package gives to users."""
    language = source.suffix[1:]
    standard = "-std=c11" if language == "c" else "-std=c++17"
    command = [*COMPILERS[compiler][language], standard, "-O2", "-Wall", *cflags(), *options, "-o", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, f"{' '.join(command)}\n{done.stderr}"
    return str(target)


def is_there(compiler: str) -> bool:
    return importlib.util.find_spec("ziglang") is not None if compiler == "ziglang" else shutil.which("g++") is not None


@pytest.fixture(scope="session")
def build_with(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Compile]:
    """By the name of a compiler: what compiles a file of `sources/` by its name."""

    @functools.cache
    def builder(compiler: str) -> Compile:
        if not is_there(compiler):
            pytest.skip(f"there is no {compiler} here")
        return _builder(compiler, tmp_path_factory.mktemp(compiler))

    return builder


@pytest.fixture(scope="session")
def build_once(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """Compile a file of `sources/` by its name, with the first compiler that is there."""
    compiler = next((name for name in COMPILERS if is_there(name)), None)
    if compiler is None:
        pytest.skip("there is no compiler here")
    return _builder(compiler, tmp_path_factory.mktemp("built"))


def _builder(compiler: str, folder: Path) -> Compile:
    made: dict[tuple[str, ...], str] = {}

    def build(name: str, *options: str, library: str = "") -> str:
        key = (name, library, *options)
        if key not in made:
            target = folder / (library or f"lib{len(made)}_{Path(name).stem}.so")
            made[key] = compile_library(compiler, SOURCES / name, target, *options)
        return made[key]

    return build


#: Elsewhere there is nothing to open; what is said there is tested everywhere.
collect_ignore_glob = [] if sys.platform == "linux" else ["test_[!p]*.py"]
