"""MediaPipe's face model with attention runs, and gives what LiteRT gives whose missing operators are done by the book.

LiteRT's Python package lacks its custom ops. Here it runs the stretches between the custom ops, which a few lines of
float64 stand in for.
"""

from __future__ import annotations

import itertools
import math
import zipfile
from collections.abc import Iterator
from typing import Any

import flatbuffers
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter as LiteRT
from flatbuffers import flexbuffers
from tests.places import REAL

from oplet import Interpreter
from oplet_testing import invoke

ARCHIVE = REAL / "unrunnable.zip"
pytestmark = pytest.mark.skipif(not ARCHIVE.is_file(), reason="the recorded models are not here")


@pytest.fixture(scope="module")
def model() -> bytes:
    with zipfile.ZipFile(ARCHIVE) as file:
        return file.read("mediapipe__mp_face_landmark_with_attention/model.tflite")


def run(content: bytes, feeds: list[Any], runtime: Any = Interpreter) -> dict[int, Any]:
    """Outputs by the tensor's number."""
    interpreter = runtime(model_content=content)
    results = invoke(interpreter, *feeds)
    return {detail["index"]: result for detail, result in zip(interpreter.get_output_details(), results)}


def crop_matrix(options: Any, landmarks: Any) -> Any:
    """Landmarks2TransformMatrix: shift to the box's middle, turn, scale, shift the output's middle to the origin."""
    flat = landmarks[0, :, :2].astype(float)
    dx, dy = flat[options["right_rotation_idx"]] - flat[options["left_rotation_idx"]]
    turn = options["target_rotation_radians"] - math.atan2(dy, dx)
    upright = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    box = flat[options["subset_idxs"]] @ upright.T
    size = np.array([options["output_width"], options["output_height"]])
    scale = np.ptp(box, axis=0) * [options["scale_x"], options["scale_y"]] / size
    matrix = np.eye(4)
    matrix[:2, :2] = upright.T @ np.diag(scale)
    matrix[:2, 3] = upright.T @ (box.max(0) + box.min(0)) / 2 - matrix[:2, :2] @ size / 2
    return matrix[None].astype(np.float32)


def crop(options: Any, image: Any, matrix: Any) -> Any:
    """TransformTensorBilinear: a tent of one pixel around each place in the image."""
    rows, columns = options["output_height"], options["output_width"]
    out = np.zeros((1, rows, columns, image.shape[3]), np.float32)
    for i, j in itertools.product(range(rows), range(columns)):
        x, y = matrix[0, :2].astype(float) @ [j + 0.5, i + 0.5, 0, 1] - 0.5
        if 0 <= x <= image.shape[2] - 1 and 0 <= y <= image.shape[1] - 1:
            down = np.maximum(0, 1 - abs(np.arange(image.shape[1]) - y))
            across = np.maximum(0, 1 - abs(np.arange(image.shape[2]) - x))
            out[0, i, j] = np.einsum("i,j,ijc->c", down, across, image[0])
    return out


def move(_: Any, points: Any, matrix: Any) -> Any:
    """TransformLandmarks."""
    return (points @ matrix[0, :2, :2].T.astype(float) + matrix[0, :2, 3]).astype(np.float32)


RULES = {b"Landmarks2TransformMatrix": crop_matrix, b"TransformTensorBilinear": crop, b"TransformLandmarks": move}


def by_the_book(content: bytes, x: Any) -> dict[int, Any]:
    """Run the model: LiteRT for the stretches between the custom ops, the rules for those."""
    graph = schema.ModelT.InitFromPackedBuf(content, 0).subgraphs[0]
    codes = schema.ModelT.InitFromPackedBuf(content, 0).operatorCodes
    values = {int(graph.inputs[0]): x}
    last_use = {int(i): k for k, op in enumerate(graph.operators) for i in op.inputs}
    last_use.update((int(i), len(graph.operators)) for i in graph.outputs)
    for stretch in stretches(graph.operators, codes):
        custom = codes[graph.operators[stretch[0]].opcodeIndex].customCode
        if custom:
            for op in (graph.operators[k] for k in stretch):
                raw = bytes(op.customOptions) if op.customOptions is not None else b""
                rule = RULES[codes[op.opcodeIndex].customCode]
                given = [values[int(i)] for i in op.inputs]
                values[int(op.outputs[0])] = rule(flexbuffers.Loads(raw) if raw else {}, *given)
            continue
        inner = [graph.operators[k] for k in stretch]
        needed = sorted({int(i) for op in inner for i in op.inputs} & values.keys())
        made = [int(i) for op in inner for i in op.outputs if last_use.get(int(i), -1) > stretch[-1]]
        values.update(run(part(content, stretch, needed, made), [values[i] for i in needed], LiteRT))
    return {int(i): values[int(i)] for i in graph.outputs}


def stretches(operators: Any, codes: Any) -> Iterator[range]:
    """Runs of nodes that are all custom, or all built in."""
    start = 0
    for _, nodes in itertools.groupby(operators, lambda op: bool(codes[op.opcodeIndex].customCode)):
        stop = start + len(list(nodes))
        yield range(start, stop)
        start = stop


def part(content: bytes, stretch: range, inputs: list[int], outputs: list[int]) -> bytes:
    """The model with these nodes alone."""
    model = schema.ModelT.InitFromPackedBuf(content, 0)
    graph = model.subgraphs[0]
    graph.operators = [graph.operators[k] for k in stretch]
    graph.inputs, graph.outputs = np.array(inputs, np.int32), np.array(outputs, np.int32)
    model.signatureDefs = model.metadata = None
    builder = flatbuffers.Builder(len(content))
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


@pytest.mark.sweep
@pytest.mark.parametrize("shift", [0, 25])
def test_it_gives_what_litert_gives_with_its_missing_ops_done_by_the_book(
    shift: int, model: bytes, picture_of_a_person: Any
) -> None:
    x = np.roll(picture_of_a_person(192, 192), (shift, -shift), (1, 2))
    found, expected = run(model, [x]), by_the_book(model, x)
    assert found.keys() == expected.keys()
    assert sorted(values.size for values in found.values()) == [1, 10, 10, 142, 142, 160, 1404]
    for index, values in expected.items():
        np.testing.assert_allclose(found[index], values, rtol=1e-4, atol=2e-3)  # in pixels of 192


@pytest.mark.sweep
def test_parts_of_the_face_lie_where_the_face_does(model: bytes, picture_of_a_person: Any) -> None:
    names = [detail["name"] for detail in Interpreter(model_content=model).get_output_details()]
    found = dict(zip(names, run(model, [picture_of_a_person(192, 192)]).values()))
    mesh = found["output_mesh_identity"].reshape(468, 3)[:, :2]
    size = np.ptp(mesh, axis=0).max()
    # Landmarks of the mesh at the corners of the mouth and of each eye.
    for part, corners in (("output_lips", (61, 291)), ("output_left_eye", (33, 133)), ("output_right_eye", (362, 263))):
        middle = found[part].reshape(-1, 2).mean(0)
        assert np.linalg.norm(middle - mesh[list(corners)].mean(0)) < 0.1 * size, part
    for part, corners in (("output_left_iris", (33, 133)), ("output_right_iris", (362, 263))):
        iris = found[part].reshape(5, 2)
        assert np.linalg.norm(iris[0] - mesh[list(corners)].mean(0)) < 0.1 * size, part
        assert np.linalg.norm(iris[1:].mean(0) - iris[0]) < 0.02 * size, part  # the rim goes around the middle
