"""The dictionaries in which LiteRT's Python API describes tensors and nodes: same keys, order and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from oplet.ops.context import Node
from oplet.ops.tensor import Tensor
from oplet.schema.enums import TensorType
from oplet.schema.tables import DimensionMetadata, SparsityParameters

__all__ = ["public_dtype", "quantization_details", "tensor_details"]

TensorDetails = dict[str, Any]

#: Private attributes of LiteRT's interpreter that programs use, and what to do without them.
_INSIDE_LITERT = {
    "_native_handle": "it is the address of a C++ object; ops and delegates of your own are registered in Python, or come as plugins",
    "_interpreter": "it wraps a C++ object; call the interpreter's own methods",
    "_custom_op_registerers": "they are C++ symbols, or functions that get a C++ object; give op_resolver, or functions to InterpreterWithCustomOps",
    "_delegates": "delegation_reports() tells which delegates were applied",
}


def public_dtype(type: TensorType) -> Any:
    """The numpy type that LiteRT's details give for a tensor type."""
    from oplet.ops.tensor import numpy_dtype

    if type is TensorType.STRING:
        return np.bytes_
    if type in (TensorType.RESOURCE, TensorType.VARIANT):
        return np.object_
    return numpy_dtype(type).type


def tensor_details(tensor: Tensor) -> TensorDetails:
    """Describe a tensor as `Interpreter.get_tensor_details` does."""
    return {
        "name": tensor.name,
        "index": tensor.index,
        "shape": np.array(tensor.shape, np.int32),
        "shape_signature": np.array(tensor.shape_signature, np.int32),
        "dtype": public_dtype(tensor.type),
        **quantization_details(tensor),
        "sparsity_parameters": {} if tensor.sparsity is None else _sparsity(tensor.sparsity),
    }


def quantization_details(tensor: Tensor) -> dict[str, Any]:
    """The entries "quantization", the (scale, zero point) of a tensor with one scale, else (0.0, 0), and "quantization_parameters"."""
    quantization = tensor.quantization
    if quantization is None:
        scales, zero_points, dimension = np.zeros(0, np.float32), np.zeros(0, np.int32), 0
    else:
        # Scales of blocks are stored, and described, as float16.
        with np.errstate(over="ignore"):
            scales = quantization.scales.ravel().astype(np.float16 if quantization.block_size else np.float32)
        zero_points = quantization.zero_points.astype(np.int32)
        dimension = quantization.quantized_dimension
    one = len(scales) == len(zero_points) == 1
    return {
        "quantization": (float(scales[0]), int(zero_points[0])) if one else (0.0, 0),
        "quantization_parameters": {
            "scales": scales,
            "zero_points": zero_points,
            "quantized_dimension": dimension,
            "block_size": 0 if quantization is None else quantization.block_size,
        },
    }


def _sparsity(sparsity: SparsityParameters) -> dict[str, Any]:
    details: dict[str, Any] = {}
    if sparsity.traversal_order is not None and sparsity.traversal_order.size:
        details["traversal_order"] = np.array(sparsity.traversal_order, np.int32)
    if sparsity.block_map is not None:
        details["block_map"] = np.array(sparsity.block_map, np.int32)
    if sparsity.dim_metadata:
        details["dim_metadata"] = [_dimension(metadata) for metadata in sparsity.dim_metadata]
    return details


def _dimension(metadata: DimensionMetadata) -> dict[str, Any]:
    if not metadata.format:
        return {"format": 0, "dense_size": metadata.dense_size}
    return {
        "format": 1,
        "array_segments": _indices(metadata.array_segments),
        "array_indices": _indices(metadata.array_indices),
    }


def _indices(vector: Any) -> Any:
    values = None if vector is None else vector.values
    return np.zeros(0, np.int32) if values is None else np.array(values, np.int32)


def node_details(node: Node) -> dict[str, Any]:
    """Describe a node as `Interpreter._get_ops_details` does."""
    inputs = [-1 if tensor is None else tensor.index for tensor in node.inputs]
    return {
        "index": node.index,
        "op_name": node.op_name,
        "inputs": np.array(inputs, np.int32),
        "outputs": np.array([tensor.index for tensor in node.outputs], np.int32),
        "operand_types": [public_dtype(tensor.type) for tensor in node.inputs if tensor is not None],
        "result_types": [public_dtype(tensor.type) for tensor in node.outputs],
    }


def missing_attribute(owner: str, name: str) -> str:
    """Return the message for an attribute that an interpreter does not have, with advice if it is one of LiteRT's own.

    Args:
        owner: the name of the interpreter's class.
        name: the name of the attribute.
    """
    if name in _INSIDE_LITERT:
        return f"{name} is private to LiteRT's interpreter, and oplet's has none: {_INSIDE_LITERT[name]}."
    return f"{owner!r} object has no attribute {name!r}"
