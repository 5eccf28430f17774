"""What the subgraphs of one interpreter share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oplet.model.model import Model
    from oplet.ops.resolver import OpResolver
    from oplet.runtime.profiler import Profiler
    from oplet.runtime.subgraph import Subgraph

__all__ = ["Session"]


class Session:
    """One model being run.

    Attributes:
        model: the model.
        resolver: where registrations come from.
        subgraphs: all its subgraphs, by index.
        num_threads: threads that a kernel may use.
        preserve_all_tensors: whether every tensor keeps memory of its own.
        profiler: takes an event per node run, or None.
        resources: state that outlives an invoke and has no tensor: resource variables, hash tables.
    """

    def __init__(
        self, model: Model, resolver: OpResolver, *, num_threads: int, preserve_all_tensors: bool, profiler: Profiler | None
    ) -> None:
        self.model = model
        self.resolver = resolver
        self.subgraphs: list[Subgraph] = []
        self.num_threads = num_threads
        self.preserve_all_tensors = preserve_all_tensors
        self.profiler = profiler
        self.resources: dict[Any, Any] = {}
