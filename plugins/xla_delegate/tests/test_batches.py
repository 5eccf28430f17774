"""Nets of real applications are one function, for one picture and for a batch."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from tests.places import CONFORMANCE
from tests.recorded_cases import here

from oplet import Interpreter, load_delegate
from oplet_testing import invoke

pytestmark = [here, pytest.mark.sweep(cases=True)]


@pytest.mark.parametrize("batch", [1, 64])
@pytest.mark.parametrize("name", ["mp_face_landmark", "mp_face_detection_short_range"])
def test_a_face_net_is_one_function_that_answers_as_the_kernels_do(name: str, batch: int) -> None:
    with zipfile.ZipFile(CONFORMANCE / "real/mediapipe.zip") as archive:
        content = archive.read(f"{name}/model.tflite")
    plain, delegated = (Interpreter(model_content=content, num_threads=2) for _ in range(2))
    shape = [batch, *plain.get_input_details()[0]["shape"][1:]]
    delegated.resize_tensor_input(delegated.get_input_details()[0]["index"], shape)
    delegated.modify_graph_with_delegate(load_delegate("xla", {"device": "cpu"}))
    [report] = delegated.delegation_reports()
    assert len(report.partitions) == 1
    assert set(report.unsupported.values()) == {"its result is constant, nothing needs to run"}
    assert len(report.partitions[0]) + len(report.unsupported) == report.nodes
    picture = np.random.default_rng(0).random(shape, np.float32)
    for ours, wanted in zip(invoke(delegated, picture), invoke(plain, picture, resize=True)):
        np.testing.assert_allclose(ours, wanted, rtol=1e-3, atol=1e-3 * np.abs(wanted).max())


def test_an_int8_net_is_one_function_within_a_few_steps_of_the_kernels() -> None:
    with zipfile.ZipFile(CONFORMANCE / "real/tflm_models.zip") as archive:
        content = archive.read(
            next(name for name in archive.namelist() if "mobilenet_v2_quantized" in name and name.endswith("model.tflite"))
        )
    plain, delegated = (Interpreter(model_content=content, num_threads=2) for _ in range(2))
    delegated.modify_graph_with_delegate(load_delegate("xla", {"device": "cpu", "quantized": 1}))
    [report] = delegated.delegation_reports()
    assert [len(partition) for partition in report.partitions] == [report.nodes]
    picture = np.random.default_rng(0).integers(-128, 127, plain.get_input_details()[0]["shape"], np.int8)
    [ours], [wanted] = invoke(delegated, picture), invoke(plain, picture)
    assert np.abs(ours.astype(int) - wanted).max() <= 8  # steps add up over 84 layers
