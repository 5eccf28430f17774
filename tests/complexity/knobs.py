"""The numbers of a small model that say how much work it makes, and the model with other numbers in their place.

Nothing is listed by hand: the knobs are the dimensions of the tensors, the integers of small constants and of small inputs, and
whatever integers the declared options have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from oplet.builder import pack_flexbuffer
from oplet.ops.strings import bytes_needed
from oplet.ops.tensor import numpy_dtype
from oplet.schema import tables
from oplet.schema.decode import decode
from oplet.schema.encode import encode
from oplet.schema.enums import BuiltinOperator, TensorType
from oplet.schema.flexbuffers import read_flexbuffer
from oplet.schema.stablehlo_options import StableHLOCompositeOptions
from oplet.schema.table import Table

__all__ = ["Knob", "Knobs", "build", "knobs_of", "ops_of"]

#: ("dim", subgraph, tensor, axis), ("value", subgraph, tensor, position), ("fed", input, position), ("words", input),
#: ("option", subgraph, node, field, position), ("custom", subgraph, node, key, position), ("operands", subgraph, node),
#: ("results", subgraph, node), ("rank", number) or ("nodes", subgraph, node).
Knob = tuple[Any, ...]
Knobs = Mapping[Knob, int]

#: Constants with more elements are data, not sizes; larger ones than so many bytes are made inside of the model.
_FEW, _IN_FILE = 16, 256

#: Operands, results, nodes and dimensions, which take a few bytes each in the file.
_MOST, _MOST_RANK = 10_000, 128


@lru_cache(4)
def _root(seed: bytes) -> tables.Model:
    return decode(tables.Model, memoryview(seed))


def _fresh(seed: bytes) -> tables.Model:
    return decode(tables.Model, memoryview(seed))


def ops_of(seed: bytes) -> set[str]:
    """What the operators and composites of a model are called."""
    root = _root(seed)
    nodes = [node for graph in root.subgraphs or [] for node in graph.operators or []]
    options = [node.builtin_options_2 for node in nodes]
    composites = {table.name for table in options if isinstance(table, StableHLOCompositeOptions) and table.name}
    return {_op(code) for code in root.operator_codes or []} | composites


def _op(code: tables.OperatorCode) -> str:
    return code.custom_code or BuiltinOperator(max(code.builtin_code, code.deprecated_builtin_code)).name


def knobs_of(seed: bytes) -> dict[Knob, int]:
    """Every knob of a model, with what it is set to."""
    found: dict[Knob, int] = {}
    root = _root(seed)
    for s, graph in enumerate(root.subgraphs or []):
        for t, tensor in enumerate(graph.tensors or []):
            for axis, dim in enumerate(_shape(tensor)):
                found["dim", s, t, axis] = dim
            values = _integers(root, tensor)
            if values is not None:
                found.update({("value", s, t, i): int(value) for i, value in enumerate(values)})
        for n, node in enumerate(graph.operators or []):
            for table in (node.builtin_options, node.builtin_options_2):
                found.update({("option", s, n, *key): value for key, value in _options(table)})
            found.update({("custom", s, n, *key): value for key, value in _custom(node)})
            found["operands", s, n] = 0 if node.inputs is None else node.inputs.size
            found["results", s, n] = 0 if node.outputs is None else node.outputs.size
            found["nodes", s, n] = 1
    graph = (root.subgraphs or [])[0]
    for i, index in enumerate([] if graph.inputs is None else graph.inputs.tolist()):
        tensor = (graph.tensors or [])[index]
        size = int(np.prod(_shape(tensor), dtype=int))
        if numpy_dtype(tensor.type).kind in "iu" and 0 < size <= _FEW:
            found.update({("fed", i, position): 1 for position in range(size)})
        if tensor.type == TensorType.STRING:
            found["words", i] = 1
    for number in range(4):
        found["rank", number] = 0
    return found


def _shape(tensor: tables.Tensor) -> list[int]:
    return [] if tensor.shape is None else tensor.shape.tolist()


def _data(root: tables.Model, tensor: tables.Tensor) -> Any:
    buffers = root.buffers or []
    return buffers[tensor.buffer].data if 0 < tensor.buffer < len(buffers) else None


def _integers(root: tables.Model, tensor: tables.Tensor) -> Any:
    """The numbers of a small constant of plain integers."""
    data = _data(root, tensor)
    if data is None or tensor.quantization is not None or tensor.type not in (TensorType.INT32, TensorType.INT64):
        return None
    values = np.array(data, np.uint8).view(numpy_dtype(tensor.type))
    return values if 0 < values.size <= _FEW else None


def _options(table: Table | None) -> Iterator[tuple[tuple[Any, ...], int]]:
    for field in table.fields if table is not None else ():
        value = getattr(table, field.name)
        if field.kind == "scalar" and field.enum is None and field.number not in ("bool", "float32"):
            yield (field.name, -1), int(value)
        elif field.kind == "vector" and field.dtype.kind in "iu" and field.dtype.itemsize > 1 and value is not None:
            yield from (((field.name, i), int(item)) for i, item in enumerate(value[:_FEW]))


def _custom(node: tables.Operator) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The integers of a map, or of the struct of 32-bit numbers that some custom operators have in its place."""
    data = _custom_bytes(node)
    if not data:
        return
    options = _map(data)
    if options is None:
        numbers = np.frombuffer(data[: len(data) // 4 * 4], np.int32)
        yield from ((("", i), int(value)) for i, value in enumerate(numbers[:_FEW]))
        return
    for key, value in options.items():
        if isinstance(value, int) and not isinstance(value, bool):
            yield (key, -1), value
        elif isinstance(value, list):
            yield from (((key, i), item) for i, item in enumerate(value[:_FEW]) if type(item) is int)


def _custom_bytes(node: tables.Operator) -> bytes:
    return b"" if node.custom_options is None else node.custom_options.tobytes()


def _map(data: bytes) -> dict[str, Any] | None:
    try:
        value = read_flexbuffer(data)
    except Exception:
        return None
    return value if isinstance(value, dict) and value else None


def build(seed: bytes, knobs: Knobs, made: str = "tiled") -> bytes:
    """The model with other numbers.

    Args:
        knobs: what to set to what.
        made: where large constants come from: "tiled", a TILE of the seed's constant that is folded, or "fed".
    """
    root = _fresh(seed)
    graphs = root.subgraphs or []
    grown: dict[tuple[int, int], list[int]] = {}
    for knob, value in knobs.items():
        if knob[0] == "dim":
            grown.setdefault((knob[1], knob[2]), _shape((graphs[knob[1]].tensors or [])[knob[2]]))[knob[3]] = value
    for knob, value in knobs.items():
        if knob[0] == "value":
            _set_value(root, (graphs[knob[1]].tensors or [])[knob[2]], knob[3], value)
    for knob, value in knobs.items():
        kind = knob[0]
        if kind == "option":
            node = (graphs[knob[1]].operators or [])[knob[2]]
            for table in (node.builtin_options, node.builtin_options_2):
                _set_option(table, knob[3], knob[4], value)
        elif kind == "custom":
            _set_custom((graphs[knob[1]].operators or [])[knob[2]], knob[3], knob[4], value)
        elif kind in ("operands", "results"):
            _multiply(graphs[knob[1]], knob[2], kind, value)
        elif kind == "nodes":
            node = (graphs[knob[1]].operators or [])[knob[2]]
            graphs[knob[1]].operators = [node] * (min(value, _MOST) - 1) + list(graphs[knob[1]].operators or [])
    for (s, t), shape in grown.items():
        _grow(root, s, t, shape, made)
    for knob, value in knobs.items():
        if knob[0] == "rank":
            _raise_rank(root, knob[1], value)
    return encode(root)


def _set_value(root: tables.Model, tensor: tables.Tensor, position: int, value: int) -> None:
    dtype = numpy_dtype(tensor.type)
    values = np.array(_data(root, tensor), np.uint8).view(dtype)
    values[position] = min(value, np.iinfo(dtype).max)
    _own_buffer(root, tensor, values.view(np.uint8))


def _own_buffer(root: tables.Model, tensor: tables.Tensor, data: Any) -> None:
    root.buffers = [*(root.buffers or []), tables.Buffer(data=data)]
    tensor.buffer = len(root.buffers) - 1


def _set_option(table: Table | None, name: str, position: int, value: int) -> None:
    for field in table.fields if table is not None else ():
        if field.name == name and field.kind == "vector":
            values = np.array(getattr(table, name))
            values[position] = min(value, np.iinfo(values.dtype).max)
            setattr(table, name, values)
        elif field.name == name:
            setattr(table, name, min(value, int(np.iinfo(field.dtype).max)))


def _set_custom(node: tables.Operator, key: str, position: int, value: int) -> None:
    data = _custom_bytes(node)
    if not key:
        numbers = np.frombuffer(data, np.uint8).copy()
        numbers[: len(data) // 4 * 4].view(np.int32)[position] = min(value, 2**31 - 1)
        node.custom_options = numbers
        return
    options = _map(data) or {}
    if position < 0:
        options[key] = value
    else:
        options[key] = [*options[key][:position], value, *options[key][position + 1 :]]
    node.custom_options = np.frombuffer(pack_flexbuffer(options), np.uint8)


def _multiply(graph: tables.SubGraph, number: int, kind: str, count: int) -> None:
    """So many operands: the last one again; or so many results, each a tensor of its own."""
    node = (graph.operators or [])[number]
    given = node.inputs if kind == "operands" else node.outputs
    count = max(0, min(count, _MOST) - (0 if given is None else given.size))
    if kind == "operands" and node.inputs is not None and node.inputs.size:
        node.inputs = np.concatenate([node.inputs, np.repeat(node.inputs[-1:], count)])
    elif kind == "results" and node.outputs is not None and node.outputs.size:
        tensors = list(graph.tensors or [])
        first = len(tensors)
        graph.tensors = tensors + [tensors[int(node.outputs[-1])]] * count
        node.outputs = np.concatenate([node.outputs, np.arange(first, first + count, dtype=np.int32)])


def _grow(root: tables.Model, s: int, t: int, shape: Sequence[int], made: str) -> None:
    """Give a tensor another shape, and a constant what fills it."""
    graph = (root.subgraphs or [])[s]
    tensor = (graph.tensors or [])[t]
    old, data = _shape(tensor), _data(root, tensor)
    _one_scale(tensor, shape)
    tensor.shape_signature = None
    new = np.array(np.clip(shape, -(2**31), 2**31 - 1), np.int32)
    if data is None:
        tensor.shape = new
        return
    needed = bytes_needed(new.tolist(), TensorType(tensor.type))
    if needed is not None and 0 <= needed <= max(_IN_FILE, data.size) and tensor.type != TensorType.STRING:
        _own_buffer(root, tensor, np.resize(data, needed) if data.size else np.zeros(needed, np.uint8))
        tensor.shape = new
        return
    if made == "tiled" and min(old, default=0) > 0 and not any(n % o for n, o in zip(new.tolist(), old)):
        _tile(root, graph, t, new, [n // o for n, o in zip(new.tolist(), old)])
    elif s == 0:
        tensor.shape, tensor.buffer = new, 0
        graph.inputs = np.append([] if graph.inputs is None else graph.inputs, t).astype(np.int32)
    else:
        tensor.shape = new


def _tile(root: tables.Model, graph: tables.SubGraph, t: int, shape: Any, times: Sequence[int]) -> None:
    tensors = list(graph.tensors or [])
    small = tensors[t]
    large = tables.Tensor(shape=shape, type=small.type, quantization=small.quantization, name="large")
    factors = tables.Tensor(shape=np.array([len(times)], np.int32), type=TensorType.INT32, name="times")
    _own_buffer(root, factors, np.array(times, np.int32).view(np.uint8))
    graph.tensors = [*tensors[:t], large, *tensors[t + 1 :], small, factors]
    root.operator_codes = [
        *(root.operator_codes or []),
        tables.OperatorCode(builtin_code=BuiltinOperator.TILE, deprecated_builtin_code=BuiltinOperator.TILE, version=3),
    ]
    node = tables.Operator(
        opcode_index=len(root.operator_codes) - 1,
        inputs=np.array([len(tensors), len(tensors) + 1], np.int32),
        outputs=np.array([t], np.int32),
    )
    graph.operators = [node, *(graph.operators or [])]


def _one_scale(tensor: tables.Tensor, shape: Sequence[int]) -> None:
    """Scales per channel would have to grow with the channels."""
    quantization = tensor.quantization
    if quantization is None or quantization.scale is None or quantization.scale.size < 2:
        return
    if shape[quantization.quantized_dimension] != quantization.scale.size:
        quantization.scale = quantization.scale[:1]
        quantization.zero_point = None if quantization.zero_point is None else quantization.zero_point[:1]
        quantization.quantized_dimension = 0


def _raise_rank(root: tables.Model, which: int, count: int) -> None:
    """More dimensions in front: ones in all tensors of the highest rank (0), in all (1), in the first (2); twos (3)."""
    count = min(max(count, 0), _MOST_RANK)
    for graph in root.subgraphs or []:
        tensors = graph.tensors or []
        ranks = [len(_shape(tensor)) for tensor in tensors]
        for t, tensor in enumerate(list(tensors)):
            if (which in (0, 3) and ranks[t] < max(ranks)) or (which == 2 and t):
                continue
            if _integers(root, tensor) is not None:
                continue
            if which == 3 and _data(root, tensor) is not None:
                continue
            tensor.shape = np.array([2 if which == 3 else 1] * count + _shape(tensor), np.int32)
            tensor.shape_signature = None
            if tensor.quantization is not None and tensor.quantization.quantized_dimension:
                tensor.quantization.quantized_dimension += count
