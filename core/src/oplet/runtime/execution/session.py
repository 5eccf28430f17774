"""The session: the state that an interpreter's subgraphs share, such as model, limits, memory account, threads and call stack; and the meter
that ends a run.
"""

from __future__ import annotations

import time
from _thread import allocate_lock, get_ident
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from oplet.errors import CancelledError, DeadlineError, LimitError, StateError
from oplet.ops.context import EnsureError, Node
from oplet.ops.ensure import Meter, swap_meter
from oplet.runtime.memory.accounting import MemoryAccount

if TYPE_CHECKING:
    from collections.abc import Callable

    from oplet.model.model import Model
    from oplet.ops.callee import Callee
    from oplet.ops.node import Thunk
    from oplet.ops.serving.resolver import OpResolver
    from oplet.ops.tensor import Shape
    from oplet.plugins.manager import PluginManager
    from oplet.runtime.describe.profiler import Profiler
    from oplet.runtime.memory.accounting import Limits
    from oplet.runtime.subgraph import Subgraph
    from oplet.runtime.workers import Workers
    from oplet.schema.enums import TensorType

__all__ = ["Backend", "RunMeter", "Runner", "Session", "resolver_of"]

#: A number in place of no limit.
_ENDLESS = 2**62


def _or_endless(limit: int | None) -> int:
    return _ENDLESS if limit is None else limit


class Runner(Protocol):
    """What runs one subgraph: its executor, or the delegation that drives the executor."""

    def resize_input(self, index: int, shape: Shape, type: TensorType | None = None) -> None:
        """Give an input another shape, or also another type; `allocate` is needed before the next `invoke`."""

    def allocate(self) -> None:
        """Prepare the subgraph for the current input shapes; nothing happens if it is ready."""

    def invoke(self) -> None:
        """Run the subgraph."""

    def bind(self) -> Thunk:
        """Return a function that runs the subgraph for a node that calls it, valid until the next resize or preparation."""

    def restart(self) -> None:
        """Reset variables and the state of kernels to what they are after `allocate`."""

    def release(self) -> None:
        """Release the memory of all tensors whose values do not outlive an invoke."""


class Backend(Protocol):
    """The interface that runs one subgraph asynchronously."""

    def ensure_idle(self) -> None:
        """Raise a StateError while a task is in flight."""

    def close(self) -> None:
        """Finish every task; nothing can be started afterwards."""


class RunMeter:
    """The `Meter` of an interpreter's runs: ends a run that was cancelled or is out of time, and refuses memory beyond the limits.

    Attributes:
        reasons: why the run must end; empty while it may go on (a list, as testing it between nodes is cheap).
        charge: counts memory that kernels allocate besides tensors against the limits.
        keep: counts memory that outlives a node's run against the limits, and returns a function that subtracts freed bytes.
        has_deadline: whether `max_seconds` is set.
    """

    def __init__(self, limits: Limits, model: Model, memory: MemoryAccount) -> None:
        self.count(memory)
        self.reasons: list[str] = []
        self.has_deadline = limits.max_seconds is not None
        self._seconds = limits.max_seconds
        self._end = float("inf")
        self._model = model
        self._outer: Meter | None = None

    def count(self, memory: MemoryAccount) -> None:
        """Count what kernels allocate in this account from now on."""
        self.charge, self.keep = memory.charge, memory.keep

    def begin(self) -> None:
        """Begin a run: clear the reasons that ended the run before, start the clock, and become this thread's meter."""
        self.reasons.clear()
        if self._seconds is not None:
            self._end = time.monotonic() + self._seconds
        self._outer = swap_meter(self)

    def end(self) -> None:
        """End a run: restore this thread's previous meter, that of an outer run whose kernel ran this interpreter, if any."""
        swap_meter(self._outer)
        self._outer = None

    def stop(self) -> None:
        """End the run before its next node. Any thread may call it."""
        self.reasons.append("Client requested cancel during Invoke()")

    def check(self) -> None:
        """Raise an error if the run must end.

        Raises:
            CancelledError: another thread called `stop`.
            DeadlineError: the run took longer than `max_seconds`.
        """
        if self.reasons:
            raise CancelledError(f"{self.reasons[0]}. {self._model.name} was stopped; it can be invoked again.")
        if self.has_deadline and time.monotonic() > self._end:
            raise DeadlineError(
                f"{self._model.name} took longer than Limits(max_seconds={self._seconds}) allows; it was stopped, and can be invoked again."
            )

    def foresee(self, seconds: float) -> None:
        """Raise an error if the run must end, or would exceed its deadline after a call of so many seconds.

        Raises:
            CancelledError: another thread called `stop`.
            DeadlineError: the run takes longer than `max_seconds`, or would.
        """
        self.check()
        if self.has_deadline and time.monotonic() + seconds > self._end:
            raise DeadlineError(
                f"{self._model.name} makes a call that takes about {seconds:.1f} seconds and cannot be stopped; Limits(max_seconds="
                f"{self._seconds}) does not allow it. It was not begun, and the model can be invoked again."
            )


class Session:
    """The shared state of one interpreter's subgraphs.

    Attributes:
        model: the model.
        chains: by op and version, the kernels that may serve it, in order; `execution.fallback` adds them.
        subgraphs: the model's subgraphs, by index.
        runners: the runner of each subgraph: its executor, or its delegation.
        callees: each subgraph as the nodes that call it see it; empty until a kernel asks for one.
        num_threads: the number of threads that a kernel may use.
        default_delegates: whether kernels compute what LiteRT's default delegate computes (`Context.default_delegates`).
        preserve_all_tensors: whether every tensor keeps memory of its own.
        profiler: records an event per node run; None for no profiling.
        force_delegate_profiling: whether delegates' kernels are profiled as a whole, also where they report single operators.
        release_dynamic_tensors: whether the memory of tensors of dynamic shape is released at the end of each invoke.
        checks: whether to check after each node that its kernel changed nothing that it may only read.
        checkpoint_folder: the folder in which the model may read and write files; None for nowhere.
        resources: state that outlives an invoke and has no tensor: resource variables, hash tables.
        limits: the limits of the interpreter.
        memory: the account of the bytes that are allocated.
        inlined_model: the model with inlined nodes, for delegates, and the number of inlined composites; None until first needed.
        meter: ends runs at a deadline or when they are cancelled; kernels' checkpoints call it.
        max_while_iterations: the most iterations of one loop.
    """

    def __init__(
        self,
        model: Model,
        resolver: Callable[[], OpResolver],
        *,
        num_threads: int,
        preserve_all_tensors: bool,
        profiler: Profiler | None,
        limits: Limits,
    ) -> None:
        self.model = model
        self._resolver = resolver
        self._found_resolver: OpResolver | None = None
        self.chains: dict[Any, Any] = {}
        self.inlined_model: tuple[int, Model] | None = None
        self.subgraphs: list[Subgraph] = []
        self.runners: list[Runner] = []
        self.callees: list[Callee] = []
        self.num_threads = num_threads
        self.preserve_all_tensors = preserve_all_tensors
        self.profiler = profiler
        self.default_delegates = True
        self.force_delegate_profiling = False
        self.release_dynamic_tensors = False
        self.checks = False
        self.checkpoint_folder: str | None = None
        self.resources: dict[Any, Any] = {}
        self.limits = limits
        self.memory = MemoryAccount(limits, model)
        self.meter = RunMeter(limits, model, self.memory)
        self.max_while_iterations = _or_endless(limits.max_while_iterations)
        self._deepest = _or_endless(limits.max_call_depth)
        self._most_calls = _or_endless(limits.max_subgraph_calls)
        self._calls = 0
        self._active: list[Subgraph] = []
        self._owner: int | None = None  # the thread that has the interpreter to itself now
        self._locked = 0
        self._free = allocate_lock()

    @property  # no cached one, which would make all attributes of the session slower to read, at each run
    def resolver(self) -> OpResolver:
        """The resolver, which finds the kernels for the nodes; plugins are imported at its first use."""
        if self._found_resolver is None:
            self._found_resolver = self._resolver()
        return self._found_resolver

    @cached_property
    def workers(self) -> Workers:
        """The threads that share kernels' work with the one that invokes; started when they are first needed."""
        from oplet.runtime.workers import Workers  # imported late: most interpreters have one thread

        return Workers(self.num_threads)

    def end_workers(self) -> None:
        """End the worker threads, which share kernels' work with the one that invokes, if any were started."""
        if "workers" in vars(self):
            self.workers.close()

    def take_over(self, memory: MemoryAccount, resources: dict[Any, Any]) -> None:
        """Have the memory account and resources of a dropped interpreter, whose prepared nodes this one's subgraph has now."""
        self.memory, self.resources = memory, resources
        self.meter.count(memory)

    def lock(self) -> None:
        """Take the interpreter's lock for this thread, without waiting; reentrant. Every `lock` needs its `unlock`.

        Raises:
            StateError: another thread has the lock.
        """
        mine = get_ident()
        if self._owner != mine:
            if not self._free.acquire(False):  # without a keyword, which would take longer than the lock
                raise self._in_use()
            self._owner = mine
        self._locked += 1

    def unlock(self) -> None:
        """Release the lock, once for each `lock`."""
        self._locked -= 1
        if not self._locked:
            self._owner = None
            self._free.release()

    def ensure_unlocked(self) -> None:
        """Check that no other thread has the lock.

        Raises:
            StateError: another thread has the lock.
        """
        owner = self._owner
        if owner is not None and owner != get_ident():
            raise self._in_use()

    def _in_use(self) -> StateError:
        import threading  # imported late: it takes longer than opening a small model

        names = {thread.ident: f" ('{thread.name}')" for thread in threading.enumerate()}
        return StateError(
            f"The interpreter of {self.model.name} is in use by another thread{names.get(self._owner, '')}: one interpreter serves one "
            "thread at a time. Make an Interpreter for each thread (those of one file share its constants), or guard this one with a lock."
        )

    def enter(self, subgraph: Subgraph) -> None:
        """Push a subgraph, which is to be prepared or run, onto the call stack; every `enter` needs its `leave`.

        Raises:
            StateError: another thread has the interpreter's lock.
            EnsureError: the subgraph is on the stack already: subgraphs call each other in a circle.
            LimitError: the calls are nested too deeply, or there were too many.
        """
        self.lock()
        active = self._active
        if not active:  # the usual case
            self._calls = 0
            self.meter.begin()
        else:
            try:
                self._check_call(subgraph)
            except BaseException:
                self.unlock()
                raise
        active.append(subgraph)

    @property
    def kept(self) -> tuple[bool, bool]:
        """Two flags: whether all tensors keep their values after a run, and whether a profiler reads them after each node."""
        return self.preserve_all_tensors, self.profiler is not None and self.profiler.reads_tensors

    def enter_alone(self, subgraph: Subgraph) -> bool:
        """Begin the run of a subgraph that is one compiled step, which needs no checks of deadlines; `leave_alone` must follow.

        Returns:
            False where another thread has the lock, or a subgraph is being run: call `enter`.
        """
        mine = get_ident()
        if self._owner != mine:
            if not self._free.acquire(False):
                return False
            self._owner = mine
        elif self._active:
            return False
        self._locked += 1
        self._active.append(subgraph)
        self.meter.reasons.clear()
        return True

    def leave_alone(self) -> None:
        """Pop the subgraph that `enter_alone` pushed."""
        self._active.pop()
        self._locked -= 1
        if not self._locked:
            self._owner = None
            self._free.release()

    def _check_call(self, subgraph: Subgraph) -> None:
        active = self._active
        self.check_not_active(subgraph)
        if len(active) >= self._deepest:
            raise LimitError(
                f"{subgraph} is called at a depth of {len(active)} subgraphs in {self.model.name}; "
                f"Limits(max_call_depth={self._deepest}) allows no more."
            )
        self.count_call()

    def count_call(self, calls: int = 1) -> None:
        """Count a call of a subgraph by another, or several.

        Raises:
            LimitError: there were too many calls in this run.
        """
        self._calls += calls
        if self._calls > self._most_calls:
            raise LimitError(
                f"Subgraphs were called {self._most_calls} times in one run of {self.model.name}; "
                f"Limits(max_subgraph_calls={self._most_calls}) allows no more."
            )

    def is_outermost(self, subgraph: Subgraph) -> bool:
        """Return whether the application, and not a node of another subgraph, runs this subgraph now."""
        return self._active[0] is subgraph

    @property
    def is_running(self) -> bool:
        """Whether a subgraph is being prepared or run."""
        return bool(self._active)

    def profiles(self, node: Node) -> bool:
        """Return whether to record the node as one event; False for delegates' kernels that report their operators one by one."""
        return node.delegate is None or self.force_delegate_profiling or not node.delegate.profiles_operators

    def check_not_active(self, subgraph: Subgraph) -> None:
        """Check that a subgraph is not on the call stack.

        Raises:
            EnsureError: the subgraph is on the stack; the message names the chain of calls.
        """
        active = self._active
        if subgraph in active:
            chain = " -> ".join(map(str, [*active[active.index(subgraph) :], subgraph]))
            raise EnsureError(f"the subgraphs call each other in a circle: {chain}; a call must not lead back to its caller.")

    def drop_references(self) -> None:
        """Drop references that form cycles, so that memory is freed with the interpreter, not by a later garbage collection."""
        self.subgraphs, self.runners, self.callees = [], [], []

    def leave(self) -> None:
        """Pop the subgraph that was entered last from the call stack."""
        active = self._active
        active.pop()
        if not active:
            self.meter.end()
        self._locked -= 1
        if not self._locked:
            self._owner = None
            self._free.release()


def resolver_of(manager: PluginManager, prefer: Any, own: OpResolver | None) -> OpResolver:
    """Return the resolver of an interpreter: the application's own registrations, then those of the plugins."""
    found: OpResolver = manager.resolver(prefer)
    if own is None:
        return found
    from oplet.ops.serving.resolver import ChainOpResolver

    return ChainOpResolver([own, found])
