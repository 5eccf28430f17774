"""The protocol over HTTP: paths, types, shapes, versions, signatures and the binary extension."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np
import pytest
from plugins.serve.tests.conftest import TYPES
from plugins.serve.tests.serving import DIGITS, Server

from oplet import Predictor

IMAGES = np.random.default_rng(0).integers(-128, 128, (5, 8, 8, 1), np.int8)


def one(name: str, datatype: str, array: Any, shape: list[int] | None = None) -> dict[str, Any]:
    data = np.asarray(array)
    return {
        "name": name,
        "datatype": datatype,
        "shape": list(data.shape) if shape is None else shape,
        "data": data.reshape(-1).tolist(),
    }


def test_health_and_the_server_s_name(server: Server) -> None:
    assert server.ask("GET", "/v2/health/live") == (200, {"live": True})
    assert server.ask("GET", "/v2/health/ready") == (200, {"ready": True})
    assert server.ask("GET", "/v2/models/floor/ready") == (200, {"name": "floor", "ready": True})
    status, told = server.ask("GET", "/v2")
    assert status == 200
    assert told["name"] == "oplet-serve"
    assert told["extensions"] == ["binary_tensor_data"]


def test_metadata_has_the_model_s_names_types_and_shapes(server: Server) -> None:
    status, told = server.ask("GET", "/v2/models/digits_int8")
    assert status == 200
    assert told["inputs"] == [{"name": "image", "datatype": "INT8", "shape": [-1, 8, 8, 1]}]
    assert told["outputs"] == [{"name": "probabilities", "datatype": "INT8", "shape": [-1, 10]}]
    assert server.ask("GET", "/v2/models/free")[1]["inputs"][0]["shape"] == [-1, -1]
    assert server.ask("GET", "/v2/models/flat")[1]["inputs"][0]["shape"] == [3]
    assert server.ask("GET", "/v2/models/mirror_BF16")[1]["outputs"][0]["datatype"] == "BF16"


def test_answers_are_the_predictor_s(server: Server) -> None:
    wanted = Predictor(DIGITS / "digits_int8.tflite")(IMAGES)["probabilities"]
    status, told = server.infer("digits_int8", id="seven", inputs=[one("image", "INT8", IMAGES)])
    assert status == 200
    assert (told["model_name"], told["id"]) == ("digits_int8", "seven")
    [output] = told["outputs"]
    assert (output["name"], output["datatype"], output["shape"]) == ("probabilities", "INT8", [5, 10])
    assert np.array_equal(np.reshape(output["data"], (5, 10)), wanted)
    nested = {"name": "image", "datatype": "INT8", "shape": [5, 8, 8, 1], "data": IMAGES.tolist()}
    assert server.infer("digits_int8", inputs=[nested])[1]["outputs"] == told["outputs"]
    named = server.infer("digits_int8", inputs=[nested], outputs=[{"name": "probabilities"}])
    assert named[1]["outputs"] == told["outputs"]


VALUES: dict[str, list[Any]] = {
    "BOOL": [True, False, False, True],
    "UINT64": [0, 1, 2**63, 2**64 - 1],
    "INT64": [-(2**63), -1, 0, 2**63 - 1],
    "INT8": [-128, -1, 0, 127],
    "FP16": [0.5, -2.0, 65504.0, 0.0],
    "BF16": [0.5, -2.0, 128.0, 0.0],
    "FP32": [0.5, -2.25, 1e30, 0.0],
    "FP64": [0.1, -2.25, 1e300, 0.0],
    "BYTES": ["", "text", "zwölf", "\x00"],
}


@pytest.mark.parametrize("datatype", TYPES)
def test_every_type_comes_back_as_it_went(server: Server, datatype: str) -> None:
    values = VALUES.get(datatype, [0, 1, 2, 100])
    tensor = {"name": "x", "datatype": datatype, "shape": [1, 4], "data": values}
    status, told = server.infer(f"mirror_{datatype}", inputs=[tensor])
    assert status == 200, told
    assert told["outputs"] == [{"name": "y", "datatype": datatype, "shape": [1, 4], "data": values}]


def test_bytes_that_are_no_utf_8_travel_in_base64(server: Server) -> None:
    data = ["AA==", "/w==", "", "YWJj"]
    tensor = {"name": "x", "datatype": "BYTES", "shape": [1, 4], "data": data, "parameters": {"content_type": "base64"}}
    output = server.infer("mirror_BYTES", inputs=[tensor])[1]["outputs"][0]
    assert (output["data"], output["parameters"]) == (data, {"content_type": "base64"})


def test_raw_tensors_behind_the_json(server: Server) -> None:
    array = np.array([[1.5, -0.5, 7.25, 2]], np.float32)
    head = {
        "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "parameters": {"binary_data_size": 16}}],
        "outputs": [{"name": "y", "parameters": {"binary_data": True}}],
    }
    text = json.dumps(head).encode()
    headers = {"Inference-Header-Content-Length": str(len(text))}
    status, body = server.ask("POST", "/v2/models/floor/infer", text + array.tobytes(), headers)
    assert status == 200
    length = int(server.headers["inference-header-content-length"])
    told = json.loads(body[:length])
    assert told["outputs"] == [{"name": "y", "datatype": "FP32", "shape": [1, 4], "parameters": {"binary_data_size": 16}}]
    assert np.frombuffer(body[length:], np.float32).tolist() == [1, -1, 7, 2]


def test_compressed_requests(server: Server) -> None:
    body = gzip.compress(json.dumps({"inputs": [one("x", "FP32", [[1.5, 2, 3, 4]])]}).encode())
    status, told = server.ask("POST", "/v2/models/floor/infer", body, {"Content-Encoding": "gzip"})
    assert (status, told["outputs"][0]["data"]) == (200, [1, 2, 3, 4])


def test_free_dimensions_and_models_without_rows(server: Server) -> None:
    for width in (3, 6):
        told = server.infer("free", inputs=[one("x", "FP32", np.full((2, width), 1.5))])[1]
        assert told["outputs"][0]["shape"] == [2, width]
    status, told = server.infer("flat", inputs=[one("x", "FP32", [1.5, 2.5, 3.5])])
    assert (status, told["outputs"][0]["shape"], told["outputs"][0]["data"]) == (200, [3], [1, 2, 3])
    status, told = server.infer("floor", inputs=[one("x", "FP32", np.empty((0, 4)))])
    assert (status, told["outputs"][0]["shape"]) == (200, [0, 4])


def test_versions_and_signatures_have_paths(server: Server) -> None:
    for version, size in (("1", 2), ("2", 5), ("10", 7)):
        told = server.ask("GET", f"/v2/models/wide/versions/{version}")[1]
        assert (told["versions"], told["inputs"][0]["shape"]) == ([version], [-1, size])
        tensor = one("x", "FP32", np.full((1, size), 1.5))
        status, told = server.ask("POST", f"/v2/models/wide/versions/{version}/infer", {"inputs": [tensor]})
        assert (status, told["model_version"]) == (200, version)
    assert server.ask("GET", "/v2/models/wide")[1]["versions"] == ["10"]
    for key, wanted in (("down", [1, 2]), ("up", [2, 3])):
        status, told = server.infer(f"two@{key}", inputs=[one("a", "FP32", [[1.5, 2.5]])])
        assert (status, told["outputs"][0]["name"], told["outputs"][0]["data"]) == (200, "b", wanted)
        assert server.ask("GET", f"/v2/models/two@{key}")[1]["parameters"] == {"signature": key}
    index = server.ask("POST", "/v2/repository/index", {})[1]
    assert {("wide", "10"), ("two@up", None)} <= {(each["name"], each.get("version")) for each in index}


def test_metrics(server: Server) -> None:
    server.infer("floor", inputs=[one("x", "FP32", [[1.5, 2, 3, 4]])])
    server.infer("nobody-knows-this", inputs=[one("x", "FP32", [[1.5, 2, 3, 4]])])
    status, text = server.ask("GET", "/metrics", port=server.metrics_port)
    assert status == 200
    told = text.decode()
    for wanted in (
        'model_infer_request_success_total{model="floor"',
        'oplet_requests_in_queue{model="floor"} 0.0',
        "rest_server_requests_total",
    ):
        assert wanted in told
    assert "nobody-knows-this" not in told
