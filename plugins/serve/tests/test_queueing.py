"""The queue of a model: rows of several requests in one run, one bad request alone, no more than fit."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlserver import ModelSettings
from mlserver.settings import ModelParameters
from mlserver.types import InferenceRequest
from plugins.serve.tests.models import mirror

from oplet.errors import InvokeError
from oplet_serve.queueing import RequestQueue
from oplet_serve.refusals import Refusal
from oplet_serve.runtime import OpletRuntime
from oplet_serve.served_model import ServedModel

Values = dict[str, np.ndarray[Any, Any]]


def test_rows_are_joined_and_given_back_to_their_requests() -> None:
    runs: list[int] = []

    def double(values: Values) -> Values:
        runs.append(len(values["x"]))
        return {"y": values["x"] * 2}

    async def ask() -> list[Values]:
        queue = RequestQueue("joined", double, 1, 10, 8, 0.05)
        given = [np.full((rows, 2), number, np.float32) for number, rows in enumerate((1, 2, 5, 3))]
        given.append(np.zeros((1, 3), np.float32))  # of another shape
        return await asyncio.gather(*(queue.outputs({"x": each}, len(each)) for each in given))

    answers = asyncio.run(ask())
    assert [answer["y"].tolist() for answer in answers] == [
        *(np.full((rows, 2), 2 * number).tolist() for number, rows in enumerate((1, 2, 5, 3))),
        [[0, 0, 0]],
    ]
    assert sorted(runs) == [1, 3, 8]


def test_a_request_that_fails_leaves_the_others_alone() -> None:
    def run(values: Values) -> Values:
        if (values["x"] < 0).any():
            raise InvokeError("a negative row")
        return {"y": values["x"]}

    async def ask() -> list[Any]:
        queue = RequestQueue("failing", run, 2, 10, 4, 0.05)
        given = [np.array([value]) for value in (1.0, -1.0, 2.0)]
        return await asyncio.gather(*(queue.outputs({"x": each}, 1) for each in given), return_exceptions=True)

    first, bad, last = asyncio.run(ask())
    assert (first["y"].tolist(), last["y"].tolist()) == ([1], [2])
    assert isinstance(bad, InvokeError)


def test_a_request_that_nobody_joins_fails_in_one_run() -> None:
    runs: list[int] = []

    def run(values: Values) -> Values:
        runs.append(len(values["x"]))
        raise InvokeError("a bad row")

    async def ask() -> None:
        await RequestQueue("failing", run, 1, 10, 4, 0.01).outputs({"x": np.zeros(1)}, 1)

    with pytest.raises(InvokeError, match="a bad row"):
        asyncio.run(ask())
    assert runs == [1]


def test_no_more_requests_enter_than_fit_and_none_runs_in_the_event_loop() -> None:
    async def ask() -> str:
        queue = RequestQueue("full", lambda values: values, 1, 2, 1, 0.0)
        queue.enter()
        queue.enter()
        with pytest.raises(Refusal, match="2 requests under way") as caught:
            queue.enter()
        assert caught.value.status_code == 429
        queue.leave()
        queue.enter()
        return await queue.in_thread(lambda: threading.current_thread().name)

    assert asyncio.run(ask()).startswith("oplet-serve-full")


@pytest.mark.parametrize(("given", "waited"), [({"max_batch_time": 0.0}, 0.0), ({"max_batch_time": 0.5}, 0.5), ({}, 0.002)])
def test_who_asks_for_no_waiting_gets_none(given: dict[str, float], waited: float) -> None:
    settings = ModelSettings(name="m", implementation=OpletRuntime, parameters=ModelParameters(uri="m.tflite"), **given)
    assert OpletRuntime(settings)._batch_time == waited


@pytest.mark.parametrize(("given", "together"), [({}, [1, 1]), ({"max_batch_size": 1}, [1, 1]), ({"max_batch_size": 2}, [2])])
def test_requests_run_together_only_where_that_is_asked_for(
    given: dict[str, int], together: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []
    run = ServedModel.run

    def counted(self: ServedModel, values: Values) -> Values:
        runs.append(len(values["x"]))
        return run(self, values)

    monkeypatch.setattr(ServedModel, "run", counted)
    path = tmp_path / "floor.tflite"
    path.write_bytes(mirror(np.float32, [1, 4], [-1, 4]))
    parameters = ModelParameters(uri=str(path))
    settings = ModelSettings(name="m", implementation=OpletRuntime, parameters=parameters, max_batch_time=20.0, **given)
    x = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [0.5] * 4}

    async def ask() -> None:
        model = OpletRuntime(settings)
        await model.load()
        await asyncio.gather(*(model.predict(InferenceRequest(inputs=[x])) for _ in range(2)))
        await model.unload()

    asyncio.run(ask())
    assert runs == together
