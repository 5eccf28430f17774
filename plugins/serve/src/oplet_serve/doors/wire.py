"""The bytes of a large gRPC request, counted before they are read: an empty input takes two of them, and a hundred as an object."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from oplet_serve.refusals import Refusal, check_count
from oplet_serve.values.tensors import MOST_DIMENSIONS, TensorSpec, stated_sizes

__all__ = ["check_message", "model_of"]

_VARINT, _FIXED64, _BYTES, _GROUP, _GROUP_END, _FIXED32 = range(6)
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
        if field in found and kind == _BYTES:
            found[field] = data[start:end]
    return _text(found[_NAME]), _text(found[_VERSION])


def check_message(data: bytes, inputs: Mapping[str, TensorSpec], outputs: int) -> None:
    """Check a ModelInferRequest of KServe's gRPC protocol, still encoded, before memory is spent on decoding it.

    Args:
        data: the message.
        inputs: the model's inputs.
        outputs: the number of its outputs.

    Raises:
        Refusal: the message has more inputs or asks for more outputs than the model has, or a tensor has more elements than its shape.
        TensorError: a tensor states a type or shape that the model's input does not take.
    """
    tensors: list[Span] = []
    counts = {_INPUTS: 0, _OUTPUTS: 0, _RAW: 0}
    for field, kind, span in _fields(data, (0, len(data))):
        if kind == _BYTES and field in counts:
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
        if field == _SHAPE:
            sizes += _varints(data, start, end) if kind == _BYTES else [_signed(_varint(data, start, end)[0])]
            if len(sizes) > MOST_DIMENSIONS:
                raise Refusal(f"The shape of an input has more than {MOST_DIMENSIONS} sizes.")
        elif kind == _BYTES:
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
    if kind != _BYTES or field == _TEXTS:
        return 1
    if field in (_FP32, _FP64):
        return (end - start) // (4 if field == _FP32 else 8)
    return int(np.count_nonzero(np.frombuffer(data, np.uint8, end - start, start) < 0x80)) if end > start else 0


def _fields(data: bytes, span: Span, most: int = _MOST_FIELDS) -> Iterator[tuple[int, int, Span]]:
    """Yield the number, the kind and the place of each field's value.

    Raises:
        Refusal: there are more, or the bytes are no message.
    """
    place, end = span
    count = 0
    while place < end:
        count += 1
        if count > most:
            raise Refusal(f"The request has a message of more than {most} fields.")
        tag, place = _varint(data, place, end)
        kind, start = tag & 7, place
        if kind == _VARINT:
            _, place = _varint(data, place, end)
        elif kind == _BYTES:
            length, start = _varint(data, place, end)
            place = start + length
        elif kind in (_FIXED32, _FIXED64):
            place += 4 if kind == _FIXED32 else 8
        elif kind not in (_GROUP, _GROUP_END):
            raise _no_message()
        if place > end:
            raise _no_message()
        yield tag >> 3, kind, (start, place)


def _varint(data: bytes, place: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while place < end and shift < 70:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place += 1
        if byte < 0x80:
            return value, place
        shift += 7
    raise _no_message()


def _varints(data: bytes, start: int, end: int) -> list[int]:
    found: list[int] = []
    while start < end and len(found) <= MOST_DIMENSIONS:
        value, start = _varint(data, start, end)
        found.append(_signed(value))
    return found


def _signed(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _text(found: bytes) -> str:
    return found.decode("utf-8", "replace")


def _no_message() -> Refusal:
    return Refusal("The bytes are no message of the Open Inference Protocol.")
