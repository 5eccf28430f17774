"""Requests that are small for what they would make are refused before it is made, by a server that has little memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from mlserver import ModelSettings
from mlserver.settings import ModelParameters
from plugins.serve.tests.floods import CODES, REST, RPC, ask_rest, ask_rpc, models
from plugins.serve.tests.models import mirror
from plugins.serve.tests.serving import Server, message, served

from oplet_serve.refusals import LARGE, Refusal
from oplet_serve.runtime import ArrayRequest, OpletRuntime

pytestmark = pytest.mark.environment
#: Beyond what the server has after its imports: the threads' stacks are in it too.
SPACE = 1 << 30


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server."""
    with served(
        models(tmp_path_factory.mktemp("models")), "--workers", 2, "--max-request-bytes", 32 << 20, space=SPACE
    ) as server:
        yield server


@pytest.mark.parametrize("name", REST)
def test_over_http(limited: Server, name: str) -> None:
    _, _, status, told = flood = REST[name]
    found, text = ask_rest(limited, flood)
    assert (found, told in text) == (status, True), text
    row = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
    assert limited.infer("floor", inputs=[row])[0] == 200


@pytest.mark.parametrize("name", RPC)
def test_over_grpc(limited: Server, name: str) -> None:
    _, _, status, told = flood = RPC[name]
    found, text = ask_rpc(limited, flood)
    assert (found, told in text) == (CODES[status], True), text
    rows = np.array([[1.5, 2.5, 3.5, 4.5]], np.float32)
    answer = limited.call("ModelInfer", message("floor", "x", "FP32", rows))
    assert np.frombuffer(answer.raw_output_contents[0], np.float32).tolist() == [1, 2, 3, 4]


def test_large_requests_that_fit_are_answered(limited: Server) -> None:
    values = np.arange(2_000_000, dtype=np.int64).reshape(1000, 2000)
    tensor = {"name": "x", "datatype": "FP32", "shape": [1000, 2000]}
    texts = [[f'[{row}, "\\'] * 4 for row in range(4000)]
    text = {"name": "x", "datatype": "BYTES", "shape": [4000, 4], "data": texts}
    for data in (values.tolist(), values.reshape(-1).tolist()):
        status, told = limited.infer("free", inputs=[{**tensor, "data": data}], outputs=[{"name": "y"}])
        assert (status, np.array_equal(told["outputs"][0]["data"], values.reshape(-1))) == (200, True)
    status, told = limited.infer("text", inputs=[text], parameters={"list": [1, 2]}, extra=[[["x"]]])
    assert (status, told["outputs"][0]["data"]) == (200, [each for row in texts for each in row])
    typed = message("free", "x", "FP32", values.astype(np.float32), raw=False)
    answer = limited.call("ModelInfer", typed)
    assert np.array_equal(answer.outputs[0].contents.fp32_contents, values.reshape(-1).astype(np.float32))


def test_no_memory_is_told_as_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*arguments: object) -> None:
        raise MemoryError

    monkeypatch.setattr("oplet_serve.runtime.read_tensor", read)
    (tmp_path / "m.tflite").write_bytes(mirror(np.float32, [1, 4], [-1, 4]))
    settings = ModelSettings(name="m", implementation=OpletRuntime, parameters=ModelParameters(uri=str(tmp_path / "m.tflite")))

    async def ask() -> int:
        model = OpletRuntime(settings)
        await model.load()
        tensor = ArrayRequest.model_validate({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [0] * 4}]})
        with pytest.raises(Refusal, match="has not the memory") as caught:
            await model.predict(tensor)
        await model.unload()
        return int(caught.value.status_code)

    assert asyncio.run(ask()) == LARGE
