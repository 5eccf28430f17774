"""Models that need more than the built-in operators: doctor names the packages to install, and with exactly these the model can run."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from plugins.flex_ops.tests.record.recording import read_calls
from plugins.text_ops.tests import pieces, test_words
from tests.places import ROOT

from oplet import Interpreter, PluginManager
from oplet.errors import UnresolvedOpError
from oplet_tools.describing.doctor import examine

BARE = ["oplet-builtin-ops"]
#: Models that TensorFlow's converter wrote, by the package whose tests recorded them.
FILES = {
    f"{package}/{path.stem}": path
    for package in ("flex_ops", "flex_delegate")
    for path in sorted((ROOT / "plugins" / package / "tests/recorded").glob("*.tflite"))
}
TEXTS = {"text_ops/bert": (test_words, "packed_model"), "text_ops/sentencepiece": (pieces, "preprocessing")}
MODELS = [*FILES, *TEXTS]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the file of a model by its name."""
    folder = tmp_path_factory.mktemp("models")

    def path_of(name: str) -> Path:
        if name in FILES:
            return FILES[name]
        module, key = TEXTS[name]
        path = folder / f"{key}.tflite"
        path.write_bytes(module.recorded()[key].tobytes())
        return path

    return path_of


RUN = """
import json, sys
from oplet import Interpreter
for path, plugins in json.loads(sys.argv[1]).items():
    Interpreter(path, plugins=plugins).allocate_tensors()  # of the file's shapes
"""


def named(path: Path) -> set[str]:
    """The packages that doctor names where the built-in operators alone are installed; each op without a package has one."""
    found = examine(path, PluginManager.named(BARE, "plugins")).operators
    assert all(op.package for op in found if not op.provider), path
    return {op.package for op in found if op.package}


def run_once(interpreter: Interpreter, path: Path) -> None:
    """Run a model on the inputs of its first recorded call; on a text, if it takes texts."""
    calls = read_calls(path.stem, path.parent) if path in FILES.values() else []
    interpreter.get_signature_runner()(**(calls[0].inputs if calls else {"texts": np.array([b"a text"], object)}))


@pytest.mark.parametrize("name", MODELS)
def test_doctor_names_the_packages_with_which_a_model_can_run(name: str, model: Callable[[str], Path]) -> None:
    path = model(name)
    packages = named(path)
    assert packages
    with pytest.raises(UnresolvedOpError) as refused:
        Interpreter(path, plugins=BARE).allocate_tensors()
    assert all(package in str(refused.value) for package in packages)
    if "oplet-flex-delegate" not in packages:
        run_once(Interpreter(path, plugins=[*BARE, *packages]), path)
        for package in packages:
            with pytest.raises(UnresolvedOpError):
                Interpreter(path, plugins=[*BARE, *packages - {package}]).allocate_tensors()


@pytest.mark.sweep
@pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="pip install -r requirements-dev.txt")
def test_with_the_delegate_that_doctor_names_the_models_can_run() -> None:
    """TensorFlow works in a process of its own."""
    needed = {str(path): [*BARE, *packages] for path in FILES.values() if "oplet-flex-delegate" in (packages := named(path))}
    assert len(needed) > 3
    done = subprocess.run([sys.executable, "-c", RUN, json.dumps(needed)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
