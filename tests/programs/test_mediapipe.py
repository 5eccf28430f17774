"""MediaPipe gives its models the pixels that `oplet run` gives them: a model that hands its picture on as an embedding tells.

The environment is that of `test_programs`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from oplet import Model, ModelBuilder
from oplet_tools.metadata.tables import (
    ColorSpaceType,
    Content,
    ImageProperties,
    ModelMetadata,
    NormalizationOptions,
    ProcessUnit,
    SubGraphMetadata,
    TensorMetadata,
)
from oplet_tools.metadata.writing import with_metadata

PYTHON = os.environ.get("OPLET_PROGRAMS", "")
CHILD = Path(__file__).with_name("mediapipe_child.py")

pytestmark = [
    pytest.mark.environment,
    pytest.mark.skipif(not PYTHON, reason="sh scripts/programs.sh FOLDER, then set OPLET_PROGRAMS"),
]


def embedder(height: int, width: int, mean: float, std: float) -> bytes:
    """A model that gives its picture as one vector."""
    builder = ModelBuilder()
    main = builder.add_subgraph("main")
    shape = np.array([1, height * width * 3], np.int32)
    image = main.add_tensor("image", "float32", [1, height, width, 3])
    flat = main.add_tensor("embedding", "float32", shape.tolist())
    main.add_operator("RESHAPE", [image, main.add_tensor("shape", "int32", [2], data=shape)], [flat])
    main.set_inputs(image)
    main.set_outputs(flat)
    units = [ProcessUnit(options=NormalizationOptions(mean=[mean], std=[std]))]
    into = TensorMetadata(
        name="image", content=Content(content_properties=ImageProperties(color_space=ColorSpaceType.RGB)), process_units=units
    )
    graph = SubGraphMetadata(input_tensor_metadata=[into], output_tensor_metadata=[TensorMetadata(name="embedding")])
    return with_metadata(Model.from_bytes(builder.to_bytes()), tables=ModelMetadata(name="picture", subgraph_metadata=[graph]))


@pytest.mark.parametrize("size", [(64, 64), (260, 300), (130, 182), (31, 200)])
@pytest.mark.parametrize(("mean", "std"), [(0, 1), (127.5, 127.5)])
def test_mediapipe_s_pixels_are_those_of_oplet_run(size: tuple[int, int], mean: float, std: float, tmp_path: Path) -> None:
    picture, model = tmp_path / "p.png", tmp_path / "m.tflite"
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (130, 182, 3)).astype(np.uint8)).save(picture)
    model.write_bytes(embedder(*size, mean, std))
    for command in (
        [PYTHON, CHILD, model, picture, tmp_path / "theirs.npy"],
        [sys.executable, "-m", "oplet", "run", model, "-i", picture, "-o", tmp_path / "ours.npz"],
    ):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
    with np.load(tmp_path / "ours.npz") as ours:
        assert np.abs(ours["embedding"][0] - np.load(tmp_path / "theirs.npy")).max() <= 1e-6
