"""`deployment`: serves a model by Ray Serve."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse

from oplet.errors import OpletError
from oplet_predictor import Predictor

__all__ = ["ServedModel", "deployment"]


class ServedModel:
    """The Ray Serve deployment class of a model: concurrent requests run as one batch, in a thread beside the event loop.

    A row of each input is what a `DeploymentHandle` gives (`handle.remote(image=row)`, or `handle.remote(row)` for a model with
    one input), and what the body of an HTTP request has as JSON: `{"image": [[...]]}`. The answer has a row of each output. An
    invalid request gets status 400 and one sentence; a handle raises the OpletError.

    Args:
        model: the model's path, which each node must have, or its bytes.
        max_batch_size: the largest number of requests in a batch.
        batch_wait_timeout_s: seconds for which the first request of a batch waits for others.
        max_body: the largest body of an HTTP request, in bytes.
        predictor: the further arguments of `oplet.Predictor`.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | bytes,
        max_batch_size: int,
        batch_wait_timeout_s: float,
        max_body: int,
        predictor: Mapping[str, Any],
    ) -> None:
        self._predict = Predictor(model, **predictor)
        self._arguments = dict(predictor)
        self._max_body = max_body
        self._run = serve.batch(max_batch_size=max_batch_size, batch_wait_timeout_s=batch_wait_timeout_s)(self._run_batch)

    async def predict(self, row: Any = None, **rows: Any) -> dict[str, NDArray[Any]]:
        """Predict for one row of each input; return the outputs by name.

        Raises:
            OpletError: names, types or shapes do not fit, or the row cannot be run.
        """
        result = await self._run(rows if row is None else row)
        if isinstance(result, OpletError):
            raise result
        return dict(result)

    async def _run_batch(self, items: list[Any]) -> list[Any]:
        return await asyncio.to_thread(lambda: list(self._predict.map(items, errors="return")))

    async def __call__(self, request: Any = None, **rows: Any) -> Any:
        """Answer an HTTP request, or a handle's call like `predict`."""
        if not isinstance(request, Request):
            return await self.predict(request, **rows)
        try:
            answer = await self.predict(await self._read(request))
        except (OpletError, ValueError) as error:
            return JSONResponse({"error": str(error)}, status_code=400)
        return JSONResponse({name: _as_json(value) for name, value in answer.items()})

    async def _read(self, request: Request) -> dict[str, NDArray[Any]]:
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > self._max_body:
                raise ValueError(f"The body has more than {self._max_body} bytes, which is the most that this deployment takes.")
        return await asyncio.to_thread(_rows_of, body, self._predict)

    def reconfigure(self, settings: Mapping[str, Any]) -> None:
        """Switch to another model, `{"model": path}`, without dropping requests; Serve calls this when user_config changes.

        Raises:
            OpletError: the new model cannot be opened; the old one stays.
        """
        if "model" in settings:
            new = Predictor(settings["model"], **self._arguments)
            new.inputs  # noqa: B018 -- opens it
            self._predict = new

    async def check_health(self) -> None:
        """Raise an error if the model cannot be opened; called by Serve."""
        await asyncio.to_thread(lambda: self._predict.inputs)


def _rows_of(body: bytes, predict: Predictor) -> dict[str, NDArray[Any]]:
    import json

    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"The body is no JSON: {error}.") from None
    wanted = predict.inputs
    if not isinstance(given, dict) or set(given) != set(wanted):
        raise ValueError(f"The body must be an object with a row for each of {', '.join(wanted)}.")
    rows = {}
    for name, value in given.items():
        dtype = wanted[name].dtype
        try:
            array = np.array(value)
            row = np.array(value, object) if dtype.hasobject else array.astype(dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(f"The row of '{name}' is no array of {dtype}: {error}.") from None
        if dtype.kind in "iu" and (array.dtype.kind not in "iub" or not np.array_equal(array, row)):
            raise ValueError(f"The row of '{name}' has values that are no {dtype}.")
        rows[name] = row
    return rows


def _as_json(value: NDArray[Any]) -> Any:
    if value.dtype.hasobject:
        return np.vectorize(partial(bytes.decode, errors="replace"), otypes=[object])(value).tolist()
    return value.astype(np.float64).tolist() if value.dtype.kind == "V" or value.dtype.name == "bfloat16" else value.tolist()


def deployment(
    model: str | os.PathLike[str] | bytes,
    *,
    name: str = "oplet",
    max_batch_size: int = 16,
    batch_wait_timeout_s: float = 0.005,
    max_body: int = 64 << 20,
    options: Mapping[str, Any] | None = None,
    **predictor: Any,
) -> serve.Application:
    """Build a Ray Serve application of a model, for `serve.run`.

    Args:
        model: the model's path, which each node of the cluster must have, or its bytes.
        max_batch_size: the largest number of requests in a batch.
        batch_wait_timeout_s: seconds for which the first request of a batch waits for others.
        max_body: the largest body of an HTTP request, in bytes.
        predictor: the further arguments of `oplet.Predictor`.
        name: the deployment's name.
        options: options of `serve.deployment`, such as `num_replicas`, `ray_actor_options`, `user_config` or `max_ongoing_requests`.

    Raises:
        ModelError, DelegateError, TensorError: an argument of the Predictor is wrong.
    """
    Predictor(model, **predictor)  # refuses wrong arguments here, not in a replica
    where = model if isinstance(model, bytes) else os.path.abspath(model)
    made = serve.deployment(name=name, **{"max_ongoing_requests": 4 * max_batch_size, **(options or {})})(ServedModel)
    return made.bind(where, max_batch_size, batch_wait_timeout_s, max_body, predictor)
