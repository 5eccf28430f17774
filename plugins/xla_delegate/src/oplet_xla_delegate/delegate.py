"""XlaDelegate: claims nodes whose function XLA has compiled, and which answers as oplet's kernels do."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

try:
    import jax  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"The delegate 'xla' needs the package jax, which cannot be imported ({error}): pip install jax, or jax[cuda12] for a GPU"
    ) from error

import numpy as np

from oplet import (
    BuiltinOperator,
    Context,
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateParams,
    Node,
    NodeSubset,
    Tensor,
    kernel_registration,
    largest_partitions,
)
from oplet.errors import LimitError, failures
from oplet_xla_delegate.checking import Reference
from oplet_xla_delegate.device import Device
from oplet_xla_delegate.kernel import PartitionKernel
from oplet_xla_delegate.partition import Engine, Partition, Refused, compile_partition
from oplet_xla_delegate.tracing import Body, Untranslatable, first_line
from oplet_xla_delegate.translators import refusal, translator
from oplet_xla_delegate.updates import updates_in

_NUMBERS = ("min_nodes", "max_partitions", "quantized", "check")
_OPTIONS = ("device", "precision", *_NUMBERS)
_PRECISIONS = ("highest", "tf32", "bf16")
#: Operators that copy their input as it is.
_COPIES = ("EXPAND_DIMS", "RESHAPE", "SQUEEZE", "STABLEHLO_RESHAPE")


class XlaDelegate(Delegate):
    """The delegate that runs partitions as functions compiled by XLA.

    Options: `device` (auto, cpu, gpu, tpu; also gpu:1), `precision` of float32 products (highest, tf32, bf16), `quantized` (1:
    run quantized nodes too, whose results may differ by quantization steps), `check` (0: do not compare compiled functions with
    oplet's kernels), `min_nodes` (smaller partitions are left to other kernels), `max_partitions` (the most partitions, largest
    first).
    """

    name = "xla"
    #: Nodes of known shapes are claimed, also beside others; what a resize makes of them is compiled anew.
    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.REQUIRE_PROPAGATED_SHAPES
    constants_first = True

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        for key, value in self.options.items():
            if key not in _OPTIONS or (key in _NUMBERS and not value.isdecimal()):
                raise ValueError(
                    f"'{key}={value}' is none of its options: {', '.join(_OPTIONS)}; {', '.join(_NUMBERS)} are numbers."
                )
        self.precision = self.options.get("precision", "highest").lower()
        if self.precision not in _PRECISIONS:
            raise ValueError(f"precision={self.precision} is none of {', '.join(_PRECISIONS)}.")
        self.device = Device(self.options.get("device", "auto"))
        self.min_nodes = int(self.options.get("min_nodes", 0))
        self.max_partitions = int(self.options.get("max_partitions", 0))

    def wanted_composites(self, context: DelegateContext, composites: Sequence[Node]) -> Collection[Node]:
        return ()  # XLA gets the nodes of their decompositions

    def prepare(self, context: DelegateContext) -> None:
        engine = Engine(self.device, self.precision, self.options.get("quantized") == "1", context.max_seconds)
        claims = _Claims(context, engine, self.options.get("check") != "0")
        partitions = self._partitions(claims)
        for index, reason in claims.refused.items():
            context.report_unsupported(index, reason)
        for nodes in partitions:
            for index in claims.bodies_of(nodes):
                if index:
                    context.mark_subgraph_as_delegation_skippable(index)

        def create_kernel(params: DelegateParams) -> PartitionKernel:
            nodes = tuple(node.index for node in params.nodes)
            return PartitionKernel(partitions.get(nodes), engine, claims.bodies_of(nodes), claims.reference)

        claimed = [index for nodes in partitions for index in nodes]
        registration = kernel_registration(self.name, create_kernel).__replace__(remark=lambda node, _: node.user_data.remark())
        context.replace_node_subsets_with_delegate_kernels(registration, claimed)

    def copy_from_buffer_handle(self, context: Context, handle: Any, tensor: Tensor) -> None:
        np.copyto(tensor.data, np.asarray(handle))

    def free_buffer_handle(self, context: Context, handle: Any) -> None:
        """Do nothing: the device's memory is freed when nobody refers to the array any more."""

    def _partitions(self, claims: _Claims) -> dict[tuple[int, ...], Partition]:
        """Compile the partitions to claim, by their node indices; write reasons for unclaimed nodes to the claims."""
        context, refused = claims.context, claims.refused
        while True:
            claimed = [index for index in context.execution_plan if index not in refused]
            subsets = [subset for subset in context.preview_delegate_partitioning(claimed) if subset.claimed]
            useful = _more_than_copies(context, subsets, refused)
            kept = largest_partitions(useful, self.min_nodes, self.max_partitions, refused)
            if len(kept) < len(subsets):
                continue  # what is left may be cut otherwise
            wanted = {tuple(subset.nodes): subset for subset in subsets}
            for nodes, subset in wanted.items():
                if nodes not in claims.made:
                    claims.attempt(nodes, subset, wanted)
            if all(nodes in claims.made for nodes in wanted):
                return {nodes: claims.made[nodes] for nodes in wanted}


class _Claims:
    """What is found out while the nodes of one subgraph are claimed.

    Attributes:
        context: the delegate's view of the subgraph.
        engine: what to compile for.
        reference: runs the kernels to compare with; None to compare with nothing.
        refused: by node index, why the node is left to other kernels.
        made: the compiled partitions, by their node indices.
    """

    def __init__(self, context: DelegateContext, engine: Engine, checks: bool) -> None:
        self.context = context
        self.engine = engine
        self.reference = Reference(context.model, context.subgraph_index) if checks else None
        self.refused: dict[int, str] = {}
        self.made: dict[tuple[int, ...], Partition] = {}
        self._bodies: dict[int, dict[int, Body]] = {}
        for index in context.execution_plan:
            node = context.node(index)
            bodies: dict[int, Body] = {}
            reason = self._refusal(context, node, bodies)
            if reason:
                self.refused[index] = reason
            elif bodies:
                self._bodies[index] = bodies

    def bodies_of(self, nodes: Sequence[int]) -> dict[int, Body]:
        """Return the subgraphs that nodes call."""
        return {index: body for node in nodes for index, body in self._bodies.get(node, {}).items()}

    def attempt(self, indices: tuple[int, ...], subset: NodeSubset, wanted: Collection[tuple[int, ...]]) -> None:
        """Compile a partition; if it fails, write to `refused` which nodes to leave to other kernels after all."""
        context = self.context
        taken = sum(made.executable.nbytes for nodes, made in self.made.items() if nodes in wanted)
        inputs, outputs = ([context.tensors[i] for i in each] for each in (subset.inputs, subset.outputs))
        try:
            self.made[indices] = compile_partition(
                [context.node(i) for i in indices],
                inputs,
                outputs,
                self.bodies_of(indices),
                self.engine,
                lambda nbytes: context.charge(taken + nbytes),
                self.reference,
            )
        except LimitError as error:
            self._refuse(indices, f"XLA would take more memory than is allowed: {error}")
        except Untranslatable as error:
            owners = [i for i in indices if context.node(i) is error.node] or [
                i for i in indices if any(error.node in body.nodes for body in self._bodies.get(i, {}).values())
            ]
            self._refuse(owners or indices, error.reason)
        except Refused as error:
            self._refuse(indices, str(error))
        except failures() as error:
            self._refuse(indices, f"XLA does not run its partition: {first_line(error)}")

    def _refuse(self, indices: Sequence[int], reason: str) -> None:
        self.refused.update(dict.fromkeys(indices, reason))

    def _refusal(self, context: DelegateContext, node: Node, bodies: dict[int, Body]) -> str:
        """Return why a node cannot be claimed, as far as is known without compiling; collect the subgraphs that it calls."""
        if node.op is BuiltinOperator.DELEGATE:
            return "it is another delegate's"
        if node.outputs and all(tensor.is_constant for tensor in node.outputs):
            return "its result is constant, nothing needs to run"
        if node.registration is None:
            return "no package serves it, so that nobody knows its shapes"
        reason, found = refusal(node, quantized=self.engine.quantized), translator(node.op_name)
        if reason or found is None or found.bodies is None:
            return reason
        for index in found.bodies(node):
            if index in bodies:
                continue
            inner = context.subgraph_context(index)
            nodes = [inner.node(i) for i in inner.execution_plan]
            table = (context.model.root.subgraphs or [])[index]
            inputs, outputs = (
                [inner.tensors[i] for i in ([] if ends is None else ends)] for ends in (table.inputs, table.outputs)
            )
            updates = updates_in(nodes, outputs)
            bodies[index] = Body(nodes, inputs, outputs, updates)
            taken = {*updates, *(cut for update in updates.values() for cut in update.slices)}
            for each in nodes:
                settled = each in taken or all(t.is_constant for t in each.outputs)
                reason = "" if settled else self._refusal(inner, each, bodies)
                if reason:
                    return f"it calls subgraph {index}, whose {each} is left alone: {reason}"
        return ""


def _more_than_copies(
    context: DelegateContext, partitions: Sequence[NodeSubset], refused: dict[int, str]
) -> Sequence[NodeSubset]:
    """Drop partitions that only copy, if there are others: a call of a function costs more than the runtime's copy."""
    copies = [subset for subset in partitions if all(context.node(index).op_name in _COPIES for index in subset.nodes)]
    if len(partitions) == 1 or not copies:
        return partitions
    for subset in copies:
        refused.update(dict.fromkeys(subset.nodes, "its partition would only copy, which the runtime does faster"))
    return [subset for subset in partitions if subset not in copies]
