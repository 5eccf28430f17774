"""`oplet compare` with its defaults on real models: LiteRT and OpenVINO pass, a CONV_2D that is off by one in a hundred does not."""

from __future__ import annotations

import itertools
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plugins.tools.tests.comparing.spoiling import Spoiling
from tests.kinds import part
from tests.places import REAL
from tests.recorded_cases import here

from oplet import PluginManager
from oplet.errors import OpletError
from oplet_testing import WrappingDelegate
from oplet_tools.comparing.compare import Comparison, compare_model
from oplet_tools.comparing.interpreters import InterpreterPair, open_pair

pytestmark = here

#: Models with convolutions: deep with float16 weights, deep with integers, and single layers.
WITH_CONVOLUTIONS = {
    "mp_face_detection_short_range": "mediapipe",
    "mp_hand_landmark_lite": "mediapipe",
    "quant_single_conv_weights_min_0_max_plus_10": "litert_converter",
    "tflm_mobilenet_v2_quantized_1x3x224x224": "tflm_models",
    "seanet_conv1": "tflm_seanet",
}
#: Its node works for minutes on a gigabyte.
HUGE = "conv_huge_im2col"
#: Groups whose cases have the same models as others.
SAME = ("unrunnable", "tflm_seanet_golden")


def only_convolutions() -> list[WrappingDelegate]:
    return [Spoiling({"claims": "CONV_2D", "op": "CONV_2D", "by": 1.01})]


def everything() -> list[WrappingDelegate]:
    return [Spoiling({"op": "CONV_2D", "by": 1.01})]


def model_file(folder: Path, name: str, group: str) -> Path:
    path = folder / f"{name}.tflite"
    if not path.exists():
        with zipfile.ZipFile(REAL / f"{group}.zip") as archive:
            path.write_bytes(archive.read(f"{name}/model.tflite"))
    return path


@pytest.mark.sweep
@pytest.mark.parametrize("claimed", [only_convolutions, everything])
@pytest.mark.parametrize("name", WITH_CONVOLUTIONS)
def test_a_convolution_that_is_off_by_one_in_a_hundred_fails_and_is_named(tmp_path: Path, name: str, claimed: Any) -> None:
    path = model_file(tmp_path, name, WITH_CONVOLUTIONS[name])
    result = compare_model(InterpreterPair(path, claimed, True), runs=1, bisect=True)
    assert result.partitions
    assert not result.passed
    assert result.bisection is not None
    assert (result.bisection.how, result.bisection.first and result.bisection.first.op) == ("alone", "CONV_2D")


#: Of all models one in so many is run; OPLET_EVERY_MODEL runs all of them, which takes a quarter of an hour.
EVERY = 1 if os.environ.get("OPLET_EVERY_MODEL") else 4


def real_models() -> Iterator[tuple[str, bytes]]:
    """The models of this run's part; of all, one in so many."""
    if part().whole:
        yield from itertools.islice(_all_models(), 0, None, EVERY)
    else:
        yield from part().among(_all_models(), lambda model: model[0])


def _all_models() -> Iterator[tuple[str, bytes]]:
    seen = set()
    for path in sorted(REAL.glob("*.zip")):
        if path.stem in SAME:
            continue
        with zipfile.ZipFile(path) as archive:
            for name in sorted({n.rsplit("/", 1)[0] for n in archive.namelist() if n.endswith("model.tflite")}):
                content = archive.read(f"{name}/model.tflite")
                if name != HUGE and content not in seen:
                    seen.add(content)
                    yield name, content


@pytest.mark.sweep(cases=True)
@pytest.mark.parametrize("engine", ["litert", "openvino"])
def test_an_engine_passes_on_every_real_model_that_it_claims(tmp_path: Path, engine: str) -> None:
    pytest.importorskip(f"oplet_{engine}_delegate")
    pytest.importorskip({"litert": "ai_edge_litert.interpreter", "openvino": "openvino"}[engine])
    plugins = PluginManager()
    claimed, wrong = 0, []
    for name, content in real_models():
        path = tmp_path / "model.tflite"
        path.write_bytes(content)
        sides, _ = open_pair(path, [engine], plugins)
        try:
            result = compare_model(sides, runs=1)
        except OpletError as error:
            # Random indices that lie outside; a shape that the built-in kernels refuse as well.
            if name not in ("simple_scatter_nd_op", "seanet_transpose_conv0"):
                wrong.append((name, str(error)[:300]))
            continue
        claimed += not result.trivial
        if not result.passed:
            wrong.append((name, _failed(result)))
    assert not wrong
    assert claimed > (40 // EVERY if part().whole else part().least(40))


def _failed(result: Comparison) -> str:
    outputs = [f"{layer.name}: {layer.difference}" for layer in result.outputs if not layer.difference.passed]
    return "; ".join([*outputs, *(f"{entry}: {entry.difference}" for entry in result.departing)])[:1000]
