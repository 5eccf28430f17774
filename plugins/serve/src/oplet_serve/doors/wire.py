"""The bytes of a large gRPC request, counted before they are read: an empty input takes two of them, and a hundred as an object."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice

import numpy as np

from oplet.schema.protobuf import BYTES, VARINT, signed, spans, varints
from oplet_serve.refusals import Refusal, check_count
from oplet_serve.values.tensors import MOST_DIMENSIONS, TensorSpec, stated_sizes

__all__ = ["check_message", "model_of"]

#: Numbers of fields in ModelInferRequest, its inputs, and their contents.
_NAME, _VERSION, _INPUTS, _OUTPUTS, _RAW = 1, 2, 5, 6, 7
_TENSOR_NAME, _DATATYPE, _SHAPE, _CONTENTS = 1, 2, 3, 5
_FP32, _FP64, _TEXTS = 6, 7, 8
#: Fields of a message, beside elements.
_MOST_FIELDS = 1 << 14
Span = tuple[int, int]


def model_of(data: bytes) -> tuple[str, str]:
    """Return the model's name and version from an encoded ModelInferRequest of gRPC.

    Raises:
        Refusal: the bytes are no message, or have too many fields.
    """
    found = {_NAME: b"", _VERSION: b""}
    for field, kind, (start, end) in _fields(data, (0, len(data))):
        if field in found and kind == BYTES:
            found[field] = data[start:end]
    return _text(found[_NAME]), _text(found[_VERSION])


def check_message(data: bytes, inputs: Mapping[str, TensorSpec], outputs: int) -> None:
    """Check a ModelInferRequest of KServe's gRPC protocol, still encoded, before memory is spent on decoding it.

    Args:
        inputs: the model's inputs.
        outputs: the number of its outputs.

    Raises:
        Refusal: the message has more inputs or asks for more outputs than the model has, or a tensor has more elements than its shape.
        TensorError: a tensor states a type or shape that the model's input does not take.
    """
    tensors: list[Span] = []
    counts = {_INPUTS: 0, _OUTPUTS: 0, _RAW: 0}
    for field, kind, span in _fields(data, (0, len(data))):
        if kind == BYTES and field in counts:
            counts[field] += 1
            if field == _INPUTS:
                tensors.append(span)
            elif field == _OUTPUTS:
                for _ in _fields(data, span):
                    pass
    check_count("inputs", counts[_INPUTS], len(inputs))
    check_count("outputs", counts[_OUTPUTS], outputs)
    check_count("raw_input_contents", counts[_RAW], len(inputs))
    for span in tensors:
        _check_tensor(data, span, inputs)


def _check_tensor(data: bytes, span: Span, inputs: Mapping[str, TensorSpec]) -> None:
    name = datatype = b""
    sizes: list[int] = []
    contents: list[Span] = []
    for field, kind, (start, end) in _fields(data, span):
        if field == _SHAPE and kind in (VARINT, BYTES):
            try:
                sizes += map(signed, islice(varints(data, start, end), MOST_DIMENSIONS + 1))
            except ValueError as error:
                raise _no_message(error) from error
            if len(sizes) > MOST_DIMENSIONS:
                raise Refusal(f"The shape of an input has more than {MOST_DIMENSIONS} sizes.")
        elif kind == BYTES:
            name = data[start:end] if field == _TENSOR_NAME else name
            datatype = data[start:end] if field == _DATATYPE else datatype
            contents += [(start, end)] if field == _CONTENTS else []
    spec = inputs.get(_text(name))
    if spec is None:
        raise Refusal(f"The model has no input {_text(name[:80])!r:.80}; its inputs are {', '.join(map(repr, inputs))}.")
    count = math.prod(stated_sizes(spec, _text(datatype), sizes))
    found = 0
    for each in contents:
        for field, kind, (start, end) in _fields(data, each, count + _MOST_FIELDS):
            found += _elements(data, field, kind, start, end)
            if found > count:
                raise Refusal(f"input '{spec.name}': {found} elements and more were given, but the shape {sizes} has {count}.")
    if contents and found != count:
        raise Refusal(f"input '{spec.name}': {found} elements were given, but the shape {sizes} has {count}.")


def _elements(data: bytes, field: int, kind: int, start: int, end: int) -> int:
    if kind != BYTES or field == _TEXTS:
        return 1
    if field in (_FP32, _FP64):
        return (end - start) // (4 if field == _FP32 else 8)
    return int(np.count_nonzero(np.frombuffer(data, np.uint8, end - start, start) < 0x80)) if end > start else 0


def _fields(data: bytes, span: Span, most: int = _MOST_FIELDS) -> Iterator[tuple[int, int, Span]]:
    """Yield the number, the kind and the place of each field's value.

    Raises:
        Refusal: there are more, or the bytes are no message.
    """
    try:
        for field, kind, start, end in spans(data, *span, most):
            yield field, kind, (start, end)
    except ValueError as error:
        raise _no_message(error) from error


def _text(found: bytes) -> str:
    return found.decode("utf-8", "replace")


def _no_message(error: ValueError) -> Refusal:
    return Refusal(f"The bytes are no message of the Open Inference Protocol: {error}.")
