"""Requests of strangers: whatever comes, the answer is the client's fault in one sentence, and the server goes on."""

from __future__ import annotations

import copy
import gzip
import json
from typing import Any

import grpc
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mlserver.grpc import dataplane_pb2 as pb
from plugins.serve.tests.serving import Server, message
from tests.budgets import examples
from tests.children import LONG

GOOD: dict[str, Any] = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}


def changed(**tensor: Any) -> dict[str, Any]:
    made = copy.deepcopy(GOOD)
    made["inputs"][0].update(tensor)
    return made


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"", 400, "no JSON"),
        (b"{", 400, "no JSON"),
        (b"\xff\xfe", 400, "no JSON"),
        (b"[" * 50_000, 400, "no JSON"),
        (b"[]", 400, "The request is no JSON object"),
        ({}, 400, "no 'inputs'"),
        ({"inputs": 7}, 400, "no 'inputs'"),
        ({"inputs": [7]}, 400, "Input 0 is no JSON object"),
        (GOOD | {"id": 7}, 400, "'id' is no string"),
        (GOOD | {"outputs": 7}, 400, "'outputs' is no list"),
        (GOOD | {"outputs": [{"name": "z"}]}, 400, "has no output 'z'; its outputs are 'y'"),
        (GOOD | {"parameters": 7}, 400, "'parameters' of the request is no JSON object"),
        ({"inputs": GOOD["inputs"] * 2}, 400, "has 2 inputs, and the model has 1"),
        (changed(name="z"), 400, "has no input 'z'; its inputs are 'x'"),
        (changed(name=None), 400, "Input 0 has no 'name'"),
        (changed(datatype="INT8"), 400, "the datatype is 'INT8', but it takes FP32"),
        (changed(datatype="FP31"), 400, "the datatype is 'FP31'"),
        (changed(datatype=None), 400, "the datatype is None"),
        (changed(shape=[4]), 400, "the shape is [4], but it takes [-1, 4], where -1 may be any size"),
        (changed(shape=[2, 4]), 400, "4 elements were given, but the shape [2, 4] has 8"),
        (changed(shape=[1 << 62, 4]), 400, "4 elements were given"),
        (changed(shape=[-1, 4]), 400, "something else than sizes"),
        (changed(shape=[True, 4]), 400, "something else than sizes"),
        (changed(shape=[1.5, 4]), 400, "something else than sizes"),
        (changed(shape="14"), 400, "'shape' is no list"),
        (changed(shape=[1] * 100), 400, "at most 32 sizes"),
        (changed(data=None), 400, "'data' is missing"),
        (changed(data="1234"), 400, "'data' is missing or no list"),
        (changed(data=["1", "2", "3", "4"]), 400, "an element is not a number"),
        (changed(data=[1, 2, 3, None]), 400, "an element is not a number"),
        (changed(data=[1, 2, 3, [4]]), 400, "form no array"),
        (changed(data=[[1, 2], [3, 4]]), 400, "nested as [2, 2]"),
        (changed(data=[1, 2, 3, 1e300]), 400, "1e+300 is beyond FP32"),
        (changed(data=[1, 2, 3, 10**400]), 400, ""),
        (changed(parameters={"binary_data_size": 16}), 400, "binary_data_size"),
        (changed(shape=[2001, 4], data=[0] * 8004), 413, "2001 rows"),
        (changed(data=[1] * 60_000), 413, "larger than 100000 bytes"),
    ],
)
def test_bad_bodies(server: Server, body: Any, status: int, told: str) -> None:
    found, answer = server.ask("POST", "/v2/models/floor/infer", body)
    assert found == status, answer
    assert told in answer["error"]
    assert "\n" not in answer["error"]
    assert server.infer("floor", **GOOD)[0] == 200


@pytest.mark.parametrize(
    ("model", "tensor", "told"),
    [
        ("mirror_INT8", {"datatype": "INT8", "data": [1, 2, 3, 128]}, "128 is beyond INT8"),
        ("mirror_UINT64", {"datatype": "UINT64", "data": [1, 2, 3, -1]}, "beyond UINT64"),
        ("mirror_INT32", {"datatype": "INT32", "data": [1, 2, 3, 4.5]}, "not a whole number"),
        ("mirror_BOOL", {"datatype": "BOOL", "data": [1, 0, 1, 0]}, "not a truth value"),
        ("mirror_BYTES", {"datatype": "BYTES", "data": ["a", "b", "c", 4]}, "no text"),
        ("mirror_BYTES", {"datatype": "BYTES", "data": ["a"] * 4, "parameters": {"content_type": "base64"}}, "no base64"),
    ],
)
def test_bad_elements(server: Server, model: str, tensor: dict[str, Any], told: str) -> None:
    status, answer = server.infer(model, inputs=[{"name": "x", "shape": [1, 4], **tensor}])
    assert (status, told in answer["error"]) == (400, True), answer


def test_bad_paths_and_methods(server: Server) -> None:
    for method, path, status in (
        ("POST", "/v2/models/nope/infer", 404),
        ("POST", "/v2/models/wide/versions/3/infer", 404),
        ("GET", "/v2/models/..%2f..%2fetc%2fpasswd", 404),
        ("GET", "/v2/models/%00", 404),
        ("GET", "/", 404),
        ("GET", "/v2/", 404),
        ("GET", "/v2/models/floor/infer", 405),
        ("POST", "/v2/repository/models/floor/unload", 404),
    ):
        found, answer = server.ask(method, path, GOOD if method == "POST" else None)
        assert (found, list(answer)) == (status, ["error"]), path


@pytest.mark.parametrize("host", ["[", "[::1", "x:y:z", ""])
def test_a_host_that_is_none_harms_nobody(server: Server, host: str) -> None:
    assert server.ask("GET", "/v2", headers={"Host": host})[0] == 200


@pytest.mark.parametrize("member", ["data", "datatype", "shape", "parameters"])
@pytest.mark.parametrize("depth", [500, 900, 1000, 1020])
def test_nesting_as_deep_as_it_can_be_parsed(server: Server, member: str, depth: int) -> None:
    tensor = {"name": '"x"', "datatype": '"FP32"', "shape": "[1, 4]", "data": "[1, 2, 3, 4]"}
    tensor[member] = "[1, " + "[" * depth + "]" * depth + "]"
    text = ", ".join(f'"{name}": {value}' for name, value in tensor.items())
    status, answer = server.ask("POST", "/v2/models/floor/infer", f'{{"inputs": [{{{text}}}]}}'.encode())
    assert (status, list(answer)) == (400, ["error"])


def test_compressed_bodies_that_are_large_or_broken(server: Server) -> None:
    def ask(body: bytes, encoding: str = "gzip") -> tuple[int, Any]:
        return server.ask("POST", "/v2/models/floor/infer", body, {"Content-Encoding": encoding})

    assert ask(gzip.compress(b" " * 50_000_000))[0] == 413
    for body in (b"abc", gzip.compress(json.dumps(GOOD).encode())[:-9], gzip.compress(b"{}") + b"more"):
        assert ask(body)[0] == 400
    assert "encoding 'br' is not known" in ask(b"abc", "br")[1]["error"]


@pytest.mark.parametrize("length", ["-1", "x", "1e3", "99999999", "9" * 400, "٣"])
def test_bad_lengths_of_the_json(server: Server, length: str) -> None:
    headers = {"Inference-Header-Content-Length": length.encode().decode("latin-1")}
    assert server.ask("POST", "/v2/models/floor/infer", GOOD, headers)[0] == 400


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["FP32", "x", "BYTES"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["name", "data", "shape", "parameters", "id"]), inner, max_size=3)
    ),
    max_leaves=6,
)
PLACES = st.sampled_from(
    [("inputs",), ("id",), ("outputs",), ("parameters",)]
    + [("inputs", 0), *(("inputs", 0, key) for key in ("name", "datatype", "shape", "data", "parameters"))]
    + [("inputs", 0, "data", 1), ("inputs", 0, "shape", 0)]
)
QUIET = settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@QUIET
@given(
    changes=st.lists(st.tuples(PLACES, JSON), min_size=1, max_size=3),
    model=st.sampled_from(["floor", "free", "flat", "mirror_BYTES", "mirror_INT8"]),
)
def test_changed_requests(server: Server, changes: list[tuple[tuple[Any, ...], Any]], model: str) -> None:
    body: Any = copy.deepcopy(GOOD)
    for place, value in changes:
        at = body
        try:
            for key in place[:-1]:
                at = at[key]
            at[place[-1]] = value
        except (KeyError, IndexError, TypeError):
            continue
    status, answer = server.infer(model, **body)
    assert status == 200 or (400 <= status < 500 and set(answer) == {"error"}), (status, answer)
    assert server.process.poll() is None


@QUIET
@given(place=st.integers(0, 200), junk=st.binary(max_size=6), cut=st.integers(0, 6))
def test_changed_bytes(server: Server, place: int, junk: bytes, cut: int) -> None:
    body = json.dumps(GOOD).encode()
    body = body[:place] + junk + body[place + cut :]
    status, answer = server.ask("POST", "/v2/models/floor/infer", body)
    assert status == 200 or (400 <= status < 500 and set(answer) == {"error"}), (status, answer)


CODES = {"INVALID_ARGUMENT", "NOT_FOUND", "RESOURCE_EXHAUSTED"}


@QUIET
@given(
    name=st.sampled_from(["floor", "free", "flat", "mirror_FP16", "mirror_BYTES", "nope", ""]),
    datatype=st.sampled_from(["FP32", "FP16", "BYTES", "INT8", "", "x"]),
    shape=st.lists(st.integers(-3, 5) | st.sampled_from([2**62, -(2**63)]), max_size=4),
    raw=st.none() | st.lists(st.binary(max_size=40), min_size=1, max_size=2),
    floats=st.lists(st.floats(width=32), max_size=8),
    whole=st.lists(st.integers(-128, 300), max_size=3),
)
def test_changed_messages(
    server: Server, name: str, datatype: str, shape: list[int], raw: Any, floats: list[float], whole: list[int]
) -> None:
    made = pb.ModelInferRequest(model_name=name)
    tensor = made.inputs.add(name="x", datatype=datatype, shape=shape)
    tensor.contents.fp32_contents.extend(floats)
    tensor.contents.int_contents.extend(whole)
    made.raw_input_contents.extend(raw or [])
    answer = server.call("ModelInfer", made)
    assert not isinstance(answer, grpc.RpcError) or (answer.code().name in CODES and answer.details()), answer


def test_bytes_that_are_no_message(server: Server) -> None:
    call = server.channel.unary_unary("/inference.GRPCInferenceService/ModelInfer")
    for data in (
        b"\xff" * 50,
        b"\x0a\xff\xff\xff\xff\x0f",
        message("floor", "x", "FP32", np.ones((1, 4), np.float32)).SerializeToString()[:-3],
    ):
        with pytest.raises(grpc.RpcError) as caught:
            call(data, timeout=LONG)
        assert caught.value.code().name == "INVALID_ARGUMENT"
    stream = server.channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
    with pytest.raises(grpc.RpcError) as caught:
        list(stream(iter([b"\xff" * 50]), timeout=LONG))
    assert caught.value.code().name == "INVALID_ARGUMENT"
    with pytest.raises(grpc.RpcError) as caught:  # names and versions are short
        server.channel.unary_unary("/inference.GRPCInferenceService/RepositoryModelLoad")(b"\x1a\x00" * 40_000, timeout=LONG)
    assert caught.value.code().name == "INVALID_ARGUMENT"
    assert server.call("ServerLive", pb.ServerLiveRequest()).live
