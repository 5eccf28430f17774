"""Parts of a file that share their bytes are refused before they take more memory than the file, and are read where they are few."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from oplet import Interpreter, Limits, Model, ModelBuilder
from oplet.errors import LimitError, ModelError
from oplet.schema import tables
from oplet.schema.decode import decode
from oplet.schema.encode import encode
from oplet.schema.enums import TensorType
from oplet.schema.options import ShapeOptions

from .harness import refusal, sharing_tensors

_WORD = struct.Struct("<I")


def overlapping(count: int, size: int, letter: bytes) -> bytes:
    """Strings of about `size` bytes at every fourth byte, each of which ends where all end.

    Args:
        letter: what they are made of, four bytes.
    """
    end = 4 * count + size // 4 * 4
    lengths = b"".join(_WORD.pack(end - 4 * number - 4) for number in range(count))
    return lengths + letter * (size // 4) + bytes(4)


@pytest.mark.parametrize("letter", [b"abcd", "\N{GRINNING FACE}".encode(), "\xe9\xe8".encode(), b"\xff\xff\xff\xff"])
@pytest.mark.parametrize("count", [3, 15], ids=["one by one", "together"])
def test_names_that_share_their_bytes_are_refused(letter: bytes, count: int) -> None:
    data = sharing_tensors(count, 3, overlapping(count, 1 << 20, letter), step=4)
    refusal(lambda: Interpreter(model_content=data), "a string shares its bytes with too many others")


def test_shapes_that_share_their_bytes_are_refused() -> None:
    shape = np.ones(250_000, np.int32)
    data = sharing_tensors(8, 0, _WORD.pack(shape.size) + shape.tobytes())
    refusal(lambda: Interpreter(model_content=data), "Tensor.shape shares its bytes with too many others")


def _follow(data: bytes | bytearray, position: int) -> int:
    return position + int(_WORD.unpack_from(data, position)[0])


def _field(data: bytes | bytearray, table: int, id: int) -> int:
    vtable = table - int(struct.unpack_from("<i", data, table)[0])
    return table + int(struct.unpack_from("<H", data, vtable + 4 + 2 * id)[0])


def sharing_subgraphs(count: int, shared: tables.SubGraph, field: int) -> bytes:
    """Subgraphs that all have a vector of the last one's, by the number of its field: offsets lead forwards."""
    other = tables.SubGraph(**{name: [type(value[0])()] for name, value in vars(shared).items()})
    data = bytearray(encode(tables.Model(version=3, subgraphs=[*[other] * (count - 1), shared])))
    vector = _follow(data, _field(data, _follow(data, 0), 2))
    places = [_field(data, _follow(data, vector + 4 + 4 * number), field) for number in range(count)]
    target = _follow(data, places[-1])
    for place in places:
        _WORD.pack_into(data, place, target - place)
    return bytes(data)


def test_subgraphs_that_share_their_tensors_are_refused() -> None:
    tensors = [tables.Tensor(name=f"{number:020}", type=0) for number in range(25_000)]
    data = sharing_subgraphs(40, tables.SubGraph(tensors=tensors), 0)
    with pytest.raises(ModelError, match="shares its bytes with too many others|more tables than its bytes can hold"):
        decode(tables.Model, memoryview(data))


def test_custom_options_that_share_their_bytes_are_refused() -> None:
    operators = [tables.Operator(opcode_index=0, custom_options=np.zeros(1 << 18, np.uint8))]
    data = sharing_subgraphs(12, tables.SubGraph(operators=operators), 3)
    with pytest.raises(ModelError, match="shares its bytes with too many others|more tables than its bytes can hold"):
        decode(tables.Model, memoryview(data))


def test_a_few_parts_may_share_their_bytes() -> None:
    tensors = [tables.Tensor(name=f"a name of the tensor {number}", type=0) for number in range(20)]
    data = sharing_subgraphs(5, tables.SubGraph(tensors=tensors), 0)
    graphs = decode(tables.Model, memoryview(data)).subgraphs or []
    assert [len(graph.tensors or []) for graph in graphs] == [20] * 5
    assert graphs[4].tensors == tensors


def _reading(kind: TensorType, value: object, shape: list[int], count: int) -> bytes:
    """A node for each of some constants that share one buffer."""
    builder = ModelBuilder()
    graph = builder.add_subgraph()
    read = []
    for number in range(count):
        constant = graph.add_tensor(f"c{number}", kind, shape, data=value)
        read.append(graph.add_tensor(f"r{number}", "int32", [len(shape)]))
        graph.add_operator("SHAPE", [constant], [read[-1]], ShapeOptions(out_type=TensorType.INT32))
    graph.set_inputs()
    graph.set_outputs(*read)
    root = builder.build().root
    main = (root.subgraphs or [])[0]
    buffers = [tensor.buffer for tensor in main.tensors or [] if (tensor.name or "").startswith("c")]
    for tensor in main.tensors or []:
        if (tensor.name or "").startswith("c"):
            tensor.buffer = buffers[0]
    return Model(root).to_bytes()


@pytest.mark.parametrize("kind", ["string", "int4"])
def test_constants_that_are_unpacked_count_against_the_limits(kind: str) -> None:
    if kind == "string":
        data = _reading(TensorType.STRING, np.array([b"x"] * 20_000, object), [20_000], 6)
    else:
        data = _reading(TensorType.INT4, np.zeros(6 << 20, np.int8), [6 << 20], 1)
    limited = Interpreter(model_content=data, limits=Limits(max_arena_bytes=4 << 20))
    constants = [details["index"] for details in limited.get_tensor_details() if details["name"].startswith("c")]
    with pytest.raises(LimitError, match="once it is unpacked"):
        list(map(limited.get_tensor, constants))
    Interpreter(model_content=data).allocate_tensors()


def test_equal_constants_of_packed_integers_are_one_array_which_counts_once() -> None:
    data = _reading(TensorType.INT4, np.zeros(1 << 20, np.int8), [1 << 20], 6)
    interpreter = Interpreter(model_content=data, limits=Limits(max_arena_bytes=4 << 20))
    constants = [tensor for tensor in interpreter._subgraphs[0].tensors if tensor.name.startswith("c")]
    assert len({constant.data.ctypes.data for constant in constants}) == 1
    assert len(constants) == 6


def test_tensors_are_counted_before_anything_is_made_of_them() -> None:
    data = sharing_tensors(4_000, 1, b"", step=0)
    with pytest.raises(LimitError, match="has 4000 tensors, whose descriptions alone take"):
        Interpreter(model_content=data, limits=Limits(max_arena_bytes=1 << 20))
