"""Built-in options as the C structs of builtin_op_data.h (`TfLiteConvParams` and so on).

One table states every struct: its fields in order, and where each one's value comes from in the options of the model file. A model
that gives an operator no options leaves its struct zero, as in LiteRT.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from oplet import BuiltinOperator, TensorType, ensure
from oplet.schema.table import Table
from oplet_native_ops.values.types import TYPE_NUMBERS

__all__ = ["STRUCTS", "Field", "builtin_data", "fields_of", "struct_of", "struct_type"]

#: What holds for all of `int activation`, which the file calls by a longer name, and for the sizes of windows.
_ACTIVATION: Final = "int activation=fused_activation_function"
_STRIDES: Final = "padding padding, int stride_width=stride_w, int stride_height=stride_h"
_DILATIONS: Final = "int dilation_width_factor=dilation_w_factor, int dilation_height_factor=dilation_h_factor"
_QUANTIZE: Final = "bool asymmetric_quantize_inputs"
_CONV_3D: Final = (
    "padding padding, int stride_width=stride_w, int stride_height=stride_h, int stride_depth=stride_d, "
    f"{_DILATIONS}, int dilation_depth_factor=dilation_d_factor, {_ACTIVATION}"
)
_CORNERS: Final = "bool align_corners, bool half_pixel_centers"

#: By struct, without "TfLite" and "Params": "TYPE NAME" or "TYPE NAME=OPTION". `padding`, `mirror` and `rng` are numbered from 1 in C;
#: `type` by TfLiteType; `int[8]+` is an array of at most 8 and the number of them; what is computed at run time has no option: "-".
STRUCTS: Final = {
    "MirrorPadding": "mirror mode",
    "Conv": f"{_STRIDES}, {_ACTIVATION}, {_DILATIONS}, type quantized_bias_type",
    "Conv3D": _CONV_3D,
    "Pool": f"{_STRIDES}, int filter_width, int filter_height, {_ACTIVATION}, int[4] computed=-",
    "DepthwiseConv": f"{_STRIDES}, int depth_multiplier, {_ACTIVATION}, {_DILATIONS}",
    "SVDF": f"int rank, {_ACTIVATION}, {_QUANTIZE}",
    "RNN": f"{_ACTIVATION}, {_QUANTIZE}",
    "SequenceRNN": f"bool time_major, {_ACTIVATION}, {_QUANTIZE}",
    "BidirectionalSequenceRNN": f"bool time_major, {_ACTIVATION}, bool merge_outputs, {_QUANTIZE}",
    "FullyConnected": f"{_ACTIVATION}, int weights_format, bool keep_num_dims, {_QUANTIZE}, type quantized_bias_type",
    "LSHProjection": "int type",
    "Softmax": "float beta",
    "Concatenation": f"int axis, {_ACTIVATION}",
    "Add": f"{_ACTIVATION}, bool pot_scale_int16",
    "BatchMatMul": f"bool adj_x, bool adj_y, {_QUANTIZE}",
    "Mul": _ACTIVATION,
    "Sub": f"{_ACTIVATION}, bool pot_scale_int16",
    "Div": _ACTIVATION,
    "L2Norm": _ACTIVATION,
    "LocalResponseNorm": "int radius, float bias, float alpha, float beta",
    "LSTM": f"{_ACTIVATION}, float cell_clip, float proj_clip, int kernel_type, {_QUANTIZE}",
    "UnidirectionalSequenceLSTM": (
        f"{_ACTIVATION}, float cell_clip, float proj_clip, bool time_major, {_QUANTIZE}, bool diagonal_recurrent_tensors"
    ),
    "BidirectionalSequenceLSTM": (
        f"{_ACTIVATION}, float cell_clip, float proj_clip, bool merge_outputs, bool time_major, {_QUANTIZE}"
    ),
    "ResizeBilinear": _CORNERS,
    "ResizeNearestNeighbor": _CORNERS,
    "Reshape": "int[8]+ shape=new_shape, int num_dimensions=-",
    "SkipGram": "int ngram_size, int max_skip_size, bool include_all_ngrams",
    "SpaceToDepth": "int block_size",
    "DepthToSpace": "int block_size",
    "Cast": "type in_data_type, type out_data_type",
    "EmbeddingLookupSparse": "int combiner",
    "Gather": "int axis, int batch_dims",
    "Reducer": "bool keep_dims",
    "Split": "int num_splits",
    "SplitV": "int num_splits",
    "Squeeze": "int[8]+ squeeze_dims, int num_squeeze_dims=-",
    "StridedSlice": "int begin_mask, int end_mask, int ellipsis_mask, int new_axis_mask, int shrink_axis_mask, bool offset",
    "ArgMax": "type output_type",
    "ArgMin": "type output_type",
    "TransposeConv": f"{_STRIDES}, {_ACTIVATION}, type quantized_bias_type",
    "SparseToDense": "bool validate_indices",
    "Shape": "type out_type",
    "FakeQuant": "float min, float max, int num_bits, bool narrow_range",
    "Pack": "int values_count, int axis",
    "OneHot": "int axis",
    "Unpack": "int num, int axis",
    "LeakyRelu": "float alpha",
    "Unique": "type index_out_type=idx_out_type",
    "ReverseSequence": "int seq_dim, int batch_dim",
    "If": "int then_subgraph_index, int else_subgraph_index",
    "While": "int cond_subgraph_index, int body_subgraph_index",
    "Cumsum": "bool exclusive, bool reverse",
    "CallOnce": "int init_subgraph_index",
    "Hashtable": "int table_id, type key_dtype, type value_dtype",
    "VarHandle": "text container, text shared_name",
    "Random": "int seed, int seed2",
    "Bucketize": "int num_boundaries=-, floats boundaries",
    "Gelu": "bool approximate",
    "StablehloScatter": (
        "bool indices_are_sorted, long[8]+ update_window_dims, int num_update_window_dims=-, long[8]+ inserted_window_dims, "
        "int num_inserted_window_dims=-, long[8]+ scatter_dims_to_operand_dims, int num_scatter_dims_to_operand_dims=-, "
        "long index_vector_dim, bool unique_indices, int update_computation_subgraph_index"
    ),
    "StablehloRngBitGenerator": "rng algorithm",
    "StablehloGather": (
        "long[8]+ offset_dims, int num_offset_dims=-, long[8]+ collapsed_slice_dims, int num_collapsed_slice_dims=-, "
        "long[8]+ start_index_map, int num_start_index_map=-, long index_vector_dim, long[8]+ slice_sizes, int num_slice_sizes=-, "
        "bool indices_are_sorted"
    ),
    "StablehloReduceWindow": (
        "long[8] window_dimensions, long[8] window_strides, long[8] base_dilations, long[8] window_dilations, long[16] padding, "
        "int body_subgraph_index"
    ),
    "ReduceWindow": "int reduce_function",
    "StablehloPad": "long[8] edge_padding_low, long[8] edge_padding_high, long[8] interior_padding",
    "StablehloComposite": (
        "text name, int subgraph_index=decomposition_subgraph_index, int version, bytes attributes=composite_attributes, "
        "size attributes_size=-"
    ),
    "StablehloCase": "int[20]+ branch_subgraph_indices, int num_branches=-",
}

#: The struct of each operator that has one, where it is not the operator's own name.
_POOL, _REDUCER, _RANDOM = "Pool", "Reducer", "Random"
_OPERATORS: Final = {
    "ADD": "Add", "ARG_MAX": "ArgMax", "ARG_MIN": "ArgMin", "AVERAGE_POOL_2D": _POOL, "BATCH_MATMUL": "BatchMatMul",
    "BIDIRECTIONAL_SEQUENCE_LSTM": "BidirectionalSequenceLSTM", "BIDIRECTIONAL_SEQUENCE_RNN": "BidirectionalSequenceRNN",
    "BUCKETIZE": "Bucketize", "CALL_ONCE": "CallOnce", "CAST": "Cast", "CONCATENATION": "Concatenation", "CONV_2D": "Conv",
    "CONV_3D": "Conv3D", "CONV_3D_TRANSPOSE": "Conv3D", "CUMSUM": "Cumsum", "DEPTHWISE_CONV_2D": "DepthwiseConv",
    "DEPTH_TO_SPACE": "DepthToSpace", "DIV": "Div", "EMBEDDING_LOOKUP_SPARSE": "EmbeddingLookupSparse", "FAKE_QUANT": "FakeQuant",
    "FULLY_CONNECTED": "FullyConnected", "GATHER": "Gather", "GELU": "Gelu", "HASHTABLE": "Hashtable", "IF": "If",
    "L2_NORMALIZATION": "L2Norm", "L2_POOL_2D": _POOL, "LEAKY_RELU": "LeakyRelu", "LOCAL_RESPONSE_NORMALIZATION": "LocalResponseNorm",
    "LSH_PROJECTION": "LSHProjection", "LSTM": "LSTM", "MAX_POOL_2D": _POOL, "MEAN": _REDUCER, "MIRROR_PAD": "MirrorPadding",
    "MUL": "Mul", "MULTINOMIAL": _RANDOM, "ONE_HOT": "OneHot", "PACK": "Pack", "RANDOM_STANDARD_NORMAL": _RANDOM,
    "RANDOM_UNIFORM": _RANDOM, "REDUCE_ALL": _REDUCER, "REDUCE_ANY": _REDUCER, "REDUCE_MAX": _REDUCER, "REDUCE_MIN": _REDUCER,
    "REDUCE_PROD": _REDUCER, "REDUCE_WINDOW": "ReduceWindow", "RESHAPE": "Reshape", "RESIZE_BILINEAR": "ResizeBilinear",
    "RESIZE_NEAREST_NEIGHBOR": "ResizeNearestNeighbor", "REVERSE_SEQUENCE": "ReverseSequence", "RNN": "RNN", "SHAPE": "Shape",
    "SKIP_GRAM": "SkipGram", "SOFTMAX": "Softmax", "SPACE_TO_DEPTH": "SpaceToDepth", "SPARSE_TO_DENSE": "SparseToDense",
    "SPLIT": "Split", "SPLIT_V": "SplitV", "SQUEEZE": "Squeeze", "STABLEHLO_CASE": "StablehloCase",
    "STABLEHLO_COMPOSITE": "StablehloComposite", "STABLEHLO_GATHER": "StablehloGather", "STABLEHLO_PAD": "StablehloPad",
    "STABLEHLO_REDUCE_WINDOW": "StablehloReduceWindow", "STABLEHLO_RNG_BIT_GENERATOR": "StablehloRngBitGenerator",
    "STABLEHLO_SCATTER": "StablehloScatter", "STRIDED_SLICE": "StridedSlice", "SUB": "Sub", "SUM": _REDUCER, "SVDF": "SVDF",
    "TRANSPOSE_CONV": "TransposeConv", "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTM",
    "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNN", "UNIQUE": "Unique", "UNPACK": "Unpack", "VAR_HANDLE": "VarHandle", "WHILE": "While",
}  # fmt: skip

_SCALARS: Final[dict[str, Any]] = {
    "bool": ctypes.c_bool, "float": ctypes.c_float, "int": ctypes.c_int, "long": ctypes.c_int64, "mirror": ctypes.c_int,
    "padding": ctypes.c_int, "rng": ctypes.c_int, "size": ctypes.c_size_t, "type": ctypes.c_int, "text": ctypes.c_char_p,
    "bytes": ctypes.c_void_p, "floats": ctypes.c_void_p,
}  # fmt: skip


class Field(NamedTuple):
    """One field of a C options struct."""

    kind: str  #: The type as in `STRUCTS`, such as "int" or "padding".
    name: str  #: The field's name in C.
    option: str  #: The field of the options table in the model that has the value; "" if there is none.
    length: int  #: The number of elements of an array; 0 for a single value.
    counted: bool  #: Whether the next field is the number of used elements of the array.


@functools.cache
def fields_of(struct: str) -> tuple[Field, ...]:
    """Return the fields of a C options struct, in order, by the struct's name in `STRUCTS`."""
    found = []
    for text in STRUCTS[struct].split(", "):
        kind, _, rest = text.partition(" ")
        name, _, option = rest.partition("=")
        counted, kind = kind.endswith("+"), kind.rstrip("+")
        kind, _, length = kind.partition("[")
        found.append(Field(kind, name, "" if option == "-" else option or name, int(length.rstrip("]") or 0), counted))
    return tuple(found)


@functools.cache
def struct_type(struct: str) -> type[ctypes.Structure]:
    """Return the ctypes structure of a C options struct, by the struct's name in `STRUCTS`."""
    fields = [
        (field.name, _SCALARS[field.kind] * field.length if field.length else _SCALARS[field.kind]) for field in fields_of(struct)
    ]
    return type(f"TfLite{struct}Params", (ctypes.Structure,), {"_fields_": fields, "__doc__": f"TfLite{struct}Params."})


def struct_of(op: BuiltinOperator) -> str:
    """Return the name of an operator's options struct in `STRUCTS`, "" if it has none."""
    return _OPERATORS.get(op.name, "")


def _number(value: Any) -> int:
    return int(value or 0)


_CONVERT: Final[dict[str, Callable[[Any], Any]]] = {
    "bool": bool,
    "float": lambda value: float(value or 0),
    "int": lambda value: (_number(value) + 2**31) % 2**32 - 2**31,
    "long": _number,
    "mirror": lambda value: _number(value) + 1,
    "padding": lambda value: _number(value) + 1,
    "rng": lambda value: _number(value) + 1,
    "text": lambda value: None if value is None else str(value).encode("utf-8", "surrogateescape"),
    "type": lambda value: TYPE_NUMBERS.get(value, 0) if isinstance(value, TensorType) else 0,
}


def builtin_data(op: BuiltinOperator, options: Table | None) -> ctypes.Structure | None:
    """Build the C options struct for a node's `builtin_data`; None for an operator that has none.

    Args:
        options: the node's options; None where the model has none.

    Raises:
        EnsureError: an option has more values than the struct has room for.
    """
    name = struct_of(op)
    if not name:
        return None
    made = struct_type(name)()
    if options is None:
        return made
    fields = fields_of(name)
    kept: list[Any] = []  # what the struct points to
    for at, field in enumerate(fields):
        if not field.option:
            continue
        value = getattr(options, field.option)
        if field.length:
            values = [] if value is None else [_CONVERT[field.kind](each) for each in value]
            told = f"{field.option} has {len(values)} values, and compiled operators are given {field.length} at most."
            ensure(len(values) <= field.length, told)
            getattr(made, field.name)[: len(values)] = values
            if field.counted:
                setattr(made, fields[at + 1].name, len(values))
        elif field.kind in ("bytes", "floats"):
            data = b"" if value is None else value.tobytes()
            block = ctypes.create_string_buffer(data, len(data)) if data else None
            kept.append(block)
            setattr(made, field.name, None if block is None else ctypes.addressof(block))
            length = 0 if value is None else len(value)
            setattr(made, "num_boundaries" if field.kind == "floats" else "attributes_size", length)
        else:
            setattr(made, field.name, _CONVERT[field.kind](value))
    made.__dict__["kept"] = kept
    return made
