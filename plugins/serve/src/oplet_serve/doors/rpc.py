"""The gRPC service: the protocol's methods, and one-sentence error statuses."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import AsyncIterator, Awaitable
from dataclasses import dataclass
from typing import Any

import grpc
from anyio import fail_after
from google.protobuf.message import DecodeError
from mlserver.errors import MLServerError
from mlserver.grpc import dataplane_pb2 as pb
from mlserver.grpc.converters import ModelMetadataResponseConverter
from mlserver.grpc.dataplane_pb2_grpc import GRPCInferenceServiceServicer, add_GRPCInferenceServiceServicer_to_server
from mlserver.grpc.interceptors import PromServerInterceptor
from mlserver.handlers import DataPlane
from mlserver.registry import MultiModelRegistry
from mlserver.types import InferenceResponse, Parameters, RequestInput, RequestOutput

from oplet.errors import OpletError, StateError, text_of
from oplet_serve.doors.bounds import Bodies, Bounds, Share, written
from oplet_serve.doors.threads import WorkerThreads
from oplet_serve.doors.wire import check_message, model_of
from oplet_serve.refusals import BAD, BUSY, CONFLICT, LARGE, LATE, NO_MEMORY, UNKNOWN, Refusal, check_count, refusal_of
from oplet_serve.runtime import ArrayRequest
from oplet_serve.state.sequences import PARAMETERS
from oplet_serve.values.slices import SMALL, SMALL_FIRST, portions
from oplet_serve.values.tensors import HALVES, MOST_DIMENSIONS, Scalars, as_raw

__all__ = ["start_rpc"]

_LOGGER = logging.getLogger("mlserver.oplet")
#: Characters of a message: a status travels in headers, which clients bound to 8 KiB, and a letter may take nine bytes there.
_LONGEST = 800
#: Idle times after which a connection takes no more calls, and again as many after which those that it has end.
_AGE = 10

#: The typed fields by the datatypes that they carry, and the numpy dtypes of their elements.
_FIELDS = {name: f"{name.lower()}_contents" for name in ("BOOL", "INT64", "UINT64", "FP32", "FP64", "BYTES")}
_FIELDS |= dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents") | dict.fromkeys(
    ("UINT8", "UINT16", "UINT32"), "uint_contents"
)
_DTYPES = {f"{name}_contents": name for name in ("bool", "int64", "uint64")}
_DTYPES |= {"int_contents": "int32", "uint_contents": "uint32", "fp32_contents": "float32", "fp64_contents": "float64"}
_CODES = {
    BAD: grpc.StatusCode.INVALID_ARGUMENT,
    UNKNOWN: grpc.StatusCode.NOT_FOUND,
    LATE: grpc.StatusCode.DEADLINE_EXCEEDED,
    CONFLICT: grpc.StatusCode.ABORTED,
    LARGE: grpc.StatusCode.RESOURCE_EXHAUSTED,
    422: grpc.StatusCode.FAILED_PRECONDITION,
    BUSY: grpc.StatusCode.RESOURCE_EXHAUSTED,
}
_NO_MESSAGE = "The bytes are no message of the Open Inference Protocol."


async def _answered(context: Any, work: Awaitable[Any]) -> Any:
    """Await `work`; turn an exception into the call's gRPC error status."""
    try:
        return await work
    except MLServerError as error:
        code, told = _CODES.get(error.status_code, grpc.StatusCode.INTERNAL), text_of(error)
    except MemoryError:
        code, told = _CODES[LARGE], text_of(NO_MEMORY)
    except Exception as error:
        _LOGGER.exception("A call failed.")
        code, told = grpc.StatusCode.INTERNAL, f"The server failed, and its log says where: {text_of(error, named=True)}."
    await context.abort(code, told[:_LONGEST])


@dataclass
class _Service(GRPCInferenceServiceServicer):  # type: ignore[misc, unused-ignore]
    """gRPC service: one method per endpoint."""

    _data_plane: DataPlane
    _registry: MultiModelRegistry
    _bodies: Bodies
    _threads: WorkerThreads

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
        return await _answered(context, self._infer(request, self._share(context)))

    async def ModelStreamInfer(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        share = self._share(context)
        async for request in requests:
            yield await _answered(context, self._infer(request, share))
            share.release()  # the client has taken the response

    async def RepositoryIndex(self, request: Any, context: Any) -> Any:
        models, index = await self._registry.get_models(), pb.RepositoryIndexResponse.ModelIndex
        found = [index(name=m.name, version=m.version or "", state="READY" if m.ready else "UNAVAILABLE") for m in models]
        return pb.RepositoryIndexResponse(models=found)

    async def RepositoryModelLoad(self, request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Clients do not load models here; restart the server with them.")

    async def RepositoryModelUnload(self, request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.UNIMPLEMENTED, "Clients do not unload models here; restart the server without them.")

    def _share(self, context: Any) -> Share:
        """Return a counter of bytes that are gone when the call is over."""
        share = Share(self._bodies)
        context.add_done_callback(share.release)
        return share

    async def _infer(self, data: bytes, share: Share) -> Any:
        share.add(len(data))
        with SMALL_FIRST if len(data) <= SMALL else contextlib.nullcontext():
            made = await self._inferred(data, share)
        share.replace(len(made))
        return made

    async def _inferred(self, data: bytes, share: Share) -> Any:
        large = len(data) > SMALL
        name, version = await self._threads.run(model_of, data, large=True) if large else ("", "")
        request = None if large else _parsed(data)
        if request is not None:
            name, version = request.model_name, request.model_version
        model = await self._registry.get_model(name, version or None)  # before there is a metric of that name
        if len(data) > model.served().most_bytes:
            raise Refusal(f"The message is larger than {model.served().most_bytes} bytes, the most that this model takes.", LARGE)
        read = functools.partial(_read, data, request, model)
        del request
        payload, raw = await self._threads.run(read, large=True) if large else read()
        del data, read
        response = await self._data_plane.infer(payload, name, version or None)
        return await written(share, self._threads, response, _written, raw)


def _parsed(data: bytes) -> Any:
    try:
        return pb.ModelInferRequest.FromString(data)
    except DecodeError:
        raise Refusal(_NO_MESSAGE) from None


def _read(data: bytes, request: Any, model: Any) -> tuple[ArrayRequest, bool]:
    """Parse the bytes of a gRPC message into a request; tell whether its tensors are raw.

    Args:
        request: the message, None if it is so large that what is in it is counted before it is made.
        model: the runtime of the model.

    Raises:
        Refusal: it is malformed, or has more tensors or elements than the model and its shapes.
    """
    if request is None:
        try:
            check_message(data, model.served().inputs, len(model.outputs or ()))
        except OpletError as error:
            raise refusal_of(error) from None
        request = _parsed(data)
    raw = request.raw_input_contents
    if not request.inputs:
        raise Refusal("The request has no 'inputs', the inputs' tensors.")
    check_count("inputs", len(request.inputs), len(model.inputs or ()))
    check_count("outputs", len(request.outputs), len(model.outputs or ()))
    if raw and len(raw) != len(request.inputs):
        raise Refusal(f"The request has {len(raw)} raw_input_contents for {len(request.inputs)} inputs; give one for each.")
    inputs = []
    for number, tensor in enumerate(request.inputs):
        if raw:
            if tensor.HasField("contents"):
                raise Refusal(f"Input {number} has contents, and the request raw_input_contents; give one of the two.")
            elements: Any = raw[number]
        else:
            elements = _contents(tensor, number)
        if len(tensor.shape) > MOST_DIMENSIONS:
            raise Refusal(f"Input {number} has a 'shape' of more than {MOST_DIMENSIONS} sizes.")
        content_type = tensor.parameters["content_type"].string_param if "content_type" in tensor.parameters else None
        inputs.append(
            RequestInput.model_construct(
                name=tensor.name,
                shape=list(tensor.shape),
                datatype=tensor.datatype,
                parameters=Parameters.model_construct(content_type=content_type),
                data=elements,
            )
        )
    given = {name: request.parameters[name] for name in PARAMETERS if name in request.parameters}
    told = {name: getattr(value, value.WhichOneof("parameter_choice") or "bool_param") for name, value in given.items()}
    made_request: ArrayRequest = ArrayRequest.model_construct(
        id=request.id or None,
        parameters=Parameters.model_construct(**told),
        inputs=inputs,
        outputs=[RequestOutput.model_construct(name=output.name, parameters=None) for output in request.outputs],
    )
    return made_request, bool(raw)


def _contents(tensor: Any, number: int) -> Any:
    """Return the elements of the typed contents field for the tensor's datatype, which none are made of yet."""
    field = _FIELDS.get(tensor.datatype)
    if field is None:
        if tensor.datatype in HALVES:
            raise Refusal(f"Input {number} is {tensor.datatype}, which gRPC carries in raw_input_contents only.")
        raise Refusal(f"Input {number} has the datatype {tensor.datatype!r:.40}, which the protocol does not have.")
    filled = [descriptor.name for descriptor, _ in tensor.contents.ListFields()]
    if filled and filled != [field]:
        raise Refusal(f"Input {number} has its elements in {', '.join(filled)}, but {tensor.datatype} goes into {field}.")
    values = getattr(tensor.contents, field)
    return Scalars(values, _DTYPES[field]) if field in _DTYPES else values


def _written(response: InferenceResponse, raw: bool) -> bytes:
    """Return a response as a message's bytes."""
    raw = raw or any(output.datatype in HALVES for output in response.outputs)
    made = pb.ModelInferResponse(model_name=response.model_name, model_version=response.model_version or "", id=response.id or "")
    for output in response.outputs:
        tensor = made.outputs.add(name=output.name, datatype=output.datatype, shape=output.shape)
        if raw:
            made.raw_output_contents.append(as_raw(output.data))
        else:
            for portion in portions(output.data.reshape(-1)):
                getattr(tensor.contents, _FIELDS[output.datatype]).extend(portion.tolist())
    return bytes(made.SerializeToString())


class _Receiving(grpc.aio.ServerInterceptor):  # type: ignore[misc, unused-ignore]
    """Receives messages within a time, as calls are bounded and one that sends nothing would hold its place; and parses them.

    A message that cannot be parsed gets an invalid-argument error, not gRPC's internal one. Those with tensors are left as bytes, as what
    is in them is counted first; and so are their answers, which may be large.

    Args:
        seconds: the time in which a call must send its next message.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        handler = await continuation(details)
        if handler is None:
            return None
        in_bytes = details.method.endswith(("/ModelInfer", "/ModelStreamInfer"))
        parse = None if in_bytes else handler.request_deserializer
        serialize = None if in_bytes else handler.response_serializer

        if handler.stream_stream is not None:

            async def stream(messages: Any, context: Any) -> AsyncIterator[Any]:
                async for response in handler.stream_stream(self._received(messages, parse, context), context):
                    yield response

            return grpc.stream_stream_rpc_method_handler(stream, None, serialize)

        # As a stream: else gRPC waits for the one message before it hands the call over, and for ever.
        async def unary(messages: Any, context: Any) -> Any:
            async for request in self._received(messages, parse, context):
                return await handler.unary_unary(request, context)
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The call has no message.")

        return grpc.stream_unary_rpc_method_handler(unary, None, serialize)

    async def _received(self, messages: Any, parse: Any, context: Any) -> AsyncIterator[Any]:
        iterator = messages.__aiter__()
        while True:
            try:
                with fail_after(self._seconds):
                    data = await iterator.__anext__()
            except StopAsyncIteration:
                return
            except TimeoutError:
                told = f"The call has sent no message for {self._seconds:g} s; a stream is closed then."
                await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, told)
            try:
                if parse and len(data) > SMALL:
                    raise DecodeError
                request = parse(data) if parse else data
            except DecodeError:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, _NO_MESSAGE)
            del data
            yield request


async def start_rpc(address: tuple[str, int], bounds: Bounds, *service: Any) -> Any:
    """Bind the address, and serve; return the gRPC server.

    Args:
        address: where to listen: a host and a port.
        bounds: the limits of requests: size, number and duration.
        service: MLServer's handlers, the models, the counter of the bytes of all requests in progress, and the threads in which
            requests are parsed and responses serialized.

    Raises:
        StateError: the port cannot be bound.
    """
    host, port = address
    where, idle = f"[{host}]:{port}" if ":" in host else f"{host}:{port}", max(1, round(bounds.idle_seconds * 1000))
    server = grpc.aio.server(
        interceptors=[_Receiving(bounds.idle_seconds), PromServerInterceptor(enable_handling_time_histogram=True)],
        options=[
            ("grpc.max_receive_message_length", bounds.max_message_bytes),
            ("grpc.max_send_message_length", -1),
            ("grpc.so_reuseport", 0),
            # The window of a call is this, and what its message lacks; else it grows to megabytes of what is refused or given up.
            ("grpc.http2.bdp_probe", 0),
            ("grpc.http2.lookahead_bytes", 1 << 20),
            ("grpc.max_connection_idle_ms", idle),
            ("grpc.server_handshake_timeout_ms", idle),
            # Else calls whose responses nobody reads would stay for ever.
            ("grpc.max_connection_age_ms", _AGE * idle),
            ("grpc.max_connection_age_grace_ms", _AGE * idle),
        ],
        maximum_concurrent_rpcs=bounds.max_connections,
    )
    add_GRPCInferenceServiceServicer_to_server(_Service(*service), server)
    try:
        server.add_insecure_port(where)
    except RuntimeError:
        raise StateError(f"gRPC cannot listen on {where}; is the port taken? --grpc-port takes another.") from None
    await server.start()
    return server
