"""Models that need more than the built-in operators: doctor names the packages to install, and with exactly these the model can run."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.places import ROOT

from oplet import Interpreter, PluginManager
from oplet.errors import UnresolvedOpError
from oplet.tools.describing.doctor import diagnose

BARE = ["oplet-builtin-ops"]
FOLDERS = {f"oplet-{name.replace('_', '-')}": ROOT / "plugins" / name / "tests" / "recorded" for name in ("flex_ops", "text_ops", "flex_delegate")}
MODELS = {f"{path.parents[2].name}/{path.stem}": path for folder in FOLDERS.values() for path in sorted(folder.glob("*.tflite"))}
RUN = """
import json, sys
from oplet import Interpreter
for path, plugins in json.loads(sys.argv[1]).items():
    Interpreter(path, plugins=plugins).allocate_tensors()
"""


def named(path: Path) -> set[str]:
    """The packages that doctor names where the built-in operators alone are installed; each op without a package has one."""
    found = diagnose(path, PluginManager.named(BARE, "plugins"))
    assert all(op.package for op in found if not op.provider), path
    return {op.package for op in found if op.package}


def test_every_package_has_recorded_models() -> None:
    assert all(any(model.is_relative_to(folder) for model in MODELS.values()) for folder in FOLDERS.values())


@pytest.mark.parametrize("name", MODELS)
def test_doctor_names_the_packages_with_which_a_model_can_run(name: str) -> None:
    path = MODELS[name]
    packages = named(path)
    assert packages
    with pytest.raises(UnresolvedOpError) as refused:
        Interpreter(path, plugins=BARE).allocate_tensors()
    assert all(package in str(refused.value) for package in packages)
    if "oplet-flex-delegate" not in packages:
        Interpreter(path, plugins=[*BARE, *packages]).allocate_tensors()
        for package in packages:
            with pytest.raises(UnresolvedOpError):
                Interpreter(path, plugins=[*BARE, *packages - {package}]).allocate_tensors()


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="pip install -r requirements-dev.txt")
def test_with_the_delegate_that_doctor_names_the_models_can_run() -> None:
    """TensorFlow works in a process of its own."""
    needed = {str(path): [*BARE, *packages] for path in MODELS.values() if "oplet-flex-delegate" in (packages := named(path))}
    assert len(needed) > 10
    done = subprocess.run([sys.executable, "-c", RUN, json.dumps(needed)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
