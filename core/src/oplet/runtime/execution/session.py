"""What the subgraphs of one interpreter share: the model, its limits and memory, and who is running what."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Protocol

from oplet.errors import LimitError, StateError
from oplet.ops.context import EnsureError, Node
from oplet.runtime.limits import Limits, RunMeter
from oplet.runtime.memory.accounting import MemoryAccount
from oplet.runtime.threads.workers import Workers

if TYPE_CHECKING:
    from oplet.model.model import Model
    from oplet.ops.callee import Callee
    from oplet.ops.serving.registration import Thunk
    from oplet.ops.serving.resolver import OpResolver
    from oplet.ops.tensor import Shape
    from oplet.runtime.describe.profiler import Profiler
    from oplet.runtime.subgraph import Subgraph
    from oplet.schema.enums import TensorType

__all__ = ["Backend", "Runner", "Session"]

#: As good as no limit.
_ENDLESS = 2**62


class Runner(Protocol):
    """What runs one subgraph, for whoever calls it: its executor, or the delegation that drives the executor."""

    def resize_input(self, index: int, shape: Shape, type: TensorType | None = None) -> None:
        """Give an input another shape, or also another type; it takes an `allocate` before the next `invoke`."""

    def allocate(self) -> None:
        """Prepare what runs for the shapes of now; nothing happens if it is."""

    def invoke(self) -> None:
        """Run it."""

    def bind(self) -> Thunk:
        """What runs it for a node that calls it; good for this generation."""

    def restart(self) -> None:
        """Put its state back to what it is after `allocate`."""

    def release(self) -> None:
        """Give back the memory of whatever does not outlive an invoke."""


class Backend(Protocol):
    """What runs one subgraph asynchronously."""

    def ensure_idle(self) -> None:
        """Refuse to go on while a task is in flight, with a StateError."""

    def close(self) -> None:
        """Finish every task; nothing can be started afterwards."""


class Session:
    """One model being run.

    Attributes:
        model: the model.
        resolver: where registrations come from.
        subgraphs: all its subgraphs, by index.
        runners: what runs each of them.
        callees: what each of them is to the nodes that call it.
        num_threads: threads that a kernel may use.
        preserve_all_tensors: whether every tensor keeps memory of its own.
        profiler: takes an event per node run, or None.
        force_delegate_profiling: tell it of delegates' kernels as a whole, also where they report operator by operator.
        release_dynamic_tensors: whether tensors with shapes of one invoke give back their memory at its end.
        checks: whether to look, after each node, at what its kernel changed.
        workers: the threads beside the one that invokes.
        resources: state that outlives an invoke and has no tensor: resource variables, hash tables.
        limits: what the model may take.
        memory: the bytes that it takes now.
        meter: ends a run that is to stop, and is asked by kernels' checkpoints.
        max_while_iterations: how often a loop may go round before it is taken for endless.
    """

    def __init__(
        self,
        model: Model,
        resolver: OpResolver,
        *,
        num_threads: int,
        preserve_all_tensors: bool,
        profiler: Profiler | None,
        limits: Limits,
    ) -> None:
        self.model = model
        self.resolver = resolver
        self.chains: dict[Any, Any] = {}  # of providers, by what nodes ask for; those who decline nodes fill it
        self.subgraphs: list[Subgraph] = []
        self.runners: list[Runner] = []
        self.callees: list[Callee] = []
        self.num_threads = num_threads
        self.preserve_all_tensors = preserve_all_tensors
        self.profiler = profiler
        self.force_delegate_profiling = False
        self.release_dynamic_tensors = False
        self.checks = False
        self.resources: dict[Any, Any] = {}
        self.limits = limits
        self.memory = MemoryAccount(limits, model)
        self.meter = RunMeter(limits, model, self.memory.charge)
        self.max_while_iterations = limits.max_while_iterations or _ENDLESS
        self._deepest = limits.max_call_depth or _ENDLESS
        self._most_calls = limits.max_subgraph_calls or _ENDLESS
        self._calls = 0
        self.workers = Workers(num_threads)
        self._active: list[Subgraph] = []
        self._owner: int | None = None  # the thread that has the interpreter to itself now
        self._locked = 0
        self._free = threading.Lock()

    def lock(self) -> None:
        """Have the interpreter for this thread until `unlock`, which every `lock` needs; a thread may hold it several times.

        Raises:
            StateError: another thread has it.
        """
        mine = threading.get_ident()
        if self._owner != mine:
            if not self._free.acquire(blocking=False):
                raise self._in_use()
            self._owner = mine
        self._locked += 1

    def unlock(self) -> None:
        """Undo one `lock`."""
        self._locked -= 1
        if not self._locked:
            self._owner = None
            self._free.release()

    def ensure_unlocked(self) -> None:
        """Refuse to go on while another thread has the interpreter.

        Raises:
            StateError: one has.
        """
        owner = self._owner
        if owner is not None and owner != threading.get_ident():
            raise self._in_use()

    def _in_use(self) -> StateError:
        names = {thread.ident: f" ('{thread.name}')" for thread in threading.enumerate()}
        return StateError(
            f"The interpreter of {self.model.name} is in use by another thread{names.get(self._owner, '')}: one interpreter serves one "
            "thread at a time. Make an Interpreter for each thread (those of one file share its constants), or guard this one with a lock."
        )

    def enter(self, subgraph: Subgraph) -> None:
        """Note that a subgraph is being prepared or run; every `enter` needs its `leave`.

        Raises:
            StateError: another thread prepares or runs one.
            EnsureError: it is already: the subgraphs call each other in a circle.
            LimitError: the calls are nested too deeply.
        """
        self.lock()
        try:
            self._check_call(subgraph)
        except BaseException:
            self.unlock()
            raise
        self._active.append(subgraph)

    def _check_call(self, subgraph: Subgraph) -> None:
        active = self._active
        self.check_not_active(subgraph)
        if not active:
            self._calls = 0
            self.meter.begin()
        elif len(active) >= self._deepest:
            raise LimitError(
                f"{subgraph} is called at a depth of {len(active)} subgraphs in {self.model.name}; "
                f"Limits(max_call_depth={self._deepest}) allows no more."
            )
        else:
            self.count_call()

    def count_call(self) -> None:
        """Note that a subgraph is called by another.

        Raises:
            LimitError: there were too many such calls in this run.
        """
        self._calls += 1
        if self._calls > self._most_calls:
            raise LimitError(
                f"Subgraphs were called {self._most_calls} times in one run of {self.model.name}; "
                f"Limits(max_subgraph_calls={self._most_calls}) allows no more."
            )

    def profiles(self, node: Node) -> bool:
        """Whether the profiler is to be told of the node as a whole; some delegates' kernels tell of their operators."""
        return node.delegate is None or self.force_delegate_profiling or not node.delegate.profiles_operators

    def check_not_active(self, subgraph: Subgraph) -> None:
        """Refuse a call of a subgraph that is being prepared or run.

        Raises:
            EnsureError: it is; the message names the chain of calls.
        """
        active = self._active
        if subgraph in active:
            chain = " -> ".join(map(str, [*active[active.index(subgraph) :], subgraph]))
            raise EnsureError(f"the subgraphs call each other in a circle: {chain}; a call must not lead back to its caller.")

    def drop_references(self) -> None:
        """Let go of what refers back to it, so that all goes with the interpreter and not when Python looks for cycles."""
        self.subgraphs, self.runners, self.callees = [], [], []

    def leave(self) -> None:
        """Note that the subgraph entered last is done."""
        self._active.pop()
        if not self._active:
            self.meter.end()
        self.unlock()
