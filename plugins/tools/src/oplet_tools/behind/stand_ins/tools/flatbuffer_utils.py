"""Stand-in for `ai_edge_litert.tools.flatbuffer_utils`: models as objects that tools read, change and write."""

from __future__ import annotations

import copy
import pathlib
import random
import re
import struct
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, Protocol

import flatbuffers
import numpy as np

from oplet import write_atomically
from oplet_tools.behind.stand_ins import schema_py_generated as schema_fb
from oplet_tools.behind.stand_ins.tools import mmap_utils

_TYPES = [
    "ActivationFunctionType",
    "BlockwiseQuantizationT",
    "Buffer",
    "BufferT",
    "BuiltinOperator",
    "BuiltinOptions",
    "BuiltinOptions2",
    "FullyConnectedOptionsT",
    "Model",
    "ModelT",
    "Operator",
    "OperatorCode",
    "OperatorCodeT",
    "OperatorT",
    "QuantizationDetails",
    "QuantizationParametersT",
    "StableHLOCompositeOptions",
    "StableHLOCompositeOptionsT",
    "SubGraph",
    "SubGraphT",
    "Tensor",
    "TensorT",
    "TensorType",
]
_of: Any = schema_fb
globals().update({name: getattr(_of, name) for name in _TYPES})

Path = str | pathlib.Path
BufferType = mmap_utils.BufferType
Endiness = Literal["little", "big"]


class Packed(Protocol):
    """Protocol, for type checkers, of flatc's generated readers of tables (`schema_py_generated.Model`)."""

    @classmethod
    def GetRootAs(cls, buf: BufferType, offset: int = 0) -> Any:
        """Return a reader of the root table of a FlatBuffer that starts at `offset`."""


class Packable(Protocol):
    """Protocol, for type checkers, of the classes of flatc's object API (`schema_py_generated.ModelT`)."""

    def Pack(self, builder: flatbuffers.Builder) -> Any:
        """Write the object to the builder; return the offset of its table."""

    @classmethod
    def InitFromObj(cls, operatorCode: Packed) -> Any:
        """Return the object (`ModelT`) with the contents of a table's reader (`Model`)."""


_TYPE_NAMES: dict[int, str] = {value: name for name, value in vars(_of.TensorType).items() if not name.startswith("_")}
#: Bytes of an element of the types that have several, by the name of the type.
_WIDTHS = {
    **dict.fromkeys(("FLOAT16", "INT16", "UINT16"), 2),
    **dict.fromkeys(("FLOAT32", "INT32", "COMPLEX64", "UINT32"), 4),
    **dict.fromkeys(("INT64", "FLOAT64", "COMPLEX128", "UINT64"), 8),
}


def update_packed_buffer(packed_buffer: Any, offset: int | None = None, size: int | None = None) -> None:
    """Overwrite the fields `offset` and `size` of a `Buffer` table in place, in a serialized model; None leaves a field as it is.

    Raises:
        ValueError: the table was serialized without the field.
    """
    table = packed_buffer._tab
    for name, value, entry in (("offset", offset, 6), ("size", size, 8)):
        if value is None:
            continue
        place = table.Offset(entry)
        if not place:
            raise ValueError(f"Failed to set `{name}`, no buffer reserved for it.")
        flatbuffers.encode.Write(flatbuffers.packer.uint64, table.Bytes, place + table.Pos, value)


def get_builtin_code_from_operator_code(opcode: Any) -> int:
    """Return the built-in operator code of an `OperatorCode`; old files have it in `deprecated_builtin_code`."""
    if isinstance(opcode, _of.OperatorCode):
        return int(max(opcode.BuiltinCode(), opcode.DeprecatedBuiltinCode()))
    return int(max(opcode.builtinCode, opcode.deprecatedBuiltinCode))


def convert_bytearray_to_object(model_bytearray: BufferType) -> Any:
    """Return a serialized model as a `ModelT` object (object API), without further changes."""
    return _of.ModelT.InitFromPackedBuf(model_bytearray)


def read_model(input_tflite_file: Path) -> Any:
    """Read a model file into a `ModelT` object, see `read_model_from_bytearray`.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is too short for constants that are stored after the FlatBuffer.
    """
    return read_model_from_bytearray(mmap_utils.get_file_contents(input_tflite_file))


def read_model_from_bytearray(model_bytearray: BufferType) -> Any:
    """Return a serialized model as a `ModelT` object, with external constants loaded, empty buffers merged into buffer 0, and
    mutable lists.

    Raises:
        ValueError: the bytes are too few for constants that are stored after the FlatBuffer.
    """
    model = convert_bytearray_to_object(model_bytearray)
    if sys.byteorder == "big":
        byte_swap_tflite_model_obj(model, "little", "big")
    for buffer in model.buffers or []:
        if buffer.offset:
            buffer.data = _outside(model_bytearray, buffer.offset, buffer.size)
            buffer.offset = buffer.size = 0
    for operator in _operators(model):
        if operator.largeCustomOptionsOffset:
            start, size = operator.largeCustomOptionsOffset, operator.largeCustomOptionsSize
            operator.customOptions = _outside(model_bytearray, start, size)
            operator.largeCustomOptionsOffset = operator.largeCustomOptionsSize = 0
    _leave_one_empty_buffer(model)
    buffers, model.buffers = model.buffers, None
    _make_lists(model)
    model.buffers = buffers
    return model


def _outside(data: BufferType, offset: int, size: int) -> Any:
    """Return bytes of a file that lie behind its FlatBuffer."""
    if offset + size > len(data):
        raise ValueError(
            f"The model has {len(data)} bytes, and speaks of {size} from {offset} on; it was cut off, or is damaged."
        )
    return np.frombuffer(data, np.uint8, size, offset)


def _operators(model: Any) -> Iterator[Any]:
    return (operator for graph in model.subgraphs or [] for operator in graph.operators or [])


def _leave_one_empty_buffer(model: Any) -> None:
    """Let all that refer to empty buffers refer to the first one."""
    if model.buffers is None:
        return
    kept, places = [_of.BufferT()], []
    for buffer in model.buffers:
        is_empty = buffer.data is None and not buffer.size
        places.append(0 if is_empty else len(kept))
        kept += [] if is_empty else [buffer]
    model.buffers = kept
    tensors = [tensor for graph in model.subgraphs or [] for tensor in graph.tensors or []]
    for each in (*tensors, *(model.metadata or [])):
        each.buffer = places[each.buffer]


def _make_lists(value: Any) -> Any:
    """Return a value in which vectors of int32, which are read-only views of the file, are lists."""
    if isinstance(value, np.ndarray):
        return value.tolist() if value.dtype == np.int32 else value
    if isinstance(value, list):
        return [_make_lists(each) for each in value]
    for name, each in getattr(value, "__dict__", {}).items():
        value.__dict__[name] = _make_lists(each)
    return value


def read_model_with_mutable_tensors(input_tflite_file: Path) -> Any:
    """Read a model file into a `ModelT` object whose constants are writable copies.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is too short for constants that are stored after the FlatBuffer.
    """
    return copy.deepcopy(read_model(input_tflite_file))


def convert_object_to_bytearray(model_object: Any, extra_buffer: BufferType = b"") -> Any:
    """Serialize a `ModelT` object; `extra_buffer` is appended after the FlatBuffer."""
    builder = flatbuffers.Builder(1024)
    builder.Finish(model_object.Pack(builder), file_identifier=b"TFL3")
    written = builder.Output()
    return written + extra_buffer if extra_buffer else written


def write_model(model_object: Any, output_tflite_file: Path) -> None:
    """Serialize a `ModelT` object to a file.

    Raises:
        OSError: the file cannot be written.
    """
    if sys.byteorder == "big":
        model_object = copy.deepcopy(model_object)
        byte_swap_tflite_model_obj(model_object, "big", "little")
    write_atomically(output_tflite_file, convert_object_to_bytearray(model_object))


def strip_strings(model: Any) -> None:
    """Remove the description, the names of subgraphs and tensors, and the signatures of a `ModelT` object, in place."""
    model.description = model.signatureDefs = None
    for graph in model.subgraphs:
        graph.name = None
        for tensor in graph.tensors:
            tensor.name = None


def type_to_name(tensor_type: int) -> str:
    """Return the name of a `TensorType` ("FLOAT32") by its number."""
    return _TYPE_NAMES[tensor_type]


def randomize_weights(model: Any, random_seed: int = 0, buffers_to_skip: Collection[int] | None = None) -> None:
    """Overwrite constants by random values, in place; equal seeds give LiteRT's values.

    Args:
        model: the `ModelT` object, with writable constants.
        buffers_to_skip: the indices of buffers to leave unchanged.
    """
    random.seed(random_seed)
    types: dict[int, str] = {}
    for graph in model.subgraphs:
        for operator in graph.operators:
            if operator.inputs is None:
                break
            for index in operator.inputs:
                types[graph.tensors[index].buffer] = type_to_name(graph.tensors[index].type)
    for index, buffer in enumerate(model.buffers):
        if not index or index in (buffers_to_skip or ()) or buffer.data is None:
            continue
        kind = types.get(index, "INT8")
        if kind.startswith("FLOAT"):
            code = "e" if kind == "FLOAT16" else "f"
            for place in range(0, buffer.data.size, struct.calcsize(code)):
                struct.pack_into(code, buffer.data, place, random.uniform(-0.5, 0.5))
        else:
            for place in range(buffer.data.size):
                buffer.data[place] = random.randint(0, 255)


def rename_custom_ops(model: Any, map_custom_op_renames: Mapping[str, str]) -> None:
    """Rename custom operators of a `ModelT` object in place, by a mapping from old to new names."""
    for code in model.operatorCodes:
        name = code.customCode.decode("ascii") if code.customCode else ""
        if name in map_custom_op_renames:
            code.customCode = map_custom_op_renames[name].encode("ascii")


def opcode_to_name(model: Any, op_code: int) -> str | None:
    """Return the name of the built-in operator in entry `op_code` of a model's operator codes; None for an unknown operator."""
    number = get_builtin_code_from_operator_code(model.operatorCodes[op_code])
    return next((name for name, value in vars(_of.BuiltinOperator).items() if value == number), None)


def xxd_output_to_bytes(input_cc_file: Path) -> bytes:
    """Return the bytes in the array of a C++ source file that `xxd -i` wrote.

    Raises:
        OSError: the file cannot be read.
    """
    found = bytearray()
    for line in pathlib.Path(input_cc_file).read_text("utf-8").splitlines():
        if listed := re.match(r"\W*(0x[0-9a-fA-F,x ]+)", line):
            found += bytes(int(each, 16) for each in listed[1].split(",") if each.strip())
    return bytes(found)


def xxd_output_to_object(input_cc_file: Path) -> Any:
    """Return the model in a C++ source file that `xxd -i` wrote, as a `ModelT` object.

    Raises:
        OSError: the file cannot be read.
    """
    return convert_bytearray_to_object(xxd_output_to_bytes(input_cc_file))


def byte_swap_buffer_content(buffer: Any, chunksize: int, from_endiness: Endiness, to_endiness: Endiness) -> None:
    """Convert the byte order of a `BufferT`'s elements of `chunksize` bytes, in place."""
    data = bytes(buffer.data)
    if from_endiness != to_endiness:
        data = b"".join(data[place : place + chunksize][::-1] for place in range(0, len(data), chunksize))
    buffer.data = data


def byte_swap_string_content(buffer: Any, from_endiness: Endiness, to_endiness: Endiness) -> None:
    """Convert the byte order of the header of a string tensor's `BufferT` (the count and the offsets of its strings), in place."""
    data = bytes(buffer.data)
    count = int.from_bytes(data[:4], from_endiness) + 2
    numbers = (int.from_bytes(data[place : place + 4], from_endiness) for place in range(0, 4 * count, 4))
    buffer.data = b"".join(number.to_bytes(4, to_endiness) for number in numbers) + data[4 * count :]


def byte_swap_tflite_model_obj(model: Any, from_endiness: Endiness, to_endiness: Endiness) -> None:
    """Convert the byte order of the constants of a `ModelT` object in place, by the types of their tensors."""
    done: set[int] = set()
    for graph in model.subgraphs if model is not None else []:
        for tensor in graph.tensors:
            index = tensor.buffer
            if not 0 < index < len(model.buffers) or index in done or model.buffers[index].data is None:
                continue
            name = type_to_name(tensor.type)
            if name == "STRING":
                byte_swap_string_content(model.buffers[index], from_endiness, to_endiness)
            elif name in _WIDTHS:
                byte_swap_buffer_content(model.buffers[index], _WIDTHS[name], from_endiness, to_endiness)
            else:
                continue
            done.add(index)


def byte_swap_tflite_buffer(tflite_model: BufferType | None, from_endiness: Endiness, to_endiness: Endiness) -> Any:
    """Return a serialized model with the byte order of its constants converted; None for None."""
    if tflite_model is None:
        return None
    model = convert_bytearray_to_object(tflite_model)
    byte_swap_tflite_model_obj(model, from_endiness, to_endiness)
    return convert_object_to_bytearray(model)


def count_resource_variables(model: Any) -> int:
    """Return the number of resource variables (distinct shared names of VAR_HANDLE) of a model, a `ModelT` object or serialized."""
    if not isinstance(model, _of.ModelT):
        model = convert_bytearray_to_object(model)
    handles = [
        operator
        for operator in _operators(model)
        if get_builtin_code_from_operator_code(model.operatorCodes[operator.opcodeIndex]) == _of.BuiltinOperator.VAR_HANDLE
    ]
    return len({operator.builtinOptions.sharedName for operator in handles})


def get_options_as(op: Any, opts_type: Any) -> Any:
    """Return the options of an operator (`Operator` or `OperatorT`) as an `opts_type` object; None if its options are of another type.

    Raises:
        ValueError: `opts_type` is no class of options of the object API, such as `AddOptionsT`.
    """
    name = opts_type.__name__
    member = name.removesuffix("T")
    union = next((each for each in ("BuiltinOptions", "BuiltinOptions2") if hasattr(getattr(_of, each), member)), None)
    if union is None or not name.endswith("T"):
        raise ValueError(f"Unsupported options type: {opts_type}")
    if isinstance(op, _of.Operator):
        number, found = getattr(op, f"{union}Type")(), getattr(op, union)()
        is_it = found is not None and number == getattr(getattr(_of, union), member)
        return getattr(_of, f"{union}Creator")(number, found) if is_it else None
    options = getattr(op, f"b{union[1:]}", None)
    return options if isinstance(options, opts_type) else None
