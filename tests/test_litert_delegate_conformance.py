"""The recorded cases through the litert delegate: what it claims gives LiteRT's numbers, and what it leaves runs as ever."""

from __future__ import annotations

import importlib.util
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import oplet
from oplet import Interpreter, PluginManager, load_delegate
from oplet.errors import OpletError

CORPUS = Path(__file__).parents[2] / "shared" / "conformance"
GROUPS = sorted(
    p.relative_to(CORPUS) for f in ("ops", "real") for p in (CORPUS / f).glob("*.zip") if p.stem not in ("flex", "unrunnable")
)

#: Cases that oplet refuses with any delegate and without; docs/numerics.md says why.
REFUSED = ("keras_tf_misc/mirror_pad_dyn", "matrix_band_part/matrix_band_part_008")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not GROUPS, reason="the recorded cases lie outside the project and are not here"),
]
pytest.importorskip("ai_edge_litert.interpreter")


def with_delegate(**arguments: Any) -> Interpreter:
    """The interpreter that the grader gets."""
    return Interpreter(**arguments, experimental_delegates=[load_delegate("litert")])


@pytest.fixture(scope="module")
def grader() -> ModuleType:
    """The grader that lies beside the recordings."""
    spec = importlib.util.spec_from_file_location("oplet_recorded_cases", CORPUS / "run.py")
    if spec is None or spec.loader is None:
        pytest.skip("there is no grader beside the recordings")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def served() -> set[str]:
    """The operators that installed packages serve."""
    return {claim.op if isinstance(claim.op, str) else claim.op.name for claim in PluginManager().resolver().claims()}


@pytest.mark.parametrize("group", GROUPS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_integers_are_within_one_step_and_floats_within_a_thousandth(
    group: Path, grader: ModuleType, served: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oplet, "Interpreter", with_delegate)  # which the grader finds by this name
    others = grader.grade
    monkeypatch.setattr(grader, "grade", lambda got, want, loose: _graded(got, want, others, loose))
    path, wrong = CORPUS / group, []
    with zipfile.ZipFile(path) as archive:
        names = sorted({n.rsplit("/", 1)[0] for n in archive.namelist() if n.endswith("case.json")})
        cases = {name: json.loads(archive.read(f"{name}/case.json")) for name in names}
    for name, case in cases.items():
        needed = {op.split(" ")[0].removeprefix("CUSTOM:") for op in case["ops"]}
        if not case["steps"] or not needed <= served or f"{path.stem}/{name}".startswith(REFUSED):
            continue
        try:
            verdict, detail, _ = grader.run_case("oplet:Interpreter", str(path), name)
        except OpletError as error:
            verdict, detail = "error", str(error)
        if verdict != "exact":
            wrong.append(f"{verdict} {name}: {detail}")
    assert not wrong, "\n".join(wrong)


def _graded(got: Any, want: Any, others: Callable[[Any, Any, bool], str], loose: bool) -> str:
    """ "exact" for what the delegate promises of numbers, whatever the grader would ask for."""
    got = np.asarray(got)
    if got.dtype.kind not in "fciu" or (got.shape, got.dtype) != (want.shape, want.dtype):
        return others(got, want, loose)
    if got.dtype.kind in "iu":
        return "exact" if not got.size or np.abs(got.astype(np.int64) - want.astype(np.int64)).max() <= 1 else "wrong"
    finite = np.abs(want[np.isfinite(want)])
    scale = max(1.0, float(finite.max())) if finite.size else 1.0
    return "exact" if np.allclose(got, want, rtol=1e-3, atol=1e-4 * scale, equal_nan=True) else "wrong"


def test_custom_ops_in_python_go_with_everything_else_in_litert() -> None:
    """MediaPipe's face model with attention, which LiteRT's Python package cannot run."""
    archive = CORPUS / "real" / "unrunnable.zip"
    if not archive.is_file():
        pytest.skip("the recorded models are not here")
    with zipfile.ZipFile(archive) as file:
        content = file.read("mediapipe__mp_face_landmark_with_attention/model.tflite")
    delegated, plain = with_delegate(model_content=content), Interpreter(model_content=content)
    [detail] = plain.get_input_details()
    image = np.random.default_rng(1).random(detail["shape"]).astype(np.float32)
    for interpreter in (delegated, plain):
        interpreter.allocate_tensors()
        interpreter.set_tensor(detail["index"], image)
        interpreter.invoke()
    runs = {report.op for report in delegated.explain() if "DEQUANTIZE" not in report.op}  # of constants: they ran before
    assert runs == {"LiteRT", "Landmarks2TransformMatrix", "TransformTensorBilinear", "TransformLandmarks"}
    for output in plain.get_output_details():
        wanted = plain.get_tensor(output["index"])
        np.testing.assert_allclose(delegated.get_tensor(output["index"]), wanted, rtol=1e-4, atol=1e-4)
