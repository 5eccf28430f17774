"""The REST application: the protocol's paths, one-sentence JSON errors, and bodies read within limits."""

from __future__ import annotations

import contextlib
import logging
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, cast

import orjson
from anyio import fail_after
from mlserver.errors import MLServerError
from mlserver.handlers import DataPlane
from mlserver.registry import MultiModelRegistry
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette_exporter import PrometheusMiddleware

from oplet.errors import text_of
from oplet_serve.doors.bounds import Bodies, Bounds, Share, written
from oplet_serve.doors.rest_messages import HEADER, binary_outputs, read_request, written_response
from oplet_serve.doors.threads import WorkerThreads
from oplet_serve.refusals import LARGE, LATE, NO_MEMORY, Refusal
from oplet_serve.values.slices import SMALL, SMALL_FIRST

__all__ = ["rest_application"]

_LOGGER = logging.getLogger("mlserver.oplet")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
Endpoint = Callable[[Request], Awaitable[Response]]


def rest_application(
    data_plane: DataPlane, registry: MultiModelRegistry, bounds: Bounds, bodies: Bodies, threads: WorkerThreads
) -> Starlette:
    """Build the Starlette application with the protocol's routes.

    Args:
        data_plane: MLServer's handlers.
        bounds: the limits of requests: size, number and duration.
        bodies: counts the bytes of all requests in progress.
        threads: the threads in which requests are parsed and responses serialized.
    """
    paths = _Paths(data_plane, registry, bounds, bodies, threads)
    models = ("/v2/models/{name}", "/v2/models/{name}/versions/{version}")
    routes = [
        Route("/v2", _answered(paths.server)),
        Route("/v2/health/live", _answered(paths.live)),
        Route("/v2/health/ready", _answered(paths.ready)),
        Route("/v2/repository/index", _answered(paths.index), methods=["POST"]),
        *(Route(path, _answered(paths.model)) for path in models),
        *(Route(f"{path}/ready", _answered(paths.model_ready)) for path in models),
        *(Route(f"{path}/infer", _answered(paths.infer), methods=["POST"]) for path in models),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _http_error})
    app.add_middleware(
        PrometheusMiddleware, app_name="oplet-serve", prefix="rest_server", skip_paths=["/v2/health/live", "/v2/health/ready"]
    )
    app.add_middleware(_Entrance, bodies)
    app.router.redirect_slashes = False
    return app


@dataclass
class _Entrance:
    """Counts the bytes of each request until its response is taken; and changes what others stumble over: methods that no path takes get
    one name, before there is a metric of each, and the host goes, which may be none.
    """

    _app: ASGIApp
    _bodies: Bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with Share(self._bodies) as share:
            method = scope["method"] if scope["method"] in _METHODS else "OTHER"
            headers = [each for each in scope["headers"] if each[0] != b"host"]
            await self._app({**scope, "method": method, "headers": headers, "share": share}, receive, send)


class _Large(Response):  # type: ignore[misc, unused-ignore]
    """A response that is complete once the client has taken it."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        await send({"type": "http.response.body"})


def _json(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(value), status, headers, "application/json")


def _error(message: str, status: int) -> Response:
    return _json({"error": message}, status)


async def _http_error(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 404:
        return _error("There is no such path; the Open Inference Protocol's begin with /v2.", 404)
    return _error(f"This path takes no {request.method}.", 405)


def _answered(endpoint: Endpoint) -> Endpoint:
    """Wrap an endpoint to turn exceptions into one-sentence JSON errors."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except MLServerError as error:
            response = _error(text_of(error), error.status_code)
            if error.status_code in (LATE, LARGE):
                response.headers["connection"] = "close"  # what is left of the body is not read
            return response
        except MemoryError:
            return _error(text_of(NO_MEMORY), LARGE)
        except RecursionError:
            return _error("The request's JSON is nested deeper than that of any tensor.", 400)
        except ClientDisconnect:
            return _error("The client went away.", 400)
        except Exception as error:
            _LOGGER.exception("A request to %s failed.", request.url.path)
            return _error(f"The server failed, and its log says where: {text_of(error, named=True)}.", 500)

    return answer


@dataclass
class _Paths:
    """The REST endpoints, one method each."""

    _data_plane: DataPlane
    _registry: MultiModelRegistry
    _bounds: Bounds
    _bodies: Bodies
    _threads: WorkerThreads

    async def live(self, request: Request) -> Response:
        return _json({"live": True})

    async def ready(self, request: Request) -> Response:
        ready = await self._data_plane.ready()
        return _json({"ready": ready}, 200 if ready else 400)

    async def server(self, request: Request) -> Response:
        found = await self._data_plane.metadata()
        return _json({"name": found.name, "version": found.version, "extensions": found.extensions})

    async def index(self, request: Request) -> Response:
        models = await self._registry.get_models()
        return _json(
            [
                {"name": m.name, "state": "READY" if m.ready else "UNAVAILABLE", "reason": ""}
                | ({"version": m.version} if m.version else {})
                for m in models
            ]
        )

    async def model_ready(self, request: Request) -> Response:
        name, version = _model_of(request)
        ready = await self._data_plane.model_ready(name, version)
        return _json({"name": name, "ready": ready}, 200 if ready else 400)

    async def model(self, request: Request) -> Response:
        found = await self._data_plane.model_metadata(*_model_of(request))
        told: dict[str, Any] = {"name": found.name, "versions": found.versions, "platform": found.platform}
        for side, tensors in (("inputs", found.inputs), ("outputs", found.outputs)):
            told[side] = [{"name": t.name, "datatype": t.datatype, "shape": t.shape} for t in tensors]
        if found.parameters is not None:
            told["parameters"] = found.parameters.model_dump()
        return _json(told)

    async def infer(self, request: Request) -> Response:
        length = request.headers.get("content-length", "0")
        stated = int(length[:19]) if length.isdigit() else 0
        if stated > SMALL:  # also if it is refused
            await self._bodies.turn()
        model = await self._registry.get_model(*_model_of(request))  # before there is a metric of that name, and the body is read
        most = min(self._bounds.max_request_bytes, model.served().most_bytes)
        if stated > most:
            raise _too_large(most)
        share = cast(Share, request.scope["share"])
        body = await self._body(request, share, most)
        with SMALL_FIRST if len(body) <= SMALL else contextlib.nullcontext():
            return await self._computed(request, body, model, share)

    async def _computed(self, request: Request, body: bytes, model: Any, share: Share) -> Response:
        length = _single(request, HEADER)
        reading = (read_request, body, length, len(model.inputs or ()), len(model.outputs or ()))
        payload = await self._threads.run(*reading, large=True) if len(body) > SMALL else read_request(*reading[1:])
        del reading
        del body
        response = await self._data_plane.infer(payload, *_model_of(request))
        binary = binary_outputs(payload, [output.name for output in response.outputs])
        text, json_length = await written(share, self._threads, response, written_response, binary)
        share.replace(len(text))
        kind = _Large if len(text) > SMALL else Response
        if json_length is None:
            return kind(text, media_type="application/json")
        return kind(text, headers={HEADER: str(json_length)}, media_type="application/octet-stream")

    async def _body(self, request: Request, share: Share, most: int) -> bytes:
        """Read and decompress the request body, of `most` bytes, within the time limit.

        Raises:
            Refusal: it is too large, is malformed, or takes too long to come.
        """
        try:
            with fail_after(self._bounds.read_seconds):
                parts = await _collected(request, most, share)
        except TimeoutError:
            raise Refusal(f"The request's body did not come within {self._bounds.read_seconds} s.", LATE) from None
        large = sum(map(len, parts)) > SMALL
        body = await self._threads.run(b"".join, parts, large=True) if large else b"".join(parts)
        del parts
        encoding = (_single(request, "content-encoding") or "identity").strip().lower()
        if encoding == "identity":
            return body
        if encoding not in ("gzip", "deflate"):
            raise Refusal(f"The content-encoding {encoding!r:.40} is not known; gzip and deflate are.")
        if not large:
            try:
                return _decompressed(body, min(most, SMALL))
            except Refusal as error:
                if error.status_code != LARGE:
                    raise
        share.add(most)  # before it is known how many they are
        return await self._threads.run(_decompressed, body, most, large=True)


def _model_of(request: Request) -> tuple[str, str | None]:
    return request.path_params["name"], request.path_params.get("version")


def _single(request: Request, name: str) -> str | None:
    """Return a header that says how the body is read.

    Raises:
        Refusal: it is there twice; whoever stands between might have taken the other one.
    """
    found = request.headers.getlist(name)
    if len(found) > 1:
        raise Refusal(f"The request has the header {name} {len(found)} times.")
    return found[0] if found else None


def _too_large(most: int) -> Refusal:
    return Refusal(f"The request's body is larger than {most} bytes, the most that this server takes for this model.", LARGE)


async def _collected(request: Request, most: int, share: Share) -> list[bytes]:
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > SMALL:  # the event loop reads one part of all large bodies at a time, and what came of small ones in between
            await share.bodies.turn()
        if size > most:
            raise _too_large(most)
        share.add(len(part))
        parts.append(part)
    return parts


def _decompressed(body: bytes, most: int) -> bytes:
    decompressor = zlib.decompressobj(zlib.MAX_WBITS | 32)  # gzip or zlib, as the header says
    try:
        plain = decompressor.decompress(body, most + 1)
    except zlib.error:
        raise Refusal("The request's body is not compressed as its content-encoding says.") from None
    if len(plain) > most:
        raise _too_large(most)
    if not decompressor.eof or decompressor.unused_data:
        raise Refusal("The request's compressed body ends too early or has something behind it.")
    return plain
