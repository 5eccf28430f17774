"""Apply delegates: claimed nodes out, one kernel node per partition in; undone and redone where shapes demand it.

Rules, states and messages: ModifyGraphWithDelegate, UndoAllDelegates and RedoAllDelegates of tflite/core/subgraph.cc and
tflite/core/interpreter.cc in google-ai-edge/LiteRT.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from oplet.delegates.delegate import Delegate, DelegateFlags, DelegateParams
from oplet.errors import DelegateApplicationError, DelegateError, OpletError, failures, text_of
from oplet.ops.context import Node
from oplet.ops.tensor import Tensor
from oplet.runtime.delegation.decompositions import idle_decompositions
from oplet.runtime.delegation.delegate_context import SubgraphDelegateContext
from oplet.runtime.memory.buffer_handles import ensure_readable, free_handles
from oplet.runtime.subgraph import Subgraph
from oplet.schema.enums import BuiltinOperator
from oplet.texts import logger_of

__all__ = ["Delegation", "DelegationReport", "apply_delegate", "load_delegate", "remove_delegates"]

logger = logger_of("oplet.delegates")

#: Subgraphs that only test a delegate's accuracy are named so; they are never delegated.
_VALIDATION_PREFIX = "VALIDATION:"


def load_delegate(library: str, options: Mapping[str, Any] | None = None) -> Delegate:
    """Make a delegate that an installed package brings.

    Args:
        library: the delegate's name, as `oplet plugins` lists it.
        options: what it is to be told.

    Raises:
        DelegateLoadError: no package brings it, or it refuses the options (a ValueError, as LiteRT raises).

    Example:
        >>> from oplet import Interpreter, load_delegate
        >>> Interpreter("model.tflite", experimental_delegates=[load_delegate("example")])  # doctest: +SKIP
    """
    from oplet.plugins.manager import default_manager

    return default_manager().registry().find(library).create(options)


class DelegationReport(NamedTuple):
    """What became of applying one delegate to one subgraph.

    Attributes:
        delegate: the delegate's name.
        subgraph: the subgraph's index.
        applied: whether what it claimed is in force.
        error: why not, "" if it is.
        nodes: nodes of the plan when it was asked.
        partitions: the nodes that each of its kernels replaces.
        unsupported: why it left nodes alone, by node.
    """

    delegate: str
    subgraph: int
    applied: bool
    error: str
    nodes: int
    partitions: list[list[int]]
    unsupported: dict[int, str]


class _Before(NamedTuple):
    """A subgraph as it is without delegates."""

    nodes: list[Node]
    inputs: list[list[Tensor]]
    plan: list[int]


class Delegation:
    """The delegates of one subgraph.

    Attributes:
        applied: those in force, or to be applied again by `redo`.
        kernels: what each kernel node replaces, by its index.
        reports: what became of each delegate that was ever applied, the last state of each.
        gave_back: whether a kernel could not work with the shapes of now, so that with others the delegates may claim more.
    """

    def __init__(self, subgraph: Subgraph, *, cluster: bool, fuse: bool) -> None:
        self.applied: list[Delegate] = []
        self.kernels: dict[int, DelegateParams] = {}
        self.reports: dict[Delegate, DelegationReport] = {}
        self._subgraph = subgraph
        self._cluster = cluster
        self._fuse = fuse
        self.gave_back = False
        self._undone = False
        self._before: _Before | None = None

    @property
    def needs_shapes(self) -> bool:
        """Whether a delegate's kernels count on shapes that the nodes that they replace have set."""
        wanted = DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.REQUIRE_PROPAGATED_SHAPES
        return self._before is not None and any(wanted in delegate.flags for delegate in self.applied)

    @property
    def original_plan(self) -> list[int]:
        """The plan as it is without delegates."""
        return self._subgraph.execution_plan if self._before is None else self._before.plan

    def apply(self, delegate: Delegate) -> None:
        """Let a delegate claim nodes.

        Raises:
            DelegateApplicationError: it does not fit the graph or the delegates before it; the graph is usable.
            DelegateError: it failed; no delegate is in force any more on this subgraph, and the graph is as it was.
        """
        try:
            try:
                self._apply(delegate)
            except OpletError:
                raise
            except failures() as error:  # of its properties, as its methods are called where their errors are expected
                self._restore(delegate, error)
        except OpletError as error:
            self._report(delegate, str(error), {})
            self._settle()
            raise

    def claim_again(self) -> None:
        """Ask the delegates again, with the shapes of now, which a kernel of theirs cannot work with.

        Raises:
            DelegateError: one of them fails.
        """
        self.undo()
        self.redo()
        self.gave_back = True

    def undo(self) -> None:
        """Put the original nodes back; `redo` applies the delegates again."""
        self.gave_back = False
        before, subgraph = self._before, self._subgraph
        if before is None:
            return
        self._before = None
        self._undone = True
        kernels = subgraph.nodes[len(before.nodes) :]
        subgraph.nodes[:] = before.nodes
        subgraph.execution_plan = before.plan
        for node, inputs in zip(before.nodes, before.inputs):
            node.inputs = inputs
        for params in self.kernels.values():
            subgraph.folding.forget(params.nodes)
        self.kernels.clear()
        subgraph.immutable = False
        subgraph.invalidate()
        for other in subgraph.session.subgraphs:
            other.delegation_skippable = False
        try:
            free_handles(subgraph, [tensor for kernel in kernels for tensor in kernel.outputs])
        finally:
            subgraph.free(kernels)

    def redo(self) -> None:
        """Apply again what a resize undid.

        Raises:
            DelegateError: one of them fails with the new shapes.
        """
        if self._undone:
            delegates, self.applied, self._undone = self.applied, [], False
            logger.info("Redoing %d delegates.", len(delegates))
            for delegate in delegates:
                self.apply(delegate)

    def remove(self) -> None:
        """Put the original nodes back for good, ready to run, unless it takes ops that nobody serves."""
        subgraph = self._subgraph
        self.undo()
        for delegate in self.applied:
            self.reports[delegate] = self.reports[delegate]._replace(applied=False, error="it was removed", partitions=[])
        self.applied.clear()
        self._undone = False
        given = [tensor for tensor in subgraph.tensors if tensor.delegate is not None]
        try:
            for tensor in given:  # what the application put into a delegate's buffer is still its value
                if tensor.has_data:
                    ensure_readable(subgraph, tensor)
        finally:
            free_handles(subgraph, given)
        self._settle()

    def _apply(self, delegate: Delegate) -> None:
        self.redo()
        subgraph = self._subgraph
        dynamic = delegate.allows_dynamic_tensors
        whole = DelegateFlags.HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE in delegate.flags
        was_immutable, was_ready = subgraph.immutable, subgraph.ready
        if not was_immutable and not dynamic and not whole:
            self._ensure_static(delegate)
        elif dynamic and DelegateFlags.REQUIRE_PROPAGATED_SHAPES in delegate.flags:
            subgraph.propagate_shapes()
        if self._before is None:
            nodes = list(subgraph.nodes)
            self._before = _Before(nodes, [list(node.inputs) for node in nodes], list(subgraph.execution_plan))
        context = self._claim(delegate)
        if whole and any(subgraph.nodes[index].delegate is None for index in subgraph.execution_plan):
            self._fall_back()
            raise DelegateApplicationError(
                f"Hint fully delegated to single delegate is set, but the graph is not fully delegated. {delegate.name} leaves "
                f"nodes of {subgraph} to others."
            )
        if dynamic and was_immutable:
            try:
                tensor = subgraph.propagate_shapes()
            except OpletError as error:
                self._restore(delegate, error)
            if tensor is not None:
                self.remove()
                raise DelegateApplicationError(
                    "Cannot allow dynamic tensors due to previous delegation, resetting to original execution plan. With "
                    f"{delegate.name}, {tensor} gets a shape only while invoking."
                )
        if (not dynamic and not whole) or was_immutable or was_ready:
            self._allocate(delegate)
        subgraph.immutable = was_immutable or not dynamic
        self.applied.append(delegate)
        self._report(delegate, "", context.unsupported)

    def _ensure_static(self, delegate: Delegate) -> None:
        subgraph = self._subgraph
        tensor = subgraph.propagate_shapes()
        if tensor is not None:
            raise DelegateApplicationError(
                "Attempting to use a delegate that only supports static-sized tensors with a graph that has dynamic-sized tensors "
                f"(tensor#{tensor.index} is a dynamic-sized tensor). {delegate.name} leaves {subgraph} as it is."
            )

    def _claim(self, delegate: Delegate) -> SubgraphDelegateContext:
        subgraph = self._subgraph
        context = SubgraphDelegateContext(delegate, subgraph, cluster=self._cluster, fuse=self._fuse)
        nodes = len(subgraph.execution_plan)
        try:
            delegate.prepare(context)
        except failures() as error:
            self._restore(delegate, error)
        finally:
            context.close()
        self.kernels.update((kernel.index, kernel.prepared) for kernel in context.kernels)
        claimed = sum(len(kernel.prepared.nodes) for kernel in context.kernels)
        logger.debug(
            "Replacing %d out of %d node(s) with delegate (%s) node, yielding %d partitions for subgraph %d (%s).",
            claimed, nodes, delegate.name, len(context.kernels), subgraph.index, subgraph.name,
        )  # fmt: skip
        return context

    def _allocate(self, delegate: Delegate) -> None:
        """Have the delegate's kernels prepare now, so that a failure is found while the way back is open."""
        self._subgraph.invalidate()
        try:
            self._allocate_resolved()
        except failures() as error:
            self._restore(delegate, error)

    def _settle(self) -> None:
        """Leave a graph that can run; where it cannot, the application's `allocate_tensors` says why."""
        with suppress(OpletError):
            self._allocate_resolved()

    def _allocate_resolved(self) -> None:
        subgraph = self._subgraph
        if all(subgraph.nodes[index].registration is not None for index in subgraph.execution_plan):
            subgraph.allocate()

    def _restore(self, delegate: Delegate, error: BaseException) -> NoReturn:
        self.remove()
        raise DelegateError(
            f"Restored original execution plan after delegate application failure. {delegate.name} failed on {self._subgraph}: {text_of(error)}"
        ) from error

    def _fall_back(self) -> None:
        """Back to the delegates before this one."""
        self.undo()
        self.redo()

    def _report(self, delegate: Delegate, error: str, unsupported: dict[int, str]) -> None:
        partitions = [] if error else [[n.index for n in p.nodes] for p in self.kernels.values() if p.delegate is delegate]
        self.reports[delegate] = DelegationReport(
            delegate.name, self._subgraph.index, not error, error, len(self.original_plan), partitions, unsupported
        )  # fmt: skip


def apply_delegate(
    delegate: Delegate, subgraphs: Sequence[Subgraph], *, cluster: bool, fuse: bool, only: Collection[int] | None = None
) -> None:
    """Let a delegate claim nodes of every subgraph, but the decompositions of composites that it or a kernel computes as a whole.

    Args:
        only: the indices of those subgraphs that it is to be asked about.
        cluster: group nodes greedily, past ones that are not ready.
        fuse: allow more than one node a partition.

    Raises:
        DelegateApplicationError: it does not fit the graph, or the delegates before it; the graph is usable.
        DelegateError: it failed; every subgraph is without delegates.
    """
    if not isinstance(delegate, Delegate):
        how = f"load_delegate({delegate!r}) makes one" if isinstance(delegate, str) else "load_delegate makes one from a name"
        raise DelegateError(f"Null delegate. experimental_delegates has {delegate!r}, which is no oplet Delegate; {how}.")
    if only is not None and not only:
        raise DelegateApplicationError("Active subgraph indices must not be empty.")
    for index in only or ():
        if not 0 <= index < len(subgraphs):
            raise DelegateApplicationError(
                f"Active subgraph index {index} is out of range. The model has {len(subgraphs)} subgraphs."
            )
    idle: set[int] | None = None
    for subgraph in subgraphs:
        if only is not None and subgraph.index not in only:
            continue
        if idle is None:
            idle = idle_decompositions(subgraphs) if only is None else set()
        if subgraph.name.startswith(_VALIDATION_PREFIX) or subgraph.delegation_skippable or subgraph.index in idle:
            logger.info("Skipping calling ModifyGraphWithDelegate on Subgraph %d: %s", subgraph.index, subgraph.name)
            continue
        if subgraph.delegation is None:
            subgraph.delegation = Delegation(subgraph, cluster=cluster, fuse=fuse)
        try:
            subgraph.delegation.apply(delegate)
        except DelegateApplicationError:
            raise
        except DelegateError:
            remove_delegates(subgraphs)
            raise
        except OpletError:
            if subgraph.index == 0:
                raise
            # What the file says of a body's shapes may be too little to prepare it alone: it runs without the delegate.
        if any(node.op is BuiltinOperator.STABLEHLO_COMPOSITE for node in subgraph.nodes):
            idle = None  # its composites were prepared, and kernels may have declined some


def remove_delegates(subgraphs: Sequence[Subgraph]) -> None:
    """Put every subgraph's original nodes back, callers after what they call."""
    for subgraph in reversed(subgraphs):
        if subgraph.delegation is not None:
            subgraph.delegation.remove()
