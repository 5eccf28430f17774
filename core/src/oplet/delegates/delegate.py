"""What a delegate is: it looks at the graph, claims nodes, and brings the kernels that run them.

Contract: tflite/core/c/common.h (TfLiteDelegate) and tflite/delegates/utils/simple_delegate.h of google-ai-edge/LiteRT.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Flag
from typing import TYPE_CHECKING, Any, NamedTuple

from oplet.delegates.partition import NodeSubset
from oplet.errors import DelegateError, PluginError
from oplet.ops.context import Context, Node
from oplet.ops.registration import Provenance, Registration, Thunk
from oplet.ops.tensor import Tensor
from oplet.schema.enums import BuiltinOperator

if TYPE_CHECKING:
    from oplet.ops.async_kernel import AsyncKernel

__all__ = [
    "Delegate",
    "DelegateContext",
    "DelegateEntry",
    "DelegateFlags",
    "DelegateKernel",
    "DelegateParams",
    "DelegateRegistry",
    "SimpleDelegate",
]


class DelegateFlags(Flag):
    """What a delegate can do, with LiteRT's numbers."""

    NONE = 0
    ALLOW_DYNAMIC_TENSORS = 1
    REQUIRE_PROPAGATED_SHAPES = 2
    PER_OPERATOR_PROFILING = 4
    HINT_FULLY_DELEGATED_TO_SINGLE_DELEGATE = 8


class DelegateParams(NamedTuple):
    """What a delegate's kernel is initialized with: the partition that it replaces.

    Attributes:
        delegate: the delegate.
        nodes: the nodes that the kernel replaces, in the order in which to run them.
        input_tensors: what they read from outside, constants included.
        output_tensors: what others read from them.
    """

    delegate: Delegate
    nodes: list[Node]
    input_tensors: list[Tensor]
    output_tensors: list[Tensor]


class DelegateContext(Context):
    """The graph as a delegate's `prepare` sees it; the runtime implements it."""

    @property
    def execution_plan(self) -> list[int]:
        """Indices of the nodes to run, in order; the caller's to keep."""
        raise NotImplementedError

    def node(self, index: int) -> Node:
        """The node of that index, with its registration."""
        raise NotImplementedError

    def preview_delegate_partitioning(self, nodes: Collection[int]) -> list[NodeSubset]:
        """The partitions that claiming `nodes` would give; nothing changes."""
        raise NotImplementedError

    def replace_node_subsets_with_delegate_kernels(self, registration: Registration, nodes: Collection[int]) -> None:
        """Replace the claimed nodes by one node per partition, served by `registration`.

        Args:
            registration: its `init` is called with a `DelegateParams`.
            nodes: indices of the claimed nodes; none is fine and changes nothing.
        """
        raise NotImplementedError


class Delegate:
    """Base of all delegates.

    Attributes:
        name: what reports call it.
        flags: what it can do.
        options: what the user gave, all as strings, as LiteRT's `load_delegate` passes them.
    """

    name: str = "Delegate"
    flags: DelegateFlags = DelegateFlags.NONE

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        self.options = {str(key): str(value) for key, value in (options or {}).items()}

    def prepare(self, context: DelegateContext) -> None:
        """Claim nodes with `context.replace_node_subsets_with_delegate_kernels`; raising leaves the graph as it was."""
        raise NotImplementedError


class DelegateKernel:
    """One partition of a `SimpleDelegate`; made by `create_kernel`, dropped when the interpreter goes."""

    def prepare(self, context: Context, node: Node) -> None:
        """Check shapes, set the outputs' shapes, ask for temporaries; whenever inputs were resized."""

    def bind(self, context: Context, node: Node) -> Thunk:
        """Return the function that runs the partition; the tensors have their memory now."""
        raise NotImplementedError

    def async_kernel(self, context: Context, node: Node) -> AsyncKernel | None:
        """Return what runs the partition asynchronously, None if nothing does.

        `return ThreadedAsyncKernel(self.bind)` runs it as it is, in a thread.
        """
        return None


class SimpleDelegate(Delegate):
    """The common case: say node by node what is supported, and make a kernel for each partition.

    Attributes:
        max_delegated_partitions: take at most so many partitions, the largest; 0 for all.
        min_nodes_per_partition: leave smaller partitions alone.
        refused: after `prepare`: why nodes were left alone, by (subgraph, node).
    """

    max_delegated_partitions: int = 0
    min_nodes_per_partition: int = 0

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        self.refused: dict[int, str] = {}

    def is_node_supported(self, context: DelegateContext, node: Node) -> bool | str:
        """Whether the delegate can run the node: True, or False, or the reason why not."""
        raise NotImplementedError

    def create_kernel(self, params: DelegateParams) -> DelegateKernel:
        """Make the kernel that runs one partition."""
        raise NotImplementedError

    def prepare(self, context: DelegateContext) -> None:
        claimed = []
        self.refused = {}
        for index in context.execution_plan:
            node = context.node(index)
            if node.op is BuiltinOperator.DELEGATE:
                continue
            answer = self.is_node_supported(context, node)
            if answer is True:
                claimed.append(index)
            else:
                self.refused[index] = answer if isinstance(answer, str) else "not supported"
        partitions = [subset for subset in context.preview_delegate_partitioning(claimed) if subset.claimed]
        kept = self._choose(partitions)
        context.replace_node_subsets_with_delegate_kernels(self._registration(), [i for subset in kept for i in subset.nodes])

    def _choose(self, partitions: Sequence[NodeSubset]) -> list[NodeSubset]:
        kept = [subset for subset in partitions if len(subset.nodes) >= max(self.min_nodes_per_partition, 1)]
        if self.max_delegated_partitions > 0:
            kept = sorted(kept, key=lambda subset: -len(subset.nodes))[: self.max_delegated_partitions]
        chosen = {index for subset in kept for index in subset.nodes}
        for subset in partitions:
            for index in subset.nodes:
                if index not in chosen:
                    self.refused[index] = (
                        f"its partition of {len(subset.nodes)} nodes is left out (min_nodes_per_partition="
                        f"{self.min_nodes_per_partition}, max_delegated_partitions={self.max_delegated_partitions})"
                    )
        return kept

    def _registration(self) -> Registration:
        return Registration(
            builtin_code=BuiltinOperator.DELEGATE,
            custom_name=self.name,
            init=lambda context, params: self.create_kernel(params),
            prepare=lambda context, node: node.user_data.prepare(context, node),
            bind=lambda context, node: node.user_data.bind(context, node),
            async_kernel=lambda context, node: node.user_data.async_kernel(context, node),
        )


@dataclass(frozen=True)
class DelegateEntry:
    """A delegate that can be asked for by name.

    Attributes:
        name: the name.
        factory: takes the options and returns the delegate; or "module:NAME" of it.
        provenance: which package brought it.
    """

    name: str
    factory: Callable[[Mapping[str, Any]], Delegate] | str
    provenance: Provenance

    def create(self, options: Mapping[str, Any] | None = None) -> Delegate:
        """Make the delegate.

        Raises:
            PluginError: its module or factory cannot be imported.
            DelegateError: it refuses its options.
        """
        factory = self.factory
        if isinstance(factory, str):
            module, _, name = factory.partition(":")
            try:
                factory = getattr(importlib.import_module(module), name)
            except Exception as error:  # whatever a stranger's module does while it is imported
                raise PluginError(
                    f"The delegate '{self.name}' of {self.provenance} cannot be imported from '{self.factory}': "
                    f"{type(error).__name__}: {error}; upgrade or uninstall that package."
                ) from error
        try:
            return factory(dict(options or {}))
        except Exception as error:
            raise DelegateError(
                f"Failed to load delegate from {self.name}: {self.provenance} refuses the options {dict(options or {})}: {error}"
            ) from error


class DelegateRegistry:
    """Delegates by name; a plugin's `register_delegates` adds to it.

    Example:
        >>> from oplet import Delegate, DelegateRegistry
        >>> registry = DelegateRegistry()
        >>> registry.add("mine", Delegate)
        >>> [entry.name for entry in registry.entries()]
        ['mine']
    """

    def __init__(self, provenance: Provenance | None = None) -> None:
        self.provenance = provenance or Provenance()
        self._entries: dict[str, list[DelegateEntry]] = {}

    def add(self, name: str, factory: Callable[[Mapping[str, Any]], Delegate] | str) -> None:
        """Offer a delegate.

        Args:
            name: by which `load_delegate` finds it.
            factory: takes a mapping of options and returns a Delegate (a Delegate class will do), or "module:NAME" of it.

        Raises:
            DelegateError: the name is empty or the factory is none.
        """
        if not isinstance(name, str) or not name:
            raise DelegateError(f"A delegate is registered under {name!r}, which is not a name.")
        if not callable(factory) and not (isinstance(factory, str) and ":" in factory):
            raise DelegateError(f"The delegate '{name}' is registered with {factory!r}, neither a callable nor 'module:NAME'.")
        self._entries.setdefault(name, []).append(DelegateEntry(name, factory, self.provenance))

    def merge(self, other: DelegateRegistry) -> None:
        """Take over every entry of another registry, with its provenance."""
        for entry in other.entries():
            self._entries.setdefault(entry.name, []).append(entry)

    def entries(self) -> Iterator[DelegateEntry]:
        """All entries, by name."""
        return (entry for name in sorted(self._entries) for entry in self._entries[name])

    def find(self, name: str) -> DelegateEntry:
        """The entry of that name; "distribution:name" chooses where two packages bring one.

        Raises:
            DelegateError: there is none, or more than one.
        """
        distribution, _, short = name.rpartition(":")
        found = [e for e in self._entries.get(short, []) if not distribution or e.provenance.distribution == distribution]
        if len(found) == 1:
            return found[0]
        if not found:
            known = ", ".join(sorted(self._entries)) or "none"
            raise DelegateError(
                f"Failed to load delegate from {name}: no installed package brings a delegate of that name (known: {known}). "
                "Native delegate libraries (.so, .dll) run in LiteRT only."
            )
        packages = " and ".join(str(entry.provenance) for entry in found)
        raise DelegateError(
            f"Failed to load delegate from {name}: {packages} both bring it; name one as '{found[0].provenance.distribution}:{short}'."
        )
