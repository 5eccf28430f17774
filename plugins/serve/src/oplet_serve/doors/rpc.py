"""The gRPC service: the protocol's methods, and one-sentence error statuses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import grpc
from google.protobuf.message import DecodeError
from mlserver.errors import MLServerError
from mlserver.grpc import dataplane_pb2 as pb
from mlserver.grpc.converters import ModelMetadataResponseConverter
from mlserver.grpc.dataplane_pb2_grpc import GRPCInferenceServiceServicer, add_GRPCInferenceServiceServicer_to_server
from mlserver.grpc.interceptors import PromServerInterceptor
from mlserver.handlers import DataPlane
from mlserver.registry import MultiModelRegistry
from mlserver.types import InferenceResponse, Parameters, RequestInput, RequestOutput

from oplet.errors import StateError, text_of
from oplet_serve.doors.bounds import Bounds
from oplet_serve.refusals import Refusal, grpc_status
from oplet_serve.runtime import ArrayRequest
from oplet_serve.tensors import as_raw, datatype_is_half

__all__ = ["RpcServer"]

_LOGGER = logging.getLogger("mlserver.oplet")
#: Characters of a message: a status travels in headers, which clients bound to 8 KiB, and a letter may take nine bytes there.
_LONGEST = 800

_FIELDS = {
    "BOOL": "bool_contents",
    "INT8": "int_contents",
    "INT16": "int_contents",
    "INT32": "int_contents",
    "INT64": "int64_contents",
    "UINT8": "uint_contents",
    "UINT16": "uint_contents",
    "UINT32": "uint_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}


async def _answered(context: Any, work: Awaitable[Any]) -> Any:
    """Await `work`; turn an exception into the call's gRPC error status."""
    try:
        return await work
    except MLServerError as error:
        code, told = grpc_status(error), text_of(error)
    except Exception as error:
        _LOGGER.exception("A call failed.")
        code, told = grpc.StatusCode.INTERNAL, f"The server failed, and its log says where: {text_of(error, named=True)}."
    await context.abort(code, told[:_LONGEST])


class _Service(GRPCInferenceServiceServicer):  # type: ignore[misc, unused-ignore]
    """gRPC service: one method per endpoint."""

    def __init__(self, data_plane: DataPlane, registry: MultiModelRegistry) -> None:
        self._data_plane = data_plane
        self._registry = registry

    async def ServerLive(self, request: Any, context: Any) -> Any:
        return pb.ServerLiveResponse(live=True)

    async def ServerReady(self, request: Any, context: Any) -> Any:
        return pb.ServerReadyResponse(ready=await self._data_plane.ready())

    async def ServerMetadata(self, request: Any, context: Any) -> Any:
        found = await self._data_plane.metadata()
        return pb.ServerMetadataResponse(name=found.name, version=found.version, extensions=found.extensions)

    async def ModelReady(self, request: Any, context: Any) -> Any:
        ready = await _answered(context, self._data_plane.model_ready(request.name, request.version or None))
        return pb.ModelReadyResponse(ready=ready)

    async def ModelMetadata(self, request: Any, context: Any) -> Any:
        found = await _answered(context, self._data_plane.model_metadata(request.name, request.version or None))
        return ModelMetadataResponseConverter.from_types(found)

    async def ModelInfer(self, request: Any, context: Any) -> Any:
        return await _answered(context, self._infer(request))

    async def ModelStreamInfer(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        async for request in requests:
            yield await _answered(context, self._infer(request))

    async def RepositoryIndex(self, request: Any, context: Any) -> Any:
        models = await self._registry.get_models()
        told = [
            pb.RepositoryIndexResponse.ModelIndex(
                name=m.name, version=m.version or "", state="READY" if m.ready else "UNAVAILABLE"
            )
            for m in models
        ]
        return pb.RepositoryIndexResponse(models=told)

    async def RepositoryModelLoad(self, request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Clients do not load models here; restart the server with them.")

    async def RepositoryModelUnload(self, request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Clients do not unload models here; restart the server without them.")

    async def _infer(self, request: Any) -> Any:
        name, version = request.model_name, request.model_version or None
        await self._registry.get_model(name, version)  # before there is a metric of that name
        payload = await asyncio.to_thread(_read, request)
        response = await self._data_plane.infer(payload, name, version)
        return await asyncio.to_thread(_written, response, bool(request.raw_input_contents))


def _read(request: Any) -> ArrayRequest:
    """Parse a gRPC message into a request.

    Raises:
        Refusal: it is malformed.
    """
    raw = request.raw_input_contents
    if not request.inputs:
        raise Refusal("The request has no 'inputs', the inputs' tensors.")
    if raw and len(raw) != len(request.inputs):
        raise Refusal(f"The request has {len(raw)} raw_input_contents for {len(request.inputs)} inputs; give one for each.")
    inputs = []
    for number, tensor in enumerate(request.inputs):
        if raw:
            if tensor.HasField("contents"):
                raise Refusal(f"Input {number} has contents, and the request raw_input_contents; give one of the two.")
            data: Any = raw[number]
        else:
            data = _contents(tensor, number)
        content_type = tensor.parameters["content_type"].string_param if "content_type" in tensor.parameters else None
        inputs.append(
            RequestInput.model_construct(
                name=tensor.name,
                shape=list(tensor.shape),
                datatype=tensor.datatype,
                parameters=Parameters.model_construct(content_type=content_type),
                data=data,
            )
        )
    made_request: ArrayRequest = ArrayRequest.model_construct(
        id=request.id or None,
        parameters=Parameters(),
        inputs=inputs,
        outputs=[RequestOutput.model_construct(name=output.name, parameters=None) for output in request.outputs],
    )
    return made_request


def _contents(tensor: Any, number: int) -> list[Any]:
    """Return the elements of the typed contents field for the tensor's datatype."""
    field = _FIELDS.get(tensor.datatype)
    if field is None:
        if tensor.datatype in ("FP16", "BF16"):
            raise Refusal(f"Input {number} is {tensor.datatype}, which gRPC carries in raw_input_contents only.")
        raise Refusal(f"Input {number} has the datatype {tensor.datatype!r:.40}, which the protocol does not have.")
    filled = [descriptor.name for descriptor, _ in tensor.contents.ListFields()]
    if filled and filled != [field]:
        raise Refusal(f"Input {number} has its elements in {', '.join(filled)}, but {tensor.datatype} goes into {field}.")
    return list(getattr(tensor.contents, field))


def _written(response: InferenceResponse, raw: bool) -> Any:
    raw = raw or any(datatype_is_half(output.data.dtype) for output in response.outputs)
    made = pb.ModelInferResponse(model_name=response.model_name, model_version=response.model_version or "", id=response.id or "")
    for output in response.outputs:
        tensor = made.outputs.add(name=output.name, datatype=output.datatype, shape=output.shape)
        if raw:
            made.raw_output_contents.append(as_raw(output.data))
        else:
            getattr(tensor.contents, _FIELDS[output.datatype]).extend(output.data.reshape(-1).tolist())
    return made


_NO_MESSAGE = object()


class _Unreadable(grpc.aio.ServerInterceptor):  # type: ignore[misc, unused-ignore]
    """Answers messages that cannot be parsed with an invalid-argument error, instead of gRPC's internal error."""

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = await continuation(details)
        if handler is None:
            return None

        def read(data: bytes) -> Any:
            try:
                return handler.request_deserializer(data)
            except DecodeError:
                return _NO_MESSAGE

        if handler.stream_stream is not None:

            async def stream(requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
                async for response in handler.stream_stream(_readable(requests, context), context):
                    yield response

            return grpc.stream_stream_rpc_method_handler(stream, read, handler.response_serializer)

        async def unary(request: Any, context: Any) -> Any:
            if request is _NO_MESSAGE:
                await _refuse_bytes(context)
            return await handler.unary_unary(request, context)

        return grpc.unary_unary_rpc_method_handler(unary, read, handler.response_serializer)


async def _readable(requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
    async for request in requests:
        if request is _NO_MESSAGE:
            await _refuse_bytes(context)
        yield request


async def _refuse_bytes(context: Any) -> None:
    await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The bytes are no message of the Open Inference Protocol.")


class RpcServer:
    """The gRPC server.

    Args:
        data_plane: MLServer's handlers.
        registry: the models.
        host: where it listens.
        port: the port.
        bounds: the limits of requests: size, number and duration.
    """

    def __init__(self, data_plane: DataPlane, registry: MultiModelRegistry, host: str, port: int, bounds: Bounds) -> None:
        self._service = _Service(data_plane, registry)
        self._address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self._bounds = bounds
        self._server: Any = None

    async def start(self) -> None:
        """Bind the port and start serving.

        Raises:
            StateError: the port cannot be had.
        """
        self._server = grpc.aio.server(
            interceptors=[_Unreadable(), PromServerInterceptor(enable_handling_time_histogram=True)],
            options=[
                ("grpc.max_receive_message_length", self._bounds.max_request_bytes),
                ("grpc.max_send_message_length", -1),
                ("grpc.so_reuseport", 0),
            ],
            maximum_concurrent_rpcs=self._bounds.max_connections,
        )
        add_GRPCInferenceServiceServicer_to_server(self._service, self._server)
        try:
            self._server.add_insecure_port(self._address)
        except RuntimeError:
            raise StateError(f"gRPC cannot listen on {self._address}; is the port taken? --grpc-port takes another.") from None
        await self._server.start()

    async def wait(self) -> None:
        """Wait until the server has stopped."""
        await self._server.wait_for_termination()

    async def stop(self) -> None:
        """Refuse new calls, and stop once calls in progress have finished or the grace time is over."""
        if self._server is not None:
            await self._server.stop(self._bounds.grace_seconds)
