"""What `oplet select`, `oplet build` and its programs make of real models answers as the full install does, whatever is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.places import REAL

from oplet import Interpreter, PluginManager
from oplet_build.building.build_program import build_program
from oplet_build.building.build_wheel import build_wheel
from oplet_build.selection.needs import needs_of
from oplet_build.selection.providers import find_providers
from oplet_build.selection.resolver_code import resolver_code
from oplet_tools.tuning.random_inputs import random_input

MODELS = (
    "tflm_models/tflm_hello_world_float",
    "tflm_models/tflm_hello_world_int8",
    "tflm_models/tflm_micro_speech_quantized",
    "tflm_models/tflm_keyword_scrambled",
    "tflm_models/tflm_trained_lstm_int8",
    "tflm_models/tflm_mobilenet_v2_quantized_1x3x224x224",
    "mediapipe/mp_face_detection_short_range",
    "mediapipe/mp_selfie_segmentation",
    "mediapipe/mp_hand_landmark_lite",
    "tflm_models/tflm_trained_lstm",
)

#: Runs a model with a plugin, with the resolver of a file, or with whatever `oplet` is found.
RUN = """
import runpy, sys
import numpy as np
from oplet import Interpreter

model, feeds, target, how, name = sys.argv[1:]
assert how != "program" or ".pyz" in sys.modules["oplet"].__file__
options = {"plugin": {"plugins": [name]}, "program": {}, "resolver": {"plugins": []}}[how]
if how == "resolver":
    options["op_resolver"] = runpy.run_path(name)["resolver"]()
interpreter = Interpreter(model, **options)
interpreter.allocate_tensors()
values = np.load(feeds)
for details in interpreter.get_input_details():
    interpreter.set_tensor(details["index"], values[str(details["index"])])
interpreter.invoke()
np.savez(target, *(interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()))
"""


@pytest.mark.sweep
@pytest.mark.skipif(not REAL.exists(), reason="the recorded cases lie outside the project and are not here")
@pytest.mark.parametrize("case", MODELS, ids=lambda case: case.partition("/")[2])
def test_selected_and_built_models_answer_as_the_full_install_does(case: str, tmp_path: Path) -> None:
    group, _, name = case.partition("/")
    with zipfile.ZipFile(REAL / f"{group}.zip") as archive:
        model = Path(archive.extract(f"{name}/model.tflite", tmp_path))
    interpreter = Interpreter(str(model))
    interpreter.allocate_tensors()
    random = np.random.default_rng(0)
    feeds = {str(details["index"]): random_input(details, random) for details in interpreter.get_input_details()}
    np.savez(tmp_path / "feeds.npz", **feeds)
    for index, value in feeds.items():
        interpreter.set_tensor(int(index), value)
    interpreter.invoke()
    wanted = [interpreter.get_tensor(details["index"]) for details in interpreter.get_output_details()]

    (tmp_path / "resolver.py").write_text(resolver_code(find_providers(needs_of([model]), PluginManager())))
    wheel = build_wheel([model], "app_ops", tmp_path / "dist")
    with zipfile.ZipFile(wheel.path) as archive:
        archive.extractall(tmp_path / "site")
    program = build_program([model], "app", tmp_path / "app.pyz", with_models=True)
    assert not any("compiled" in requirement for requirement in (*wheel.requires, *program.requires))

    found = {
        "select": _answers(tmp_path, model, "resolver", str(tmp_path / "resolver.py")),
        "wheel": _answers(tmp_path, model, "plugin", "app-ops", tmp_path / "site"),
        "program": _answers(tmp_path, model, "program", "", tmp_path / "app.pyz"),
    }
    for way, values in found.items():
        assert len(values) == len(wanted)
        for ours, theirs in zip(values, wanted):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), way
            if ours.dtype.kind == "f":
                scale = float(np.abs(theirs).max(initial=0)) or 1.0
                np.testing.assert_allclose(ours / scale, theirs / scale, rtol=0, atol=1e-3, err_msg=way)
            else:
                np.testing.assert_array_equal(ours, theirs, err_msg=way)


def _answers(folder: Path, model: Path, how: str, name: str, site: Path | None = None) -> list[np.ndarray]:
    script, target = folder / "run.py", folder / f"{how}.npz"
    script.write_text(RUN)
    known = dict(os.environ) if site is None else {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, str(script), str(model), str(folder / "feeds.npz"), str(target), how, name]
    ran = subprocess.run(command, env=known, capture_output=True, text=True)
    assert ran.returncode == 0, f"{how}: {ran.stderr}"
    return list(np.load(target).values())
