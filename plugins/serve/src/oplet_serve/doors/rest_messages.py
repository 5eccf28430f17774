"""REST requests and responses: JSON, and the protocol's binary tensor extension."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from mlserver.types import InferenceResponse, Parameters, RequestInput, RequestOutput

from oplet_serve.doors.json_document import read_document
from oplet_serve.refusals import Refusal, check_count
from oplet_serve.runtime import ArrayRequest
from oplet_serve.state.sequences import PARAMETERS
from oplet_serve.values.slices import dumped
from oplet_serve.values.tensors import as_json, as_raw

__all__ = ["HEADER", "binary_outputs", "read_request", "written_response"]

#: The header with the length of the JSON where raw tensors follow.
HEADER = "inference-header-content-length"


def read_request(body: bytes, json_length: str | None, inputs_of_model: int, outputs_of_model: int) -> ArrayRequest:
    """Parse a request body: JSON, followed by raw tensors if `json_length` is given.

    Args:
        json_length: the header Inference-Header-Content-Length, the bytes of the JSON part; None if all of the body is JSON.
        inputs_of_model: the number of the model's inputs, the most that a request may have.
        outputs_of_model: the number of the model's outputs, the most that a request may ask for.

    Raises:
        Refusal: the body is malformed, or has more tensors than the model.
    """
    end = len(body)
    if json_length is not None:
        if not (json_length.isascii() and json_length.isdigit() and len(json_length) < 16 and int(json_length) <= end):
            raise Refusal(f"The header {HEADER} is no length within the {end} bytes of the body.")
        end = int(json_length)
    given = _object(read_document(body[:end], inputs_of_model + outputs_of_model), "The request")
    inputs = given.get("inputs")
    if not isinstance(inputs, list) or not inputs:
        raise Refusal("The request has no 'inputs', a list of the inputs' tensors.")
    check_count("inputs", len(inputs), inputs_of_model)
    outputs = given.get("outputs")
    if outputs is not None and not isinstance(outputs, list):
        raise Refusal("The request's 'outputs' is no list.")
    check_count("outputs", len(outputs or ()), outputs_of_model)
    raw, place = memoryview(body)[end:], 0
    made = []
    for number, tensor in enumerate(inputs):
        made_tensor, place = _input(_object(tensor, f"Input {number}"), number, raw, place)
        made.append(made_tensor)
    if place != len(raw):
        raise Refusal(f"The body has {len(raw)} bytes behind its JSON, but the inputs' binary_data_size are {place} together.")
    request_id = given.get("id")
    if request_id is not None and not isinstance(request_id, str):
        raise Refusal("The request's 'id' is no string.")
    made_request: ArrayRequest = ArrayRequest.model_construct(
        id=request_id,
        parameters=_parameters(given, "The request"),
        inputs=made,
        outputs=[_output(_object(output, f"Output {number}"), number) for number, output in enumerate(outputs or ())],
    )
    return made_request


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Refusal(f"{what} is no JSON object.")
    return value


def _parameters(given: Mapping[str, Any], what: str) -> Parameters:
    found = given.get("parameters")
    if found is None:
        return Parameters()
    found = dict(_object(found, f"'parameters' of {what[0].lower()}{what[1:]}"))
    content_type = found.pop("content_type", None)
    found.pop("headers", None)
    if content_type is not None and not isinstance(content_type, str):
        raise Refusal(f"{what} has a 'content_type' that is no string.")
    return Parameters.model_construct(content_type=content_type, **{key: value for key, value in found.items() if key in _KNOWN})


#: The parameters of the binary extension and of sequences, all others have no meaning here.
_KNOWN = ("binary_data", "binary_data_size", "binary_data_output", *PARAMETERS)


def _name(given: Mapping[str, Any], what: str) -> str:
    name = given.get("name")
    if not isinstance(name, str):
        raise Refusal(f"{what} has no 'name'.")
    return name


def _input(given: Mapping[str, Any], number: int, raw: memoryview, place: int) -> tuple[RequestInput, int]:
    what = f"Input {number}"
    parameters = _parameters(given, what)
    data: object = given.get("data")
    size = getattr(parameters, "binary_data_size", None)
    if size is not None:
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= len(raw) - place or data is not None:
            raise Refusal(
                f"{what} has a binary_data_size that does not fit the {len(raw) - place} bytes left, or 'data' as well."
            )
        data = raw[place : place + size]
        place += size
    tensor = RequestInput.model_construct(
        name=_name(given, what), shape=given.get("shape"), datatype=given.get("datatype"), parameters=parameters, data=data
    )
    return tensor, place


def _output(given: Mapping[str, Any], number: int) -> RequestOutput:
    what = f"Output {number}"
    return RequestOutput.model_construct(name=_name(given, what), parameters=_parameters(given, what))


def binary_outputs(request: ArrayRequest, names: list[str]) -> set[str]:
    """Return the names of the outputs that the request wants as raw bytes."""
    every = getattr(request.parameters, "binary_data_output", False) is True
    asked = {output.name: getattr(output.parameters, "binary_data", None) for output in request.outputs or ()}
    return {name for name in names if asked.get(name) is True or (every and asked.get(name) is None)}


def written_response(response: InferenceResponse, binary: set[str]) -> tuple[bytes, int | None]:
    """Serialize a response; return the body, and the length of its JSON part if raw tensors follow it.

    Args:
        binary: the outputs to write as raw bytes.
    """
    outputs, tail = [], []
    for output in response.outputs:
        told: dict[str, Any] = {"name": output.name, "datatype": output.datatype, "shape": output.shape}
        if output.name in binary:
            tail.append(as_raw(output.data))
            data = b""
            told["parameters"] = {"binary_data_size": len(tail[-1])}
        else:
            elements, in_base64 = as_json(output.data)
            if in_base64:
                told["parameters"] = {"content_type": "base64"}
            data = b',"data":' + dumped(elements)
        outputs.append(orjson.dumps(told)[:-1] + data + b"}")
    head: dict[str, Any] = {"model_name": response.model_name, "id": response.id}
    if response.model_version:
        head["model_version"] = response.model_version
    text = b"".join([orjson.dumps(head)[:-1], b',"outputs":[', b",".join(outputs), b"]}"])
    return (b"".join([text, *tail]), len(text)) if binary else (text, None)
