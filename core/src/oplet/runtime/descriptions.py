"""The interpreter's methods that describe its model: tensors, nodes, signatures, and which package serves which node;
and the dictionaries in which LiteRT's Python API describes them: same keys, order and dtypes.

Source of names, dictionaries and messages: tflite/python/interpreter.py and interpreter_wrapper.cc of google-ai-edge/LiteRT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oplet.errors import SignatureError, TensorError
from oplet.model.verify.verifier import named_tensors, stale_names
from oplet.ops.context import Node
from oplet.ops.tensor import Tensor
from oplet.runtime.subgraph import Subgraph, find_tensor, present_signature
from oplet.schema.enums import TensorType
from oplet.schema.tables import DimensionMetadata, SparsityParameters
from oplet.texts import shown

if TYPE_CHECKING:
    from oplet.model.model import Model
    from oplet.ops.serving.resolver import OpResolver
    from oplet.plugins.engine_choice import Choice
    from oplet.runtime.describe.delegation_report import DelegationReport
    from oplet.runtime.describe.explain import NodeReport
    from oplet.runtime.subgraph import Subgraph
    from oplet.schema import tables

__all__ = [
    "Descriptions",
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
    return {
        "name": tensor.name,
        "index": tensor.index,
        "shape": np.array(tensor.shape, np.int32),
        "shape_signature": np.array(present_signature(tensor), np.int32),
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
        SignatureError: the model has no signature, or several; the message is LiteRT's.
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
    """Check that all tensors that a signature names exist in its subgraph.

    Raises:
        SignatureError: a tensor does not exist; the message is LiteRT's.
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


class Descriptions:
    """Describes a model, and changes nothing.

    Args:
        model: the model.
        subgraphs: its subgraphs, as they are prepared and run.
        resolver: returns the resolver, which finds the kernels of ops.
        choice: the choice of engines that was made for it; None where none was.
        default_delegates: whether kernels compute what LiteRT's default delegate computes.
        compress_zero_points: an argument of LiteRT's that has no effect; the property returns it.
    """

    def __init__(
        self,
        model: Model,
        subgraphs: Sequence[Subgraph],
        resolver: Callable[[], OpResolver],
        *,
        choice: Choice | None,
        default_delegates: bool,
        compress_zero_points: bool,
    ) -> None:
        self._model = model
        self._subgraphs = subgraphs
        self._resolver = resolver
        self._choice = choice
        self._default_delegates = default_delegates
        self._compress_zero_points = compress_zero_points

    if not TYPE_CHECKING:  # for type checkers every name would be an attribute

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(missing_attribute(type(self).__name__, name))

    def get_input_details(self) -> list[dict[str, Any]]:
        """Return details of the inputs: name, index, shape, shape_signature, dtype, quantization, quantization_parameters,
        sparsity_parameters."""
        return [self._get_tensor_details(index, 0) for index in self._subgraphs[0].inputs]

    def get_output_details(self) -> list[dict[str, Any]]:
        """Return details of the outputs, with the entries of `get_input_details`."""
        return [self._get_tensor_details(index, 0) for index in self._subgraphs[0].outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """Return details of every tensor of a subgraph, with the entries of `get_input_details`.

        Raises:
            TensorError: there is no such subgraph (a ValueError).
        """
        count = len(self._subgraphs)
        if not 0 <= subgraph_index < count:
            raise TensorError(f"subgraph_index is out of range: {subgraph_index} for the model, which has {count} subgraphs.")
        self._model.check_files()
        return [tensor_details(tensor) for tensor in self._subgraphs[subgraph_index].tensors]

    def _get_tensor_details(self, tensor_index: int, subgraph_index: int) -> dict[str, Any]:
        return details_of(self._model, self._subgraphs, tensor_index, subgraph_index)

    def _get_op_details(self, op_index: int) -> dict[str, Any]:
        nodes = self._subgraphs[0].nodes
        if not 0 <= op_index < len(nodes):
            raise TensorError(f"Invalid node index {op_index}; the model has {len(nodes)} nodes.")
        return node_details(nodes[op_index])

    def _get_ops_details(self) -> list[dict[str, Any]]:
        return [node_details(node) for node in self._subgraphs[0].nodes]

    @property
    def model(self) -> Model:
        """The model that the interpreter runs."""
        return self._model

    @property
    def subgraphs(self) -> Sequence[Subgraph]:
        """The model's subgraphs as the interpreter has them, for reading: with inlined nodes and delegates' kernels."""
        return self._subgraphs

    def num_subgraphs(self) -> int:
        """Return the number of subgraphs of the model."""
        return len(self._subgraphs)

    def explain(self) -> list[NodeReport]:
        """Return, for each node of the execution plans, the package whose kernel runs it, why that one, and which of LiteRT's
        results it reproduces where LiteRT's default and its own kernels differ.
        """
        from oplet.runtime.describe.explain import explain_nodes

        choice = "" if self._choice is None else str(self._choice)
        return explain_nodes(self._subgraphs, self._resolver(), choice, default_delegates=self._default_delegates)

    def delegation_reports(self) -> list[DelegationReport]:
        """Return for each delegate and subgraph its partitions, the nodes it did not claim and why, or why it failed."""
        return [report for subgraph in self._subgraphs for report in subgraph.delegated.reports.values()]

    @property
    def choice(self) -> Choice | None:
        """The choice and the measured times of `experimental_delegates="auto"`; None for an interpreter without it."""
        return self._choice

    @property
    def experimental_compress_quantization_zero_points(self) -> bool:
        """The constructor's argument of this name, as it was given; it has no effect."""
        return self._compress_zero_points

    # Signatures ----------------------------------------------------------------------------------------------

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """Return the signatures in the model's order: `{key: {"inputs": [names], "outputs": [names]}}`, names sorted."""
        return {key: {role: list(names) for role, names in roles.items()} for key, roles in signatures_of(self._model).items()}

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        return signatures_of(self._model)
