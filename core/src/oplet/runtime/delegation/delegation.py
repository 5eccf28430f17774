"""The delegation of a subgraph: each partition of claimed nodes is replaced by one kernel node, and restored where shapes demand it.

It drives the executor: once a delegate was applied to a subgraph, `Session.runners` has its delegation in place of its executor.

Rules, states and messages: ModifyGraphWithDelegate, UndoAllDelegates and RedoAllDelegates of tflite/core/subgraph.cc and
tflite/core/interpreter.cc in google-ai-edge/LiteRT.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple, NoReturn

from oplet.delegates.delegate import Delegate, DelegateFlags
from oplet.errors import DelegateApplicationError, DelegateError, OpletError, failures, text_of
from oplet.ops.context import Node
from oplet.ops.node import Thunk
from oplet.ops.tensor import Shape, Tensor
from oplet.runtime.delegation.delegate_context import SubgraphDelegateContext
from oplet.runtime.delegation.inlining import Decompositions, InlinedNodes
from oplet.runtime.delegation.serving_delegates import left_alone
from oplet.runtime.describe.delegation_report import DelegationReport
from oplet.runtime.execution.executor import Executor
from oplet.runtime.execution.preparation import propagate_shapes
from oplet.runtime.memory.values import ensure_readable, free_handles
from oplet.schema.enums import TensorType
from oplet.texts import logger_of

__all__ = ["Delegation", "logger"]

logger = logger_of("oplet.delegates")

#: The most levels of composites in composites that are inlined.
_MOST_LEVELS = 50


class _OriginalGraph(NamedTuple):
    """A subgraph's nodes, the nodes' inputs and the execution plan, as they are without delegates."""

    nodes: list[Node]
    inputs: list[list[Tensor]]
    plan: list[int]


class Delegation:
    """The delegates of one subgraph; runs the subgraph with its executor.

    Args:
        executor: the subgraph's executor.
        executors: the executors of all subgraphs of the model, by index.
        decompositions: state of inlining composites that all subgraphs share.
        cluster: whether partitions may change the order of nodes (LiteRT's delegate clustering).
        fuse: whether a partition may have more than one node.
    """

    def __init__(
        self, executor: Executor, executors: Sequence[Executor], decompositions: Decompositions, *, cluster: bool, fuse: bool
    ) -> None:
        self._executor = executor
        self._executors = executors
        self._subgraph = executor.subgraph
        self._cluster = cluster
        self._fuse = fuse
        self._applied: list[Delegate] = []  # applied, or to be applied again by `_redo`
        self._claimed_anew = False  # since a kernel refused a shape: what other shapes let claim is asked at each of them
        self._undone = False
        self._served: set[Node] = set()  # nodes without a kernel that a delegate ran before a resize
        self._original: _OriginalGraph | None = None
        self._inlined = InlinedNodes(executor, decompositions)
        self._whole: set[Node] = set()  # composites that a delegate wants to claim as a whole

    # Running -------------------------------------------------------------------------------------------------

    def resize_input(self, index: int, shape: Shape, type: TensorType | None = None) -> None:
        """Give an input another shape or type; delegates of static shapes are undone until the next `allocate`."""
        if (self._subgraph.delegated.immutable or self._claimed_anew) and self._executor.changes_input(index, shape, type):
            self._undo()
            # With other shapes a kernel that declined a composite may serve it.
            self._restore_composites(node for node in self._inlined.composites if not self._inlined.is_certain(node))
        self._executor.resize_input(index, shape, type)

    def allocate(self) -> None:
        """Apply the delegates that a resize undid, and allocate; if a delegate's kernel refuses the shapes, all claim nodes again."""
        if not self._subgraph.ready:
            self._redo()
            self._ensure_served()
        if self._subgraph.ready:
            return
        try:
            self._allocate_executor()
        except DelegateApplicationError:
            self._claim_anew()
            if not self._subgraph.ready:
                self._allocate_executor()

    def _ensure_served(self) -> None:
        """Check that nodes without a kernel, which a delegate ran before a resize, are claimed again.

        Raises:
            UnservedNodeError: one is not.
        """
        for index in self._subgraph.execution_plan if self._served else ():
            node = self._subgraph.nodes[index]
            if node.registration is None and node in self._served:
                raise left_alone(node, self._subgraph, self._executor.session.model.name)

    def _allocate_executor(self) -> None:
        if self._needs_shapes:
            propagate_shapes(self._executor.context, self._original_plan)
        self._executor.allocate()

    def invoke(self) -> None:
        """Run the subgraph's execution plan, with delegates' kernels, by the executor."""
        self._executor.invoke()

    def bind(self) -> Thunk:
        """Return a function that runs the subgraph for a calling node, and copies outputs from delegates' buffers to tensors."""
        return partial(self._run_readable, self._executor.bind())

    def _run_readable(self, run: Thunk) -> None:
        run()
        for index in self._subgraph.read:
            ensure_readable(self._executor.context, self._subgraph.tensors[index])

    def restart(self) -> None:
        """Reset variables and the state of kernels to what they are after `allocate`."""
        self._executor.restart()

    def release(self) -> None:
        """Release the memory of all tensors whose values do not outlive an invoke."""
        self._executor.release()

    # Applying ------------------------------------------------------------------------------------------------

    @property
    def _needs_shapes(self) -> bool:
        """Whether a delegate's kernels need the shapes that preparing the original nodes gives (REQUIRE_PROPAGATED_SHAPES)."""
        wanted = DelegateFlags.ALLOW_DYNAMIC_TENSORS | DelegateFlags.REQUIRE_PROPAGATED_SHAPES
        return self._original is not None and any(wanted in delegate.flags for delegate in self._applied)

    @property
    def _original_plan(self) -> list[int]:
        """The execution plan without delegates."""
        return self._subgraph.execution_plan if self._original is None else self._original.plan

    def apply(self, delegate: Delegate) -> None:
        """Apply a delegate to the subgraph.

        Raises:
            DelegateApplicationError: the delegate is incompatible with the graph or with delegates applied before; the graph is usable.
            DelegateError: the delegate failed; all delegates were removed from this subgraph, and the original nodes run.
        """
        try:
            try:
                self._apply(delegate)
            except OpletError:
                raise
            except failures() as error:  # raised by a property of the delegate; errors of its methods are handled in `_apply`
                self._restore(delegate, error)
        except OpletError as error:
            self._report(delegate, str(error), {})
            if self._original is None and not self._undone:
                self._restore_composites(self._inlined.composites)
            self._allocate_if_possible()
            raise

    def _claim_anew(self) -> None:
        """Undo all delegates and apply them again with the current shapes, which one of their kernels refused.

        Raises:
            DelegateError: one of them fails.
        """
        self._undo()
        self._redo()
        self._claimed_anew = True

    def _undo(self) -> None:
        """Restore the original nodes; `allocate` applies the delegates again."""
        before, subgraph = self._original, self._subgraph
        if before is None:
            return
        self._original = None
        self._undone = True
        kernels = subgraph.nodes[len(before.nodes) :]
        self._served.update(n for params in subgraph.delegated.kernels.values() for n in params.nodes if n.registration is None)
        subgraph.delegated.awaiting = frozenset(self._served)
        subgraph.nodes[:] = before.nodes
        subgraph.execution_plan = before.plan
        for node, inputs in zip(before.nodes, before.inputs):
            node.inputs = inputs
        for params in subgraph.delegated.kernels.values():
            subgraph.forget_folded(params.nodes)
        subgraph.delegated.kernels.clear()
        subgraph.delegated.immutable = False
        subgraph.invalidate()
        for other in self._executors:
            other.subgraph.delegated.skippable = False
        try:
            free_handles(self._executor.context, [tensor for kernel in kernels for tensor in kernel.outputs])
        finally:
            self._executor.context.free(kernels)

    def _redo(self) -> None:
        """Apply the delegates again that `_undo` took away.

        Raises:
            DelegateError: one of them fails with the new shapes.
        """
        if self._undone:
            delegates, self._applied, self._undone = self._applied, [], False
            self._subgraph.delegated.awaiting = frozenset()
            logger.info("Redoing %d delegates.", len(delegates))
            for delegate in delegates:
                self.apply(delegate)

    def remove(self) -> None:
        """Remove all delegates and restore the original nodes; allocate unless a node has no kernel."""
        subgraph = self._subgraph
        self._undo()
        for delegate in self._applied:
            self._subgraph.delegated.reports[delegate] = self._subgraph.delegated.reports[delegate]._replace(
                applied=False, error="it was removed", partitions=[]
            )
        self._applied.clear()
        self._claimed_anew = False
        self._served.clear()
        self._subgraph.delegated.awaiting = frozenset()
        self._undone = False
        self._restore_composites(self._inlined.composites)
        given = [tensor for tensor in subgraph.tensors if tensor.delegate is not None]
        try:
            for tensor in given:  # the application may have written the tensor's value into the delegate's buffer
                if tensor.has_data:
                    ensure_readable(self._executor.context, tensor)
        finally:
            free_handles(self._executor.context, given)
        self._allocate_if_possible()

    def _apply(self, delegate: Delegate) -> None:
        self._redo()
        subgraph = self._subgraph
        dynamic = delegate.allows_dynamic_tensors
        whole = DelegateFlags.HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE in delegate.flags
        was_immutable, was_ready = subgraph.delegated.immutable, subgraph.ready
        self._propagate(delegate)
        unknown = self._settle_composites(delegate)
        context = self._claim(delegate)
        while unknown and (left := self._candidates(delegate)):
            self._change_composites(delegate, left, ())
            unknown = self._settle_composites(delegate)
            context = self._claim(delegate)
        if whole and any(subgraph.nodes[index].delegate is None for index in subgraph.execution_plan):
            self._reapply_previous()
            raise DelegateApplicationError(
                f"Hint fully delegated to single delegate is set, but the graph is not fully delegated. {delegate.name} leaves "
                f"nodes of {subgraph} to others."
            )
        if dynamic and was_immutable:
            try:
                tensor = propagate_shapes(self._executor.context)
            except OpletError as error:
                self._restore(delegate, error)
            if tensor is not None:
                self.remove()
                raise DelegateApplicationError(
                    "Cannot allow dynamic tensors due to previous delegation, resetting to original execution plan. With "
                    f"{delegate.name}, {tensor} gets a shape only while invoking."
                )
        if (not dynamic and not whole) or was_immutable or was_ready:
            self._allocate_now(delegate)
        subgraph.delegated.immutable = was_immutable or not dynamic
        self._applied.append(delegate)
        self._report(delegate, "", context.unsupported)

    def _propagate(self, delegate: Delegate) -> None:
        """Compute shapes for the delegate if it asks for them; refuse it if shapes are dynamic and it takes only static ones."""
        flags = delegate.flags
        if delegate.allows_dynamic_tensors:
            if DelegateFlags.REQUIRE_PROPAGATED_SHAPES in flags:
                propagate_shapes(self._executor.context)
        elif not self._subgraph.delegated.immutable and DelegateFlags.HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE not in flags:
            self._ensure_static(delegate)

    # Composites ----------------------------------------------------------------------------------------------

    def _candidates(self, delegate: Delegate) -> list[Node]:
        """Return the composites to inline: those that no kernel or delegate is known to compute as a whole."""
        certain = any(each.allows_dynamic_tensors for each in (*self._applied, delegate))  # a resize restores nothing then
        return [node for node in self._inlined.candidates(certain=certain) if node not in self._whole]

    def _settle_composites(self, delegate: Delegate) -> bool:
        """Inline the composites that no kernel or delegate computes as a whole; return whether `prepare` has to tell."""
        for _ in range(_MOST_LEVELS):
            candidates, inlined = self._candidates(delegate), self._inlined.composites
            if not candidates and not inlined:
                break
            context = self._context(delegate)
            try:
                wanted = delegate.wanted_composites(context, [*candidates, *inlined])
                chosen = None if wanted is None else {node for node in wanted if context.offers(node)}
            except failures() as error:
                self._restore(delegate, error)
            finally:
                context.close()
            if chosen is None:
                return True
            self._whole |= chosen
            inline, restore = [n for n in candidates if n not in chosen], [n for n in inlined if n in chosen]
            if not inline and not restore:
                break
            self._change_composites(delegate, inline, restore)
        return False

    def _change_composites(self, delegate: Delegate, inline: Iterable[Node], restore: Iterable[Node]) -> None:
        """Inline composites, or restore them, in the graph without delegates, and apply the earlier delegates again."""
        self._undo()
        self._inlined.restore(restore)
        self._inlined.inline(inline)
        self._redo()
        self._propagate(delegate)

    def _restore_composites(self, composites: Iterable[Node]) -> None:
        self._whole.clear()
        if found := list(composites):
            self._inlined.restore(found)

    def _context(self, delegate: Delegate) -> SubgraphDelegateContext:
        return SubgraphDelegateContext(delegate, self._executor, self._executors, cluster=self._cluster, fuse=self._fuse)

    def _ensure_static(self, delegate: Delegate) -> None:
        subgraph = self._subgraph
        tensor = propagate_shapes(self._executor.context)
        if tensor is not None:
            raise DelegateApplicationError(
                "Attempting to use a delegate that only supports static-sized tensors with a graph that has dynamic-sized tensors "
                f"(tensor#{tensor.index} is a dynamic-sized tensor). {delegate.name} leaves {subgraph} as it is."
            )

    def _claim(self, delegate: Delegate) -> SubgraphDelegateContext:
        subgraph = self._subgraph
        if self._original is None:
            given = list(subgraph.nodes)
            self._original = _OriginalGraph(given, [list(node.inputs) for node in given], list(subgraph.execution_plan))
        context = self._context(delegate)
        nodes = len(subgraph.execution_plan)
        try:
            delegate.prepare(context)
        except failures() as error:
            self._restore(delegate, error)
        finally:
            context.close()
        self._subgraph.delegated.kernels.update((kernel.index, kernel.prepared) for kernel in context.kernels)
        claimed = sum(len(kernel.prepared.nodes) for kernel in context.kernels)
        logger.debug(
            "Replacing %d out of %d node(s) with delegate (%s) node, yielding %d partitions for subgraph %d (%s).",
            claimed, nodes, delegate.name, len(context.kernels), subgraph.index, subgraph.name,
        )  # fmt: skip
        return context

    def _allocate_now(self, delegate: Delegate) -> None:
        """Prepare the delegate's kernels now, so that a failure removes the delegate."""
        self._subgraph.invalidate()
        try:
            self._allocate_resolved()
        except failures() as error:
            self._restore(delegate, error)

    def _allocate_if_possible(self) -> None:
        """Allocate where that succeeds; where it fails, the application's next `allocate_tensors` raises the error."""
        with suppress(OpletError):
            self._allocate_resolved()

    def _allocate_resolved(self) -> None:
        subgraph = self._subgraph
        if all(subgraph.nodes[index].registration is not None for index in subgraph.execution_plan):
            self.allocate()

    def _restore(self, delegate: Delegate, error: BaseException) -> NoReturn:
        self.remove()
        raise DelegateError(
            f"Restored original execution plan after delegate application failure. {delegate.name} failed on {self._subgraph}: {text_of(error)}"
        ) from error

    def _reapply_previous(self) -> None:
        """Undo the delegate that is being applied, and apply the earlier ones again."""
        self._undo()
        self._redo()

    def _report(self, delegate: Delegate, error: str, unsupported: dict[int, str]) -> None:
        partitions = (
            []
            if error
            else [[n.index for n in p.nodes] for p in self._subgraph.delegated.kernels.values() if p.delegate is delegate]
        )
        self._subgraph.delegated.reports.pop(delegate, None)  # the order is that of application
        self._subgraph.delegated.reports[delegate] = DelegationReport(
            delegate.name, self._subgraph.index, not error, error, len(self._original_plan), partitions, unsupported
        )  # fmt: skip
