"""OpenVINO: the tests of oplet-openvino-delegate, in an environment that has openvino and the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_package_passes_its_tests_where_it_is_installed(tmp_path: Path) -> None:
    beside = tmp_path / "installed"  # not in the environment of the other tests: it is large, and they do without
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(beside)]
    subprocess.run([*pip, "openvino>=2025.0", str(ROOT / "plugins" / "openvino_delegate")], check=True)
    paths = os.pathsep.join(filter(None, (str(beside), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "slow or not slow", "plugins/openvino_delegate"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
