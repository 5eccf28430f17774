"""Tests that pass with libraries which the environment of the other tests does not have, or has in a newer version."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


def run_beside(tmp_path: Path, installed: list[str], tests: str) -> None:
    """Run tests with some distributions installed beside the environment, found before its own."""
    beside = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(beside)]
    subprocess.run([*pip, *installed], check=True)
    paths = os.pathsep.join(filter(None, (str(beside), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "slow or not slow", tests],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout


@pytest.mark.parametrize(
    ("package", "libraries"),
    [("numba_ops", ["numba>=0.59,<0.70", "llvmlite"]), ("openvino_delegate", ["openvino>=2025.0,<2027"])],
)
def test_a_package_on_a_large_library_passes_its_tests(package: str, libraries: list[str], tmp_path: Path) -> None:
    # Not in the environment of the other tests: the libraries are large, and the numpy kernels are theirs to test.
    run_beside(tmp_path, [*libraries, str(ROOT / "plugins" / package)], f"plugins/{package}")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="that numpy is older than this Python")
def test_the_operators_pass_their_tests_with_the_lowest_numpy_that_is_allowed(tmp_path: Path) -> None:
    # Before numpy 2 the values of single numbers decide on the types of results, so that narrow integers stay narrow.
    core = (ROOT / "core" / "pyproject.toml").read_text()
    lowest = [f"{name}=={version}" for name, version in re.findall(r'"(numpy|ml_dtypes)>=([\d.]+)"', core)]
    assert len(lowest) == 2
    run_beside(tmp_path, lowest, "plugins/builtin_ops")
