"""A model behind Ray Serve: handles and HTTP, batches, refusals, and a free event loop."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

from oplet.errors import ModelError, TensorError
from oplet_testing import Spec, one_op_model

pytest.importorskip("oplet_builtin_ops")
pytest.importorskip("ray.serve")

from oplet_ray import deployment

pytestmark = pytest.mark.environment
ROW = Spec("float32", [1, 3], signature=[-1, 3])
MODEL, OTHER = (one_op_model(op, [ROW], [ROW]) for op in ("RELU", "NEG"))


class Served(NamedTuple):
    handle: Any
    address: str


@pytest.fixture(scope="module")
def served(cluster: Any) -> Iterator[Served]:
    from ray import serve

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    serve.start(http_options={"host": "127.0.0.1", "port": port})
    options = {"ray_actor_options": {"num_cpus": 0.5}}
    handle = serve.run(deployment(MODEL, max_batch_size=8, max_body=1000, options=options), name="m", route_prefix="/m")
    yield Served(handle, f"http://127.0.0.1:{port}/m")
    serve.shutdown()


def posted(served: Served, body: bytes) -> tuple[int, Any]:
    request = urllib.request.Request(served.address, data=body)
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_handles_give_the_outputs_of_a_row(served: Served) -> None:
    waiting = [served.handle.remote(np.array([number, -number, 1], np.float32)) for number in range(40)]
    for number, response in enumerate(waiting):
        [value] = response.result(timeout_s=600).values()
        assert value.tolist() == [number, 0, 1]


def test_a_bad_row_fails_alone(served: Served) -> None:
    waiting = [served.handle.remote(np.zeros(3 + (number == 2), np.float32)) for number in range(5)]
    for number, response in enumerate(waiting):
        if number == 2:
            with pytest.raises(TensorError):
                response.result(timeout_s=600)
        else:
            [value] = response.result(timeout_s=600).values()
            assert value.tolist() == [0, 0, 0]


def test_http_takes_and_gives_json(served: Served) -> None:
    status, answer = posted(served, b'{"input_0": [1, -2, 3]}')
    assert (status, list(answer.values())) == (200, [[1, 0, 3]])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"no json", "The body is no JSON"),
        (b"[1, 2]", "The body must be an object with a row for each of input_0."),
        (b'{"y": [1]}', "The body must be an object with a row for each of input_0."),
        (b'{"input_0": [1, 2]}', "input_0"),
        (b'{"input_0": ["a", 2, 3]}', "The row of 'input_0' is no array of float32"),
        (b'{"input_0": [' + b"1, " * 500 + b"1]}", "The body has more than 1000 bytes"),
    ],
)
def test_what_does_not_fit_is_answered_with_400_and_one_sentence(served: Served, body: bytes, said: str) -> None:
    status, answer = posted(served, body)
    assert status == 400
    assert said in answer["error"]
    assert posted(served, b'{"input_0": [1, -2, 3]}')[0] == 200


def test_wrong_arguments_are_refused_before_anything_is_deployed() -> None:
    with pytest.raises(ModelError):
        deployment(7)  # type: ignore[arg-type]
