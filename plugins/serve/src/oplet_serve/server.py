"""The server: MLServer's registry, handlers and metrics behind this package's own transports."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import uvicorn
from mlserver import MLModel, MLServer, ModelSettings, Settings
from mlserver.settings import ModelParameters
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import oplet
from oplet.errors import StateError
from oplet_serve.doors.bounds import Bodies, Bounds
from oplet_serve.doors.connections import timed_protocol
from oplet_serve.doors.rest import rest_application
from oplet_serve.doors.rpc import start_rpc
from oplet_serve.doors.spare_memory import give_back_memory
from oplet_serve.doors.threads import WorkerThreads
from oplet_serve.repository import FoundModel
from oplet_serve.values.slices import SMALL

__all__ = ["OpletServer", "model_settings", "server_settings"]

_LOGGER = logging.getLogger("mlserver.oplet")


def server_settings(host: str, http_port: int, grpc_port: int, metrics_port: int) -> Settings:
    """Build MLServer's settings for these ports, without reading settings files in the current folder."""
    return Settings(
        _env_file=None,
        debug=False,
        parallel_workers=0,
        load_models_at_startup=False,
        server_name="oplet-serve",
        server_version=oplet.__version__,
        extensions=["binary_tensor_data"],
        host=host,
        http_port=http_port,
        grpc_port=grpc_port,
        metrics_port=metrics_port,
        metrics_endpoint=None,  # served here
        cache_enabled=False,
        kafka_enabled=False,
        tracing_server=None,
        logging_settings=None,
    )


def model_settings(model: FoundModel, extra: dict[str, Any], max_batch_size: int, max_batch_time: float) -> ModelSettings:
    """Build MLServer's settings for a model.

    Args:
        extra: options by name, see `oplet_serve.options.Options`.
        max_batch_size: the most rows of several requests that are run together.
        max_batch_time: seconds that a request waits for others to be batched with.
    """
    options = {**extra, "signature": model.signature}
    parameters = ModelParameters(_env_file=None, uri=str(model.path.absolute()), version=model.version, extra=options)
    return ModelSettings(
        _env_file=None,
        name=model.name,
        implementation="oplet_serve.OpletRuntime",
        parameters=parameters,
        max_batch_size=max_batch_size,
        max_batch_time=max_batch_time,
    )


class _HttpServer(uvicorn.Server):  # type: ignore[misc, unused-ignore]
    """An HTTP server that leaves signal handling to `OpletServer`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def install_signal_handlers(self) -> None:
        """Do nothing; older versions of uvicorn call this to install signal handlers."""


class OpletServer(MLServer):  # type: ignore[misc, unused-ignore]
    """Serves models over REST and gRPC; must be created while an event loop runs.

    Args:
        settings: MLServer's settings, from `server_settings`.
        bounds: the limits of requests: size, number and duration.
        ready: called when the server listens.
    """

    def __init__(self, settings: Settings, bounds: Bounds, ready: Callable[[], object]) -> None:
        self._bounds = bounds
        self._ready = ready
        self._stopping = False
        self._http: list[_HttpServer] = []
        self._models: list[MLModel] = []
        self._rpc: Any = None
        super().__init__(settings)

    def _configure_logger(self) -> None:
        """Do nothing: the command configures logging."""

    def _create_servers(self) -> None:
        settings, bounds = self._settings, self._bounds
        # Reading and writing is Python's, of which one thread runs at a time: more would only keep the event loop from its turn.
        self._readers = threads = WorkerThreads(1, "oplet-serve-doors")
        self._bodies = bodies = Bodies(max(bounds.max_bodies_bytes, bounds.max_request_bytes))
        app = rest_application(self._data_plane, self._model_registry, bounds, bodies, threads)
        metrics = Starlette(routes=[Route("/metrics", _metrics)])
        self._http = [self._http_server(app, settings.http_port), self._http_server(metrics, settings.metrics_port)]

    def _http_server(self, app: Starlette, port: int) -> _HttpServer:
        bounds = self._bounds
        config = uvicorn.Config(
            app,
            host=self._settings.host,
            port=port,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            http=timed_protocol(bounds.idle_seconds),
            limit_concurrency=bounds.max_connections,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=max(1, round(bounds.grace_seconds)),
        )
        return _HttpServer(config)

    async def add_custom_handlers(self, model: MLModel) -> MLModel:
        """Do nothing: models have no custom paths."""
        return model

    remove_custom_handlers = add_custom_handlers

    async def start(self, models_settings: Sequence[ModelSettings] = ()) -> None:
        """Open the models, bind the ports, and serve until SIGTERM or SIGINT.

        Raises:
            OpletError: a model cannot be opened, or a port cannot be bound.
        """
        for settings in models_settings:
            model = await self._model_registry.load(settings)
            model.readers = self._readers
            self._models.append(model)
        if self._stopping:
            return
        address = (self._settings.host, self._settings.grpc_port)
        service = (self._data_plane, self._model_registry, self._bodies, self._readers)
        self._rpc = await start_rpc(address, self._bounds, *service)
        running = [asyncio.ensure_future(self._serve(server)) for server in self._http]
        giving_back = asyncio.ensure_future(give_back_memory(lambda: self._bodies.held > SMALL))
        try:
            while not all(server.started for server in self._http):
                if any(task.done() for task in running):
                    break
                await asyncio.sleep(0.01)
            else:
                self._ready()
            await asyncio.gather(*running)
        finally:
            giving_back.cancel()
            await self.stop()
            await asyncio.gather(*running, return_exceptions=True)

    async def _serve(self, server: _HttpServer) -> None:
        try:
            await server.serve()
        except SystemExit:  # uvicorn's way to say that it could not bind
            raise StateError(
                f"HTTP cannot listen on {server.config.host}:{server.config.port}; is the port taken? --http-port and --metrics-port take "
                "others."
            ) from None

    async def stop(self, sig: int | None = None) -> None:
        """Refuse new requests, and stop once requests in progress have finished or the grace time is over."""
        self._stopping = True
        for server in self._http:
            server.should_exit = True
        if self._rpc is not None:
            await self._rpc.stop(self._bounds.grace_seconds)

    @property
    def busy(self) -> bool:
        """Return whether predictions are still running."""
        return any(model.busy for model in self._models)


def _metrics(request: Request) -> Response:
    return Response(generate_latest(), headers={"content-type": CONTENT_TYPE_LATEST})
