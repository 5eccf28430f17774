"""The scripts and measurements, most of which no test runs to the end, import what the project has."""

from __future__ import annotations

import importlib
import pkgutil

import benchmarks
import pytest
import scripts

#: mkdocs runs it, and it writes pages where it runs.
BESIDE = ("scripts.site.generate",)
MODULES = [
    found.name
    for package in (benchmarks, scripts)
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not found.name.endswith("__main__") and found.name not in BESIDE
]


@pytest.mark.parametrize("module", MODULES)
def test_a_script_can_be_imported(module: str) -> None:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] in ("oplet", "core", "tests", "scripts", "benchmarks"):
            raise
        pytest.skip(f"{missing.name} is not installed")
