"""The two interpreters of a comparison: the candidate and the baseline."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from oplet import Delegate, DelegateContext, Interpreter, Node, NodeSubset, Registration
from oplet.toolkit import inline_composites
from oplet_tools.benchmarking.tune import tune_model
from oplet_tools.running.delegates import delegates_or_auto, make_delegate
from oplet_tools.tuning.choice import auto_bounds
from oplet_tools.tuning.node_comparison import Place

if TYPE_CHECKING:
    from oplet import PluginManager, Profiler
    from oplet_tools.tuning.trials import Progress

__all__ = ["InterpreterPair", "claimed_nodes", "kernels_of", "open_pair"]


@dataclass(frozen=True)
class InterpreterPair:
    """Factory of the two interpreters of a comparison, candidate and baseline."""

    model: str | os.PathLike[str]  #: The .tflite file.
    make_delegates: Callable[[], Sequence[Delegate]] = tuple  #: Makes the candidate's delegates.
    delegated: bool = False  #: Whether the candidate has delegates; otherwise it has other packages' kernels.
    plugins: PluginManager | None = None  #: The plugins that provide kernels.
    num_threads: int = 1  #: Threads that kernels may use.
    prefer: tuple[str, ...] = ()  #: The plugins whose kernels the candidate takes where several have one for an op.
    baseline_prefer: tuple[str, ...] = ()  #: The plugins whose kernels the baseline takes where several have one.

    def open_candidate(
        self, profiler: Profiler | None = None, *, alone: bool = False, only: Collection[tuple[int, int]] | None = None
    ) -> Interpreter:
        """Open the candidate: the interpreter that is tested.

        Args:
            profiler: receives an event for each node that runs; None for no profiling.
            alone: whether each partition of a delegate has only one node.
            only: the nodes that delegates may claim, as pairs of subgraph and node; all if None.
        """
        delegates = [delegate if only is None else _limited(delegate, only) for delegate in self.make_delegates()]
        return self._open(
            profiler, self.prefer, experimental_delegates=delegates, experimental_disable_delegate_node_fusion=alone
        )

    def open_baseline(self, profiler: Profiler | None = None, candidate: Interpreter | None = None) -> Interpreter:
        """Open the baseline: the interpreter that the candidate is compared with.

        Args:
            profiler: receives an event for each node that runs; None for no profiling.
            candidate: the candidate: composites that it decomposed are decomposed here too; None for the model as in the file.
        """
        interpreter = self._open(profiler, self.baseline_prefer)
        if candidate is not None:
            inline_composites(interpreter, candidate)
        return interpreter

    def _open(self, profiler: Profiler | None, prefer: Sequence[str], **arguments: Any) -> Interpreter:
        return Interpreter(
            self.model,
            num_threads=self.num_threads,
            plugins=self.plugins,
            prefer=prefer,
            profiler=profiler,
            experimental_force_delegate_node_profiling=True,
            **arguments,
        )


def open_pair(
    model: str | os.PathLike[str],
    texts: Sequence[str],
    plugins: PluginManager,
    num_threads: int = 1,
    *,
    with_reference: bool = False,
    progress: Progress | None = None,
) -> tuple[InterpreterPair, str]:
    """Prepare candidate and baseline from a command line's arguments; return both, and the choice of "auto" as text ("" without it).

    Args:
        model: the .tflite file.
        texts: the delegates, see `oplet_tools.running.delegates.make_delegate`; or "auto"; none to compare the kernels of packages.
        plugins: the plugins that provide delegates and kernels.
        num_threads: threads that kernels may use.
        with_reference: whether outputs in a file, or LiteRT's, take the place of the baseline.
        progress: called with what "auto" measures and the part of it that is done, 0 to 1.

    Raises:
        OpletError: there is no such delegate, it refuses its options, or "auto" is given with others.
    """
    builtin = tuple(info.name for info in plugins.plugins() if info.state == "loaded" and info.tier == "builtin")
    told = delegates_or_auto(texts, plugins)
    if isinstance(told, str):
        choice = tune_model(
            model, plugins=plugins, num_threads=num_threads, again=False, bounds=auto_bounds(told), progress=progress
        )
        make = partial(choice.candidate.make_delegates, plugins)
        baseline = choice.trials[0].candidate.prefer
        return InterpreterPair(
            model, make, bool(choice.candidate.delegates), plugins, num_threads, choice.candidate.prefer, baseline
        ), str(choice)
    if told:
        return InterpreterPair(model, lambda: [make_delegate(text, plugins) for text in texts], True, plugins, num_threads), ""
    baseline = () if with_reference else builtin
    if baseline and plugins.has_op_libraries:  # which precede every package, so that all others are named
        baseline += tuple(info.name for info in plugins.plugins() if info.ops and info.name not in builtin)
    return InterpreterPair(model, plugins=plugins, num_threads=num_threads, baseline_prefer=baseline), ""


def kernels_of(interpreter: Interpreter) -> list[tuple[int, Node]]:
    """List the delegate kernels in execution order, each with its subgraph's index."""
    return [
        (subgraph.index, subgraph.nodes[index])
        for subgraph in interpreter.subgraphs
        for index in subgraph.execution_plan
        if subgraph.nodes[index].delegate is not None
    ]


def claimed_nodes(interpreter: Interpreter) -> list[tuple[int, int]]:
    """List the model's nodes that delegate kernels replace, as pairs of subgraph and node, in the order in which they run."""
    return [place for subgraph, kernel in kernels_of(interpreter) for place in _behind(interpreter, subgraph, kernel)]


def _behind(interpreter: Interpreter, subgraph: int, kernel: Node) -> list[Place]:
    """List the model's nodes, as (subgraph, node), that a delegate's kernel replaces, also by way of earlier kernels."""
    found: list[Place] = []
    for node in kernel.prepared.nodes:
        found += [(subgraph, node.index)] if node.delegate is None else _behind(interpreter, subgraph, node)
    return found


def _limited(delegate: Delegate, only: Collection[tuple[int, int]]) -> Delegate:
    """Make a delegate claim only nodes of `only`, pairs of subgraph and node; return the same delegate."""
    prepare = delegate.prepare
    # The instance is patched, not wrapped: its kernels refer to it.
    delegate.prepare = lambda context: prepare(cast(DelegateContext, _Limited(context, only)))  # type: ignore[method-assign]
    return delegate


class _Limited:
    """A context for a delegate's `prepare` that offers only some of the nodes; all else is the runtime's context."""

    def __init__(self, inner: DelegateContext, only: Collection[tuple[int, int]]) -> None:
        self._inner = inner
        self._only = only

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def subgraph_context(self, index: int) -> _Limited:
        return _Limited(self._inner.subgraph_context(index), self._only)

    def preview_delegate_partitioning(self, nodes: Collection[int]) -> list[NodeSubset]:
        return self._inner.preview_delegate_partitioning(self._allowed(nodes))

    def replace_node_subsets_with_delegate_kernels(self, registration: Registration, nodes: Collection[int]) -> None:
        self._inner.replace_node_subsets_with_delegate_kernels(registration, self._allowed(nodes))

    def _allowed(self, nodes: Collection[int]) -> list[int]:
        kernels = {index for index in nodes if self._inner.node(index).delegate is not None}
        return [index for index in nodes if index in kernels or (self._inner.subgraph_index, index) in self._only]
