"""The interpreter's methods that describe its model: tensors, nodes, signatures, and which package serves which node.

Source of names, dictionaries and messages: tflite/python/interpreter.py and interpreter_wrapper.cc of google-ai-edge/LiteRT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from oplet.errors import TensorError
from oplet.runtime.describe.details import details_of, missing_attribute, node_details, signatures_of, tensor_details

if TYPE_CHECKING:
    from oplet.model.model import Model
    from oplet.ops.serving.resolver import OpResolver
    from oplet.plugins.engine_choice import Choice
    from oplet.runtime.describe.delegation_report import DelegationReport
    from oplet.runtime.describe.explain import NodeReport
    from oplet.runtime.subgraph import Subgraph

__all__ = ["Descriptions"]


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
        """Return details of the outputs, as `get_input_details`."""
        return [self._get_tensor_details(index, 0) for index in self._subgraphs[0].outputs]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """Return details of every tensor of a subgraph, as `get_input_details`.

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
        """Tell for each node of the execution plans which package serves it, why that one, and whose numbers it gives where LiteRT's
        default and its own kernels differ."""
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
