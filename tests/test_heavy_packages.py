"""The packages that stand on large libraries pass their tests in an environment that has these."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "libraries"), [("numba_ops", ["numba>=0.59", "llvmlite"]), ("openvino_delegate", ["openvino>=2025.0"])]
)
def test_the_package_passes_its_tests_where_it_is_installed(package: str, libraries: list[str], tmp_path: Path) -> None:
    # Not in the environment of the other tests: the libraries are large, and the numpy kernels are theirs to test.
    beside = tmp_path / "installed"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(beside)]
    subprocess.run([*pip, *libraries, str(ROOT / "plugins" / package)], check=True)
    paths = os.pathsep.join(filter(None, (str(beside), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "slow or not slow", f"plugins/{package}"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
