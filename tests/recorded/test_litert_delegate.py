"""The recorded cases through the litert delegate: what it claims gives LiteRT's numbers, and what it leaves runs as ever."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.places import CONFORMANCE
from tests.recorded_cases import every_group, grader, here, verdicts

import oplet
from oplet import Interpreter, load_delegate

#: Cases that oplet refuses with any delegate and without; docs/numerics.md says why.
REFUSED = ("keras_tf_misc/mirror_pad_dyn", "matrix_band_part/matrix_band_part_008")

pytestmark = [
    pytest.mark.sweep(cases=True),
    here,
]
pytest.importorskip("ai_edge_litert.interpreter")


def with_delegate(**arguments: Any) -> Interpreter:
    """The interpreter that the grader gets."""
    return Interpreter(**arguments, experimental_delegates=[load_delegate("litert")])


@every_group
def test_integers_are_within_one_step_and_floats_within_a_thousandth(group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oplet, "Interpreter", with_delegate)  # which the grader finds by this name
    others = grader().grade
    monkeypatch.setattr(grader(), "grade", lambda got, want, loose: _graded(got, want, others, loose))
    found = [case for case in verdicts(group) if case[1] != "exact" and not case[0].startswith(REFUSED)]
    assert not found, "\n".join(" ".join(case) for case in found)


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
    archive = CONFORMANCE / "real" / "unrunnable.zip"
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
    assert runs == {"litert", "Landmarks2TransformMatrix", "TransformTensorBilinear", "TransformLandmarks"}
    for output in plain.get_output_details():
        wanted = plain.get_tensor(output["index"])
        np.testing.assert_allclose(delegated.get_tensor(output["index"]), wanted, rtol=1e-4, atol=1e-4)
