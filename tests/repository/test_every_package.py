"""A run of all tests says which packages' tests ran, and fails where a package had none."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests.children import run_child
from tests.places import ROOT

PLUGINS = ["tests.kinds", "tests.durations", "tests.every_package", "tests.ended", "tests.fixtures"]
UNITS = "not sweep and not environment"
PASSES = "def test_passes():\n    pass\n"
SKIPS = 'import pytest\n\n@pytest.mark.skipif(True, reason="no engine")\ndef test_skips():\n    pass\n'
NEEDS = 'import pytest\n\npytest.importorskip("no_engine")\n\ndef test_passes():\n    pass\n'


def pytest_of(root: Path, tests: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Run all tests of a made-up repository of two plugins, `one` and `two`."""
    config = '[tool.pytest.ini_options]\ntestpaths = ["core/tests", "plugins", "tests"]\naddopts = ["--import-mode=importlib"]\n'
    config += 'markers = ["sweep", "environment"]\n'
    files = {
        "pyproject.toml": config,
        "plugins/one/pyproject.toml": "",
        "plugins/two/pyproject.toml": "",
        "tests/test_a.py": PASSES,
    }
    for name, text in {**files, **tests}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    command = [sys.executable, "-m", "pytest", *(f"-p{name}" for name in PLUGINS), "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = run_child(command, code=None, cwd=root, env=environment)
    return done.returncode, done.stdout + done.stderr


ALL = {"core/tests/test_a.py": PASSES, "plugins/one/tests/test_a.py": PASSES, "plugins/two/tests/test_a.py": PASSES}


@pytest.mark.parametrize("processes", [[], ["-p", "xdist", "-n", "1"]])
def test_the_packages_whose_tests_ran_are_told(processes: list[str], tmp_path: Path) -> None:
    code, output = pytest_of(tmp_path, ALL, *processes)
    assert code == 0, output
    assert "packages whose tests ran" in output
    for line in ("core: 1", "plugins/one: 1", "plugins/two: 1", "tests: 1"):
        assert f"\n{line}\n" in output


@pytest.mark.parametrize("processes", [[], ["-p", "xdist", "-n", "1"]])
@pytest.mark.parametrize("text", ["", SKIPS, NEEDS, PASSES.replace("def", "import pytest\n\n@pytest.mark.sweep\ndef")])
def test_a_package_none_of_whose_tests_ran_fails_the_run(processes: list[str], text: str, tmp_path: Path) -> None:
    code, output = pytest_of(tmp_path, {**ALL, "plugins/two/tests/test_a.py": text}, "-m", UNITS, *processes)
    assert code == 1, output
    assert "ERROR: no test of plugins/two ran" in output
    assert "no test of plugins/one" not in output


def test_a_package_without_any_test_fails_the_run(tmp_path: Path) -> None:
    code, output = pytest_of(tmp_path, {"core/tests/test_a.py": PASSES, "plugins/one/tests/test_a.py": PASSES})
    assert (code, "no test of plugins/two ran" in output) == (1, True), output


@pytest.mark.parametrize("arguments", [["core/tests"], ["-k", "passes"], ["-m", "sweep or passes"], ["--collect-only"]])
def test_who_asks_for_some_tests_gets_these(arguments: list[str], tmp_path: Path) -> None:
    code, output = pytest_of(tmp_path, {"core/tests/test_a.py": PASSES}, *arguments)
    assert code in (0, 5), output
    assert "no test of" not in output


def test_the_requirements_of_the_tests_name_every_package() -> None:
    texts = [(ROOT / name).read_text("utf-8") for name in ("requirements-dev.txt", "requirements-test.txt")]
    assert "\n-r requirements-test.txt\n" in texts[0]
    lines = [line for text in texts for line in text.splitlines()]
    installed = {line.removeprefix("-e ./").partition("[")[0] for line in lines if line.startswith("-e ./")}
    assert installed == {
        "core",
        "metapackage",
        *(f"plugins/{path.parent.name}" for path in ROOT.glob("plugins/*/pyproject.toml")),
    }


def test_this_repository_tells_it() -> None:
    done = run_child([sys.executable, "-c", "import conftest; print(*conftest.pytest_plugins)"], cwd=ROOT)
    assert done.stdout.split() == PLUGINS, done.stderr


def test_who_tests_what_is_installed_is_told_what_is_not(tmp_path: Path) -> None:
    absent = {
        "plugins/two/pyproject.toml": '[project]\nname = "no-such-package"\n',
        "plugins/two/tests/test_a.py": "import no_such_module",
    }
    code, output = pytest_of(tmp_path, {**ALL, **absent}, "--installed", "-m", UNITS)
    assert code == 0, output
    assert (
        "plugins/two: not installed, and not tested; OPLET_REQUIREMENTS=requirements-dev.txt sh scripts/test.sh plugins/two runs its tests"
        in output
    )
    assert "sweeps: not run; .ci/run runs a tenth of them" in output
    assert "tests that make environments: not run" in output
    assert pytest_of(tmp_path, {}, "-m", UNITS)[0] != 0
