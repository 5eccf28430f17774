"""The interpreter's methods that describe its model: tensors, nodes, signatures, and which package serves which node.

Source of names, dictionaries and messages: tflite/python/interpreter.py and interpreter_wrapper.cc of google-ai-edge/LiteRT.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oplet.errors import SignatureError, TensorError
from oplet.model.verify.signatures import named_tensors, stale_names
from oplet.ops.tensor import Tensor
from oplet.runtime.describe.details import node_details, tensor_details
from oplet.runtime.subgraph import Subgraph
from oplet.schema import tables
from oplet.schema.naming import shown

if TYPE_CHECKING:
    from oplet.model.model import Model
    from oplet.ops.serving.resolver import OpResolver
    from oplet.plugins.engine_choice import Choice
    from oplet.runtime.describe.delegation_report import DelegationReport
    from oplet.runtime.describe.explain import NodeReport

__all__ = ["Descriptions"]

#: Private attributes of LiteRT's interpreter that programs use, and what to do without them.
_INSIDE_LITERT = {
    "_native_handle": "it is the address of a C++ object; ops and delegates of your own are registered in Python, or come as plugins",
    "_interpreter": "it wraps a C++ object; call the interpreter's own methods",
    "_custom_op_registerers": "they are C++ symbols, or functions that get a C++ object; give op_resolver, or functions to InterpreterWithCustomOps",
    "_delegates": "delegation_reports() tells which delegates were applied",
}


class Descriptions:
    """The part of an interpreter that describes its model and changes nothing."""

    _model: Model
    _resolver: OpResolver
    _subgraphs: list[Subgraph]
    _choice: Choice | None = None
    _experimental_compress_quantization_zero_points: bool

    if not TYPE_CHECKING:  # for type checkers every name would be an attribute

        def __getattr__(self, name: str) -> Any:
            if name in _INSIDE_LITERT:
                raise AttributeError(f"{name} is private to LiteRT's interpreter, and oplet's has none: {_INSIDE_LITERT[name]}.")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def get_input_details(self) -> list[dict[str, Any]]:
        """Details of the inputs: name, index, shape, shape_signature, dtype, quantization, quantization_parameters,
        sparsity_parameters."""
        return [self._get_tensor_details(index, 0) for index in self._subgraphs[0].inputs]

    def get_output_details(self) -> list[dict[str, Any]]:
        """Details of the outputs, as `get_input_details`."""
        return [self._get_tensor_details(index, 0) for index in self._subgraphs[0].outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """Details of every tensor of a subgraph, as `get_input_details`.

        Raises:
            TensorError: there is no such subgraph (a ValueError).
        """
        count = len(self._subgraphs)
        if not 0 <= subgraph_index < count:
            raise TensorError(f"subgraph_index is out of range: {subgraph_index} for the model, which has {count} subgraphs.")
        self._model.check_files()
        return [tensor_details(tensor) for tensor in self._subgraphs[subgraph_index].tensors]

    def _get_tensor_details(self, tensor_index: int, subgraph_index: int) -> dict[str, Any]:
        tensor = self._tensor(tensor_index, subgraph_index)
        self._model.check_files()  # scales lie in the file, too
        return tensor_details(tensor)

    def _get_op_details(self, op_index: int) -> dict[str, Any]:
        nodes = self._subgraphs[0].nodes
        if not 0 <= op_index < len(nodes):
            raise TensorError(f"Invalid node index {op_index}; the model has {len(nodes)} nodes.")
        return node_details(nodes[op_index])

    def _get_ops_details(self) -> list[dict[str, Any]]:
        return [node_details(node) for node in self._subgraphs[0].nodes]

    @property
    def model(self) -> Model:
        """The model that it runs."""
        return self._model

    @property
    def subgraphs(self) -> Sequence[Subgraph]:
        """The model's subgraphs as the interpreter has them, for reading: with inlined nodes and delegates' kernels."""
        return self._subgraphs

    def num_subgraphs(self) -> int:
        """The number of subgraphs of the model."""
        return len(self._subgraphs)

    def explain(self) -> list[NodeReport]:
        """For each node of the execution plans, which package serves it, and why that one."""
        from oplet.runtime.describe.explain import explain_nodes

        choice = "" if self._choice is None else str(self._choice)
        return explain_nodes(self._subgraphs, self._resolver, choice)

    def delegation_reports(self) -> list[DelegationReport]:
        """For each delegate and subgraph: its partitions, the nodes it did not claim and why, or why it failed."""
        return [report for subgraph in self._subgraphs for report in subgraph.delegation_reports.values()]

    @property
    def choice(self) -> Choice | None:
        """The choice and the measured times of `experimental_delegates="auto"`; None for an interpreter without it."""
        return self._choice

    @property
    def experimental_compress_quantization_zero_points(self) -> bool:
        """The constructor's argument of this name."""
        return self._experimental_compress_quantization_zero_points

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The signatures in the model's order: `{key: {"inputs": [names], "outputs": [names]}}`, names sorted."""
        return {
            key: {role: list(names) for role, names in signature.items()}
            for key, signature in self._get_full_signature_list().items()
        }

    def _get_full_signature_list(self) -> dict[str, dict[str, dict[str, int]]]:
        full: dict[str, dict[str, dict[str, int]]] = {}
        for signature in self._model.lazy_root.signature_defs or []:
            names = {"inputs": named_tensors(signature.inputs), "outputs": named_tensors(signature.outputs)}
            full.setdefault(signature.signature_key or "", names)
        return full

    def _subgraph_of(self, signature_key: str) -> int:
        return self._signature(signature_key).subgraph_index

    def _signature(self, key: str) -> tables.SignatureDef:
        return next(s for s in self._model.lazy_root.signature_defs or [] if s.signature_key == key)

    def _ensure_usable(self, signature_key: str) -> None:
        """Refuse a signature that names tensors which its subgraph does not have.

        Raises:
            SignatureError: it does, in LiteRT's words.
        """
        signature = self._signature(signature_key)
        count = len((self._model.lazy_root.subgraphs or [])[signature.subgraph_index].tensors or [])
        if stale := stale_names(signature, count):
            index = max(*named_tensors(signature.inputs).values(), *named_tensors(signature.outputs).values(), 0)
            raise SignatureError(
                f"Invalid tensor index {index} exceeds max tensor index {count}. Signature '{shown(signature_key)}' of "
                f"{self._model.name} has {' and '.join(stale)}; a tool that changed the model has left it behind. Use the model "
                "without signatures, or convert it again."
            )

    # Look-ups ------------------------------------------------------------------------------------------------

    def _subgraph(self, index: int) -> Subgraph:
        if not 0 <= index < len(self._subgraphs):
            raise TensorError(f"Invalid subgraph index {index} exceeds max subgraph index {len(self._subgraphs)}")
        return self._subgraphs[index]

    def _tensor(self, index: int, subgraph_index: int) -> Tensor:
        tensors = self._subgraph(subgraph_index).tensors
        if not 0 <= index < len(tensors):
            raise TensorError(f"Invalid tensor index {index} exceeds max tensor index {len(tensors)}")
        return tensors[index]
