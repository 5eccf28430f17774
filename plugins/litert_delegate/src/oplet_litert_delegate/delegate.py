"""LiteRTDelegate: claims nodes, and gives back those that LiteRT rejects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from oplet import (
    Delegate,
    DelegateContext,
    DelegateFlags,
    DelegateParams,
    Node,
    Tensor,
    charge,
    kernel_registration,
    largest_partitions,
)
from oplet.errors import LimitError, ModelError
from oplet_litert_delegate.claims import refuses, unpacks_constant
from oplet_litert_delegate.composites import refuses_composite
from oplet_litert_delegate.engine import Engine, RefusedError
from oplet_litert_delegate.kernel import LiteRTKernel
from oplet_litert_delegate.library import Library
from oplet_litert_delegate.part import Source, write_part
from oplet_litert_delegate.settings import Settings
from oplet_litert_delegate.sizes import WORK_PER_SECOND, Size, size_of, size_of_all

__all__ = ["LiteRTDelegate"]

Nodes = tuple[int, ...]

#: Complaints of LiteRT about single nodes after which all that are like the one it names are given back: a partition is
#: written and opened again after each.
_PATIENCE = 8


class LiteRTDelegate(Delegate):
    """The delegate that runs every node that LiteRT supports in LiteRT.

    Each partition is written as a model of its own and opened in LiteRT before its nodes are claimed: nodes that LiteRT rejects
    stay with oplet's kernels, and the delegation report says why.
    """

    name = "litert"
    flags = DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.REQUIRE_PROPAGATED_SHAPES

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self.settings = settings = Settings.read(self.options)
        self._library = Library(settings.library, settings.library_options) if settings.library else None

    def wanted_composites(self, context: DelegateContext, composites: Sequence[Node]) -> Collection[Node]:
        if self.settings.xnnpack != 1:
            return ()
        return [node for node in composites if not refuses_composite(node)]

    def prepare(self, context: DelegateContext) -> None:
        claim = _Claim(context, self.settings, self._library)
        claim.settle()
        for index, reason in claim.refused.items():
            context.report_unsupported(index, reason)

        def create_kernel(params: DelegateParams) -> LiteRTKernel:
            nodes = tuple(node.index for node in params.nodes)
            return LiteRTKernel(claim.engines.pop(nodes), partial(claim.make_engine, params.nodes, params.output_tensors))

        context.replace_node_subsets_with_delegate_kernels(kernel_registration(self.name, create_kernel), claim.nodes)


class _Claim:
    """The claim in one subgraph: nodes for LiteRT, and reasons for the others.

    Attributes:
        nodes: the indices of the nodes for LiteRT.
        refused: by node index, why a node stays with oplet's kernels.
        engines: the LiteRT interpreter of each partition, by its nodes' indices.
    """

    def __init__(self, context: DelegateContext, settings: Settings, library: Library | None) -> None:
        self.nodes: set[int] = set()
        self.refused: dict[int, str] = {}
        self.engines: dict[Nodes, Engine] = {}
        self._context = context
        self._settings = settings
        self._library = library
        self._complaints = 0
        self._seconds = context.max_seconds
        self._num_threads = settings.num_threads or context.num_threads
        plan = [context.node(index) for index in context.execution_plan]
        self._own = _own_variables(context, plan)
        unpacking: dict[Tensor, Node] = {}
        for node in plan:
            if node.delegate is not None:
                continue
            if why := refuses(node, self._own, xnnpack=settings.xnnpack == 1) or self._too_large(size_of(node)):
                self.refused[node.index] = why
                continue
            self.nodes.add(node.index)
            if unpacks_constant(node):
                unpacking[node.outputs[0]] = node
        self._source = Source(context.model, context.subgraph_index, context.tensors, unpacking)

    def settle(self) -> None:
        """Leave nodes to oplet's kernels until LiteRT accepts all remaining partitions."""
        given_back = True
        while given_back:
            given_back = False
            partitions = [subset for subset in self._context.preview_delegate_partitioning(self.nodes) if subset.claimed]
            for subset in partitions:
                nodes, outputs = tuple(subset.nodes), subset.outputs
                refused = self._superfluous(nodes, outputs) or self._opened(nodes, outputs)
                self.refused.update(refused)
                self.nodes -= refused.keys()
                given_back |= bool(refused)
            if not given_back:
                refused = {}
                largest_partitions(partitions, self._settings.min_nodes, self._settings.max_partitions, refused)
                self.refused.update(refused)
                self.nodes -= refused.keys()
                given_back = bool(refused)
            wanted = {tuple(subset.nodes) for subset in partitions}
            self.engines = {nodes: engine for nodes, engine in self.engines.items() if nodes in wanted}

    def make_engine(self, nodes: Sequence[Node], outputs: Sequence[Tensor], charge: Callable[[int], None] = charge) -> Engine:
        """Create the engine that runs these nodes for the present shapes.

        Args:
            charge: called with the estimated bytes; raises LimitError if they are more than is allowed.

        Raises:
            ModelError: the nodes cannot be written as a model.
            RefusedError: LiteRT does not take the nodes, or would take more memory or time than is allowed.
        """
        for node in nodes:
            if why := refuses(
                node, self._own, xnnpack=self._settings.xnnpack == 1
            ):  # which may be otherwise than when it was claimed
                raise RefusedError(why, node)
        size = size_of_all(nodes, outputs)
        if why := self._too_large(size, charge):
            raise RefusedError(why)
        return Engine(
            write_part(self._source, nodes, outputs),
            self._num_threads,
            xnnpack=self._settings.xnnpack == 1,
            nbytes=size.nbytes,
            library=self._library,
        )

    def _too_large(self, size: Size, charge: Callable[[int], None] | None = None) -> str:
        """Return why LiteRT, which cannot be interrupted, would exceed the limits of memory or time; "" if it would not.

        Args:
            charge: raises LimitError for bytes that are not allowed; None for the delegate context's.
        """
        try:
            (charge or self._context.charge)(size.nbytes)
        except LimitError as error:
            return f"LiteRT would take more memory than is allowed: {error}"
        if self._seconds is not None and size.work > WORK_PER_SECOND * self._seconds:
            return f"LiteRT, which cannot be stopped, may take longer than Limits(max_seconds={self._seconds}) allows"
        return ""

    def _superfluous(self, nodes: Nodes, outputs: Sequence[int]) -> dict[int, str]:
        """Return, with reasons, the nodes to leave to oplet: those that only expand constants for nodes elsewhere."""
        crossing = {index for index in nodes if self._unpacks_for(index, outputs)}
        return dict.fromkeys(crossing, "it unpacks a constant, which others need too")

    def _unpacks_for(self, index: int, outputs: Sequence[int]) -> bool:
        node = self._context.node(index)
        return self._source.unpacking.get(node.outputs[0]) is node and node.outputs[0].index in outputs

    def _opened(self, nodes: Nodes, outputs: Sequence[int]) -> dict[int, str]:
        """Try to open the partition in LiteRT; return the rejected nodes with reasons."""
        if nodes in self.engines:
            return {}
        if not outputs:
            return dict.fromkeys(nodes, "nobody reads what comes out of its partition")
        context = self._context
        try:
            taken = sum(engine.nbytes for engine in self.engines.values())
            self.engines[nodes] = self.make_engine(
                [context.node(index) for index in nodes],
                [context.tensors[index] for index in outputs],
                lambda nbytes: context.charge(taken + nbytes),
            )
        except ModelError as error:
            return dict.fromkeys(nodes, f"its partition cannot be written as a model: {error}")
        except RefusedError as error:
            return dict.fromkeys(self._concerned(nodes, error.node), str(error))
        return {}

    def _concerned(self, nodes: Nodes, refused: Node | None) -> Iterable[int]:
        """Return the nodes to leave to oplet after LiteRT's rejection: the node `refused`, all if it is None.

        After several rejections these are all nodes of the same operator as `refused`.
        """
        self._complaints += 1
        if refused is None:
            return nodes
        if self._complaints <= _PATIENCE:
            return (refused.index,)
        return [index for index in nodes if self._context.node(index).op_name == refused.op_name]


def _own_variables(context: DelegateContext, plan: Sequence[Node]) -> set[Tensor]:
    """Return the variable tensors that only a single node reads and writes."""
    users = Counter(tensor for node in plan for tensor in {*node.inputs, *node.outputs} if tensor is not None)
    seen = {context.tensors[index] for index in (*context.inputs, *context.outputs)}
    return {tensor for tensor, count in users.items() if tensor.is_variable and count == 1 and tensor not in seen}
