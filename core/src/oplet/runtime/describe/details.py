"""The dictionaries in which LiteRT's Python API describes tensors, nodes and signatures: same keys, order and dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.errors import SignatureError
from oplet.model.verify.signatures import named_tensors, stale_names
from oplet.ops.context import Node
from oplet.ops.tensor import Tensor
from oplet.runtime.subgraph import DeclaredShape, Subgraph, find_tensor
from oplet.schema.enums import TensorType
from oplet.schema.naming import shown
from oplet.schema.tables import DimensionMetadata, SparsityParameters

if TYPE_CHECKING:
    from oplet.model.model import Model
    from oplet.schema import tables

__all__ = [
    "Roles",
    "details_of",
    "ensure_usable",
    "missing_attribute",
    "node_details",
    "only_signature",
    "public_dtype",
    "quantization_details",
    "signatures_of",
    "subgraph_of",
    "tensor_details",
]

TensorDetails = dict[str, Any]

#: Private attributes of LiteRT's interpreter that programs use, and what to do without them.
_INSIDE_LITERT = {
    "_native_handle": "it is the address of a C++ object; ops and delegates of your own are registered in Python, or come as plugins",
    "_interpreter": "it wraps a C++ object; call the interpreter's own methods",
    "_custom_op_registerers": "they are C++ symbols, or functions that get a C++ object; give op_resolver, or functions to InterpreterWithCustomOps",
    "_delegates": "delegation_reports() tells which delegates were applied",
}


def public_dtype(type: TensorType) -> Any:
    """Return the numpy type that LiteRT's details give for a tensor type."""
    from oplet.ops.tensor import numpy_dtype

    if type is TensorType.STRING:
        return np.bytes_
    if type in (TensorType.RESOURCE, TensorType.VARIANT):
        return np.object_
    return numpy_dtype(type).type


def tensor_details(tensor: Tensor) -> TensorDetails:
    """Describe a tensor as `Interpreter.get_tensor_details` does."""
    signature = tensor.shape_signature
    if -1 not in signature and type(signature) is not DeclaredShape:  # the file has none
        signature = tensor.shape
    return {
        "name": tensor.name,
        "index": tensor.index,
        "shape": np.array(tensor.shape, np.int32),
        "shape_signature": np.array(signature, np.int32),
        "dtype": public_dtype(tensor.type),
        **quantization_details(tensor),
        "sparsity_parameters": {} if tensor.sparsity is None else _sparsity(tensor.sparsity),
    }


def details_of(model: Model, subgraphs: Sequence[Subgraph], index: int, subgraph_index: int) -> TensorDetails:
    """Describe the tensor of an index in a subgraph of a model.

    Raises:
        TensorError: there is none.
    """
    tensor = find_tensor(subgraphs, index, subgraph_index)
    model.check_files()  # scales lie in the file, too
    return tensor_details(tensor)


def quantization_details(tensor: Tensor) -> dict[str, Any]:
    """Return the entries "quantization" ((scale, zero point) for one scale, else (0.0, 0)) and "quantization_parameters"."""
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


#: The tensor indices of one signature: `{"inputs": {name: index}, "outputs": {name: index}}`.
Roles = dict[str, dict[str, int]]


def signatures_of(model: Model) -> dict[str, Roles]:
    """Return the tensor indices of each signature, by its key, in the model's order."""
    found: dict[str, Roles] = {}
    for signature in model.lazy_root.signature_defs or []:
        names = {"inputs": named_tensors(signature.inputs), "outputs": named_tensors(signature.outputs)}
        found.setdefault(signature.signature_key or "", names)
    return found


def only_signature(model: Model) -> str:
    """Return the key of a model's only signature.

    Raises:
        SignatureError: it has none, or several; in LiteRT's words.
    """
    keys = list(signatures_of(model))
    if len(keys) != 1:
        raise SignatureError(
            f"SignatureDef signature_key is None and model has {len(keys)} Signatures. "
            "None is only allowed when the model has 1 SignatureDef"
        )
    return keys[0]


def subgraph_of(model: Model, key: str) -> int:
    """Return the index of the subgraph that a signature runs."""
    return _signature(model, key).subgraph_index


def _signature(model: Model, key: str) -> tables.SignatureDef:
    return next(s for s in model.lazy_root.signature_defs or [] if s.signature_key == key)


def ensure_usable(model: Model, key: str) -> None:
    """Refuse a signature that names tensors which its subgraph does not have.

    Raises:
        SignatureError: it does, in LiteRT's words.
    """
    signature = _signature(model, key)
    count = len((model.lazy_root.subgraphs or [])[signature.subgraph_index].tensors or [])
    if stale := stale_names(signature, count):
        index = max(*named_tensors(signature.inputs).values(), *named_tensors(signature.outputs).values(), 0)
        raise SignatureError(
            f"Invalid tensor index {index} exceeds max tensor index {count}. Signature '{shown(key)}' of "
            f"{model.name} has {' and '.join(stale)}; a tool that changed the model has left it behind. Use the model "
            "without signatures, or convert it again."
        )
