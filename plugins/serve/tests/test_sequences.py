"""Sequences: state that stays in the server, uncopied; which requests are refused; bounds, ends, and what is left afterwards."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlserver import ModelSettings
from mlserver.grpc import dataplane_pb2 as pb
from mlserver.settings import ModelParameters
from mlserver.types import Parameters, RequestInput, RequestOutput
from plugins.serve.tests.models import counting, mirror
from plugins.serve.tests.serving import Server, served
from tests.children import LONG

from oplet.errors import InvokeError, ModelError
from oplet.toolkit import SubgraphRunner
from oplet_serve.options import Options
from oplet_serve.refusals import Refusal
from oplet_serve.runtime import ArrayRequest, OpletRuntime
from oplet_serve.served_model import ServedModel
from oplet_serve.state import runner, sequences

X, AXIS = np.ones((1, 1, 4), np.float32), np.array([1], np.int32)


def at(place: int) -> np.ndarray[Any, Any]:
    return np.array([0, place, 0], np.int32)


class Client:
    """Asks a runtime as the doors do."""

    def __init__(self, path: Path, signature: str | None = "step", **extra: Any) -> None:
        extra = {"signature": signature, "workers": 2, **extra}
        parameters = ModelParameters(uri=str(path), extra=extra)
        self.runtime: Any = OpletRuntime(ModelSettings(name=signature or "m", implementation=OpletRuntime, parameters=parameters))

    async def ask(
        self, id: Any, values: Mapping[str, np.ndarray[Any, Any]], wanted: tuple[str, ...] = (), **when: Any
    ) -> dict[str, Any]:
        datatypes = {"float32": "FP32", "int32": "INT32"}
        inputs = [
            RequestInput.model_construct(
                name=name, shape=list(value.shape), datatype=datatypes[value.dtype.name], data=value.tobytes(), parameters=None
            )
            for name, value in values.items()
        ]
        told = {"sequence_id": id, **{f"sequence_{name}": value for name, value in when.items()}}
        request = ArrayRequest.model_construct(
            id=None,
            parameters=Parameters.model_construct(**told),
            inputs=inputs,
            outputs=[RequestOutput.model_construct(name=name, parameters=None) for name in wanted],
        )
        return {output.name: output.data for output in (await self.runtime.predict(request)).outputs}


Work = Callable[[Client, Client], Awaitable[None]]


def with_clients(folder: Path, work: Work, dynamic: bool = False, **extra: Any) -> None:
    """Run `work` with clients of the two signatures, unload them, and see that nothing is left."""
    (folder / "m.tflite").write_bytes(counting(dynamic))

    async def main() -> None:
        step, scale = (Client(folder / "m.tflite", signature, **extra) for signature in ("step", "scale"))
        for each in (step, scale):
            await each.runtime.load()
        await work(step, scale)
        for each in (step, scale):
            await each.runtime.unload()
        assert (gauge(sequences._KEPT), gauge(sequences._BYTES), sequences._OF_FILES) == (0, 0, {})

    asyncio.run(main())


def gauge(metric: Any) -> float:
    return float(metric._value.get())


async def until(holds: Callable[[], object]) -> None:
    for _ in range(3000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came")


def is_gone(held: weakref.ref[Any]) -> bool:
    return held() is None


@pytest.mark.parametrize("dynamic", [False, True])
def test_steps_go_on_where_the_last_ended_and_copy_no_state(tmp_path: Path, dynamic: bool) -> None:
    async def work(step: Client, scale: Client) -> None:
        more = {"axis": AXIS} if dynamic else {}
        before = gauge(runner._COPIED)
        cache, total = {id: np.zeros((1, 8, 4), np.float32) for id in (1, "two")}, {1: 0.0, "two": 0.0}
        for number in range(50):
            for id in cache:
                x = X * (number + len(str(id)))
                made = await step.ask(id, {"x": x, "at": at(number % 8), **more}, start=number == 0)
                assert made.keys() == {"y", "before"}
                assert (made["before"] == total[id]).all()
                cache[id][:, number % 8], total[id] = x[0, 0], total[id] + x[0, 0, 0]
                assert (made["y"] == cache[id].sum(1)).all()
        made = await step.ask(1, {"x": X, "at": at(0), **more}, ("cache", "total"), end=True)
        cache[1][:, 0] = 1
        assert (made["cache"] == cache[1]).all()
        assert (made["total"] == total[1] + 1).all()
        copied = gauge(runner._COPIED) - before
        assert copied > 0 if dynamic else copied == 0

    with_clients(tmp_path, work, dynamic)


def test_signatures_share_a_sequence_and_its_first_state_may_be_given(tmp_path: Path) -> None:
    async def work(step: Client, scale: Client) -> None:
        await scale.ask(7, {"total": X * 3, "factor": np.array([2], np.float32)}, start=True)
        assert ((await step.ask(7, {"x": X, "at": at(0)}))["before"] == 6).all()
        assert ((await scale.ask(7, {"factor": np.array([10], np.float32)}))["y"] == 70).all()
        assert ((await step.ask(7, {"x": X, "at": at(1)}))["y"] == 2).all()
        assert ((await step.ask(7, {"x": X, "at": at(1)}, start=True))["y"] == 1).all(), "it was begun anew"
        told = (await step.runtime.metadata()).parameters.model_dump()
        assert told["state"] == "total, cache"

    with_clients(tmp_path, work)


@pytest.mark.parametrize(
    ("id", "values", "when", "status", "told"),
    [
        (8, {"x": X, "at": at(0)}, {}, 404, "sequence 8 is not known"),
        (7, {"x": X}, {}, 400, "The input 'at' is missing"),
        (7, {"x": X, "at": at(0), "total": X}, {}, 400, "'total' is state that the server keeps"),
        (8, {"x": X, "at": at(0)}, {"start": 1}, 400, "true or false"),
        (True, {"x": X, "at": at(0)}, {}, 400, "A sequence_id is"),
        ("8" * 129, {"x": X, "at": at(0)}, {}, 400, "A sequence_id is"),
        (1 << 64, {"x": X, "at": at(0)}, {}, 400, "A sequence_id is"),
        (0, {"x": X, "at": at(0)}, {"start": True}, 400, "no sequence_id"),
        ("", {"x": X, "at": at(0)}, {"end": True}, 400, "no sequence_id"),
        ("8", {"x": X, "at": at(0)}, {"start": True}, 429, "number 2 of 1"),
        (7, {"x": X, "at": at(0)}, {"start": True}, 200, ""),
        (0, {"x": X, "at": at(0), "total": X, "cache": np.ones((1, 8, 4), np.float32)}, {}, 200, ""),
    ],
)
def test_refused_steps_leave_the_sequence_as_it_was(
    tmp_path: Path, id: Any, values: dict[str, Any], when: dict[str, Any], status: int, told: str
) -> None:
    async def work(step: Client, scale: Client) -> None:
        await step.ask(7, {"x": X, "at": at(0)}, start=True)
        if status == 200:
            await step.ask(id, values, **when)
            return
        with pytest.raises(Refusal) as caught:
            await step.ask(id, values, **when)
        assert (caught.value.status_code, told in str(caught.value)) == (status, True), caught.value
        assert ((await step.ask(7, {"x": X, "at": at(1)}))["before"] == 1).all()

    with_clients(tmp_path, work, max_sequences=1)


def test_the_bytes_of_all_sequences_are_bounded(tmp_path: Path) -> None:
    async def work(step: Client, scale: Client) -> None:
        for id in (1, 2):
            await step.ask(id, {"x": X, "at": at(0)}, start=True)
        await scale.ask(3, {"factor": np.array([2], np.float32)}, start=True)  # which takes less
        with pytest.raises(Refusal, match="432 of 304 bytes"):
            await step.ask(3, {"x": X, "at": at(0)})
        await step.ask(2, {"x": X, "at": at(0)}, end=True)
        await step.ask(3, {"x": X, "at": at(0)})

    with_clients(tmp_path, work, max_sequence_bytes=2 * 144 + 16)


def test_a_sequence_without_requests_ends_and_its_memory_is_free(tmp_path: Path) -> None:
    async def work(step: Client, scale: Client) -> None:
        for at_end in (False, True):
            await step.ask(1, {"x": X, "at": at(0)}, start=True)
            held = weakref.ref(step.runtime._sequences._kept[1].arrays["cache"])
            if at_end:
                await step.ask(1, {"x": X, "at": at(0)}, end=True)
            await until(lambda: gauge(sequences._KEPT) == 0)
            await until(partial(is_gone, held))
            with pytest.raises(Refusal, match="had no request for 0.2 s"):
                await step.ask(1, {"x": X, "at": at(0)})

    with_clients(tmp_path, work, sequence_seconds=0.2)


def test_a_step_that_fails_or_is_cancelled_ends_its_sequence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(step: Client, scale: Client) -> None:
        await step.ask(1, {"x": X, "at": at(0)}, start=True)
        await step.ask(2, {"x": X, "at": at(0)}, start=True)
        begun, go = threading.Event(), threading.Event()
        run = SubgraphRunner.invoke

        def failing(self: SubgraphRunner) -> None:
            run(self)
            raise InvokeError("the power went")

        def slow(self: SubgraphRunner) -> None:
            begun.set()
            assert go.wait(LONG)
            run(self)

        monkeypatch.setattr(SubgraphRunner, "invoke", failing)
        with pytest.raises(Refusal, match="The sequence 1 ends: the power went"):
            await step.ask(1, {"x": X, "at": at(0)})
        monkeypatch.setattr(SubgraphRunner, "invoke", slow)
        asked = asyncio.ensure_future(step.ask(2, {"x": X, "at": at(0)}))
        await until(begun.is_set)
        with pytest.raises(Refusal, match="The sequence 2 is busy") as caught:
            await step.ask(2, {"x": X, "at": at(0)})
        assert caught.value.status_code == 409
        held = weakref.ref(step.runtime._sequences._kept[2].arrays["cache"])
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert held() is not None
        del asked, caught  # whose errors hold frames
        go.set()
        monkeypatch.setattr(SubgraphRunner, "invoke", run)
        for id in (1, 2):
            with pytest.raises(Refusal, match="not known"):
                await step.ask(id, {"x": X, "at": at(0)})
        await until(partial(is_gone, held))
        assert ((await step.ask(2, {"x": X, "at": at(0)}, start=True))["before"] == 0).all()

    with_clients(tmp_path, work)


def test_many_sequences_at_once_do_not_mix(tmp_path: Path) -> None:
    async def work(step: Client, scale: Client) -> None:
        async def count(id: int) -> None:
            for number in range(20):
                made = await step.ask(id, {"x": X * id, "at": at(number % 8)}, start=number == 0, end=number == 19)
                assert (made["before"] == id * number).all()

        await asyncio.gather(*map(count, range(1, 9)))

    with_clients(tmp_path, work)


def test_which_outputs_are_state_is_told_or_seen_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(mirror(np.float32, [1, 4], op="FLOOR"))
    assert ServedModel(str(path), Options()).states == {}
    told = ServedModel(str(path), Options.read("m", {"state": {"x": "y", "other": "y"}}))
    assert told.states == {"x": "y"}
    path.write_bytes(counting())
    with pytest.raises(ModelError, match="The output 'y' is no next value of the input 'total'"):
        ServedModel(str(path), Options.read("m", {"signature": "step", "state": {"total": "y"}}))
    with pytest.raises(ModelError, match="it is another's"):
        ServedModel(str(path), Options.read("m", {"signature": "step", "state": {"total": "total", "x": "total"}}))
    with pytest.raises(ModelError, match="The option 'state'"):
        Options.read("m", {"state": ["x=y"]})


def test_a_model_without_state_has_no_sequences(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(mirror(np.float32, [1, 1, 4], op="FLOOR"))

    async def main() -> None:
        client = Client(tmp_path / "m.tflite", signature=None)
        await client.runtime.load()
        with pytest.raises(Refusal, match="keeps no state for sequences"):
            await client.ask(1, {"x": X}, start=True)
        await client.runtime.unload()

    asyncio.run(main())


@pytest.mark.environment
def test_sequences_over_rest_and_grpc(tmp_path: Path) -> None:
    (tmp_path / "m.tflite").write_bytes(counting())

    def rest(server: Server, values: dict[str, Any], model: str = "m@step", **parameters: Any) -> tuple[int, Any]:
        inputs = [
            {
                "name": name,
                "datatype": "INT32" if value.dtype == np.int32 else "FP32",
                "shape": value.shape,
                "data": value.tolist(),
            }
            for name, value in values.items()
        ]
        return server.infer(model, inputs=inputs, parameters=parameters)

    def rpc(server: Server, id: int | str, number: int, *flags: str) -> Any:
        request = pb.ModelInferRequest(model_name="m@step")
        parameter = request.parameters["sequence_id"]
        if isinstance(id, int):
            parameter.int64_param = id
        else:
            parameter.string_param = id
        for flag in flags:
            request.parameters[flag].bool_param = True
        for name, value in (("x", X), ("at", at(number))):
            request.inputs.add(name=name, datatype="INT32" if value.dtype == np.int32 else "FP32", shape=value.shape)
            request.raw_input_contents.append(value.tobytes())
        return server.call("ModelInfer", request)

    with served(tmp_path, "--sequence-seconds", 2, "--max-sequences", 2) as server:
        status, told = rest(server, {"x": X, "at": at(0)}, sequence_id="talk", sequence_start=True)
        assert (status, [output["name"] for output in told["outputs"]]) == (200, ["y", "before"])
        told = rpc(server, "talk", 1)
        assert [output.name for output in told.outputs] == ["y", "before"]
        assert np.frombuffer(told.raw_output_contents[0], np.float32).tolist() == [2] * 4
        status, told = rest(server, {"factor": np.array([5], np.float32)}, "m@scale", sequence_id="talk")
        assert (status, told["outputs"][0]["data"]) == (200, [10] * 4)
        assert rpc(server, 3, 0, "sequence_start").model_name == "m@step"
        assert "number 3 of 2" in rpc(server, 4, 0, "sequence_start").details()
        assert server.ask("GET", "/v2/models/m@step")[1]["parameters"] == {"signature": "step", "state": "total, cache"}
        metrics = server.ask("GET", "/metrics", port=server.metrics_port)[1].decode()
        assert "oplet_sequences 2.0" in metrics
        assert "oplet_state_bytes_copied_total 0.0" in metrics
        assert rpc(server, "talk", 2, "sequence_end").model_name == "m@step"
        error = rpc(server, "talk", 3)
        assert (error.code().name, "is not known" in error.details()) == ("NOT_FOUND", True)
        status, told = rest(server, {"x": X, "at": at(0)}, sequence_id=[1])
        assert (status, "A sequence_id is" in told["error"]) == (400, True)
        while "oplet_sequences 0.0" not in metrics:  # that of nobody who asks ends by itself
            metrics = server.ask("GET", "/metrics", port=server.metrics_port)[1].decode()
        status, written = server.end()
        assert (status, "Traceback" in written) == (0, False), written
