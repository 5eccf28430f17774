"""The protocol over gRPC: calls, typed contents, raw bytes, statuses."""

from __future__ import annotations

import grpc
import numpy as np
import pytest
from mlserver.grpc import dataplane_pb2 as pb
from plugins.serve.tests.conftest import TYPES
from plugins.serve.tests.serving import DIGITS, Server, message
from tests.children import LONG

from oplet import Predictor

IMAGES = np.random.default_rng(1).integers(-128, 128, (3, 8, 8, 1), np.int8)


def test_health_and_metadata(server: Server) -> None:
    assert server.call("ServerLive", pb.ServerLiveRequest()).live
    assert server.call("ServerReady", pb.ServerReadyRequest()).ready
    assert server.call("ModelReady", pb.ModelReadyRequest(name="floor")).ready
    assert server.call("ServerMetadata", pb.ServerMetadataRequest()).name == "oplet-serve"
    told = server.call("ModelMetadata", pb.ModelMetadataRequest(name="wide", version="2"))
    assert (told.inputs[0].name, told.inputs[0].datatype, list(told.inputs[0].shape)) == ("x", "FP32", [-1, 5])
    assert server.call("ModelMetadata", pb.ModelMetadataRequest(name="two@up")).parameters["signature"].string_param == "up"
    names = {model.name for model in server.call("RepositoryIndex", pb.RepositoryIndexRequest()).models}
    assert {"floor", "two@up", "wide"} <= names


@pytest.mark.parametrize("raw", [True, False])
def test_answers_are_the_predictor_s(server: Server, raw: bool) -> None:
    wanted = Predictor(DIGITS / "digits_int8.tflite")(IMAGES)["probabilities"]
    told = server.call("ModelInfer", message("digits_int8", "image", "INT8", IMAGES, raw))
    assert list(told.outputs[0].shape) == [3, 10]
    assert bool(told.raw_output_contents) == raw
    found = np.frombuffer(told.raw_output_contents[0], np.int8) if raw else np.array(told.outputs[0].contents.int_contents)
    assert np.array_equal(found.reshape(3, 10), wanted)


@pytest.mark.parametrize("datatype", TYPES)
def test_every_type_comes_back_raw(server: Server, datatype: str) -> None:
    dtype = np.dtype(TYPES[datatype])
    made = pb.ModelInferRequest(model_name=f"mirror_{datatype}", id="7")
    made.inputs.add(name="x", datatype=datatype, shape=[1, 4])
    data = b"\1\0\0\0a\0\0\0\0\2\0\0\0\xff\xfe\0\0\0\0" if datatype == "BYTES" else np.array([0, 1, 1, 0]).astype(dtype).tobytes()
    made.raw_input_contents.append(data)
    told = server.call("ModelInfer", made)
    assert (told.id, told.outputs[0].datatype, told.raw_output_contents[0]) == ("7", datatype, data)


def test_a_stream_gives_an_answer_for_each_request(server: Server) -> None:
    requests = [message("floor", "x", "FP32", np.full((1, 4), value, np.float32)) for value in (1.5, 2.5)]
    told = list(server.stub.ModelStreamInfer(iter(requests), timeout=LONG))
    assert [np.frombuffer(each.raw_output_contents[0], np.float32)[0] for each in told] == [1, 2]


ROW = np.ones((1, 4), np.float32)


@pytest.mark.parametrize(
    ("request_", "code", "told"),
    [
        (message("nope", "x", "FP32", ROW), "NOT_FOUND", "Model nope not found"),
        (message("wide", "x", "FP32", ROW, version="3"), "NOT_FOUND", "version 3"),
        (message("floor", "z", "FP32", ROW), "INVALID_ARGUMENT", "has no input 'z'"),
        (message("floor", "x", "INT8", ROW), "INVALID_ARGUMENT", "it takes FP32"),
        (message("floor", "x", "FP32", ROW[:, :3]), "INVALID_ARGUMENT", "the shape is [1, 3]"),
        (message("floor", "x", "FP32", np.ones((3000, 4), np.float32)), "RESOURCE_EXHAUSTED", "3000 rows"),
        (message("floor", "x", "FP32", np.ones((30000, 4), np.float32)), "RESOURCE_EXHAUSTED", "larger than max"),
        (pb.ModelInferRequest(model_name="floor"), "INVALID_ARGUMENT", "no 'inputs'"),
    ],
)
def test_bad_requests(server: Server, request_: pb.ModelInferRequest, code: str, told: str) -> None:
    error = server.call("ModelInfer", request_)
    assert isinstance(error, grpc.RpcError)
    assert error.code().name == code
    assert told in error.details()


def test_clients_load_and_unload_nothing(server: Server) -> None:
    for method, kind in (
        ("RepositoryModelLoad", pb.RepositoryModelLoadRequest),
        ("RepositoryModelUnload", pb.RepositoryModelUnloadRequest),
    ):
        error = server.call(method, kind(model_name="floor"))
        assert error.code().name == "UNIMPLEMENTED"
    assert server.call("ModelReady", pb.ModelReadyRequest(name="floor")).ready
