"""ai-edge-quantizer quantizes and calibrates where LiteRT is not installed, on the shim: the models are those that it makes with LiteRT."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

import pytest
from tests.children import run_child
from tests.places import ROOT
from tests.upstream.stand_ins import MODELS

NEEDED = ("ai_edge_quantizer", "ai_edge_litert", "oplet_litert_shim")

pytestmark = [
    pytest.mark.sweep,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in NEEDED), reason="pip install -r requirements-tensorflow.txt"
    ),
]

WITHOUT = """
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] == "ai_edge_litert" else PathFinder.find_spec(name, path, target)
sys.meta_path = [Without if finder is PathFinder else finder for finder in sys.meta_path]
import oplet_litert_shim
oplet_litert_shim.install()
"""
QUANTIZE = """
import hashlib, sys
import numpy as np
import ai_edge_litert.interpreter
from ai_edge_quantizer import quantizer, recipe
random = np.random.default_rng(0)
samples = [{"conv2d_input": random.uniform(0, 1, (1, 28, 28, 1)).astype(np.float32)} for _ in range(4)]
for made in (recipe.dynamic_wi8_afp32(), recipe.static_wi8_ai8()):
    quantize = quantizer.Quantizer(sys.argv[1])
    quantize.load_quantization_recipe(made)
    calibrated = quantize.calibrate({"serving_default": samples}) if quantize.need_calibration else None
    print("MADE", hashlib.sha256(bytes(quantize.quantize(calibrated).quantized_model)).hexdigest())
print("BY", ai_edge_litert.interpreter.Interpreter.__module__.partition(".")[0])
"""


def quantized(model: Path, *, litert: bool) -> tuple[list[str], str]:
    """The digests of the models that a process makes of one, and whose interpreter it used."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = run_child([sys.executable, "-c", ("" if litert else WITHOUT) + QUANTIZE, model], env=environment)
    lines = [line.split() for line in done.stdout.splitlines()]
    [by] = [line[1] for line in lines if line[:1] == ["BY"]]
    return [line[1] for line in lines if line[:1] == ["MADE"]], by


def test_the_models_are_byte_for_byte_those_made_with_litert(tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    MODELS["conv_fc_mnist"]().save(path)
    theirs, litert = quantized(path, litert=True)
    ours, oplet = quantized(path, litert=False)
    assert (litert, oplet) == ("ai_edge_litert", "oplet")
    assert len(ours) == 2
    assert ours == theirs
