"""Fusion: a kernel computes ("absorbs") nodes before it with its own, and neighbouring nodes run in one compiled call ("joining").

A *step*, or thunk, is the function without arguments that runs a node; a *joiner* is a package's object that fuses its steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import chain
from typing import Any, Protocol

from oplet.ops.node import Node, Thunk
from oplet.ops.tensor import Array, Tensor
from oplet.records import Row

__all__ = [
    "LONGEST",
    "Absorption",
    "Joiner",
    "Rounds",
    "Spans",
    "StalePlanError",
    "StoredThunks",
    "Touched",
    "absorb",
    "joined",
    "looped",
    "storable",
]


class StalePlanError(Exception):
    """Raised by a step that cannot run as it was prepared; the runtime prepares the nodes again, and runs them from the start.

    Attributes:
        node: the fused node whose nodes give another shape than was prepared, or must be refused: it is then prepared unfused. None if
            the step is from disk and one of its nodes fails: the nodes' own kernels then tell what is wrong.
    """

    def __init__(self, node: Node | None = None) -> None:
        super().__init__(f"{'a step from disk' if node is None else repr(node)} cannot run as it was prepared")
        self.node = node


class Absorption:
    """The fusion state of a graph: which nodes compute, with their own kernels, the producers of inputs that nothing else reads.

    Attributes:
        nodes: the nodes that absorb others now.
        apart: the indices of nodes that must stay unfused, since at run time they had other shapes than they were prepared for.
    """

    __slots__ = ("apart", "nodes")

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.apart: set[int] = set()

    @property
    def absorbed(self) -> set[Node]:
        """The nodes that are absorbed: kernels of other nodes compute them, and they do not run themselves."""
        return {other for node in self.nodes for other in node.absorbed}

    @property
    def indices(self) -> set[int]:
        """The indices of the nodes that absorb others: whose kernels compute producers of their inputs, too."""
        return {node.index for node in self.nodes}

    def has_no(self, tensor: Tensor) -> bool:
        """Return whether a tensor is never computed, as its reader absorbs (computes itself) the node that would write it."""
        return bool(self.nodes) and any(tensor in other.outputs for node in self.nodes for other in node.absorbed)

    def set_apart(self, node: Node | None) -> None:
        """Exclude a node from fusion from the next preparation on; no effect on None, or if no node is fused into it now."""
        self.apart.update(mine.index for mine in self.nodes if mine is node)

    def end(self, before: Container[Node] = ()) -> None:
        """Undo the fusion, so that every node runs by itself; fused nodes in `before` stay fused."""
        if self.nodes:
            for node in self.nodes:  # some may not be in the plan any more, as a delegate has claimed them
                if node not in before:
                    node.absorbed = ()
            self.nodes = [node for node in self.nodes if node.absorbed]


def absorb(
    nodes: Sequence[Node], read: Sequence[Tensor], apart: Container[int], restarts: Callable[[], bool], *, alone: bool
) -> list[Node]:
    """Fuse into nodes those producers that only they read, as their kernels ask (`Registration.fuses`).

    Args:
        nodes: the nodes of a graph, in the order in which they run; none absorbs another one yet.
        read: the tensors that the graph's caller reads.
        apart: the indices of nodes that stay unfused.
        restarts: whether a run may be aborted and restarted, as a `speculative` kernel may demand; called only if there is one.
        alone: whether no delegate runs nodes of the graph, so that nodes may be fused that are only faster then.

    Returns:
        The nodes that absorb others, whose `absorbed` is set.
    """
    wanting = [
        (node, kernel.fuses, kernel.speculative)
        for node in nodes
        if (kernel := node.registration) is not None
        and kernel.fuses is not None
        and (alone or kernel.speculative)
        and node.index not in apart
    ]
    if not wanting:
        return []
    makers = {node.outputs[0]: node for node in nodes if len(node.outputs) == 1}
    readers = Counter(chain.from_iterable([*(node.inputs for node in nodes), read, read]))
    found: list[Node] = []
    can_restart: bool | None = None
    for node, fuses, speculative in wanting:
        own = [
            maker
            for tensor in node.inputs
            if tensor in makers
            and readers[tensor] == 1
            and not (maker := makers[tensor]).absorbed
            and (kernel := maker.registration) is not None
            and kernel.pure
            and not kernel.speculative
            # What reads a variable would read it later, when another node may have changed it.
            and (_is_absorbable(maker) if speculative else not _reads_variables(maker))
        ]
        absorbed = tuple(fuses(node, own)) if own else ()
        if absorbed and speculative:
            can_restart = restarts() if can_restart is None else can_restart
            absorbed = absorbed if can_restart else ()
        if absorbed:
            node.absorbed = absorbed
            found.append(node)
    return found


def _reads_variables(node: Node) -> bool:
    return any(tensor is not None and tensor.is_variable for tensor in node.inputs)


def _is_absorbable(node: Node) -> bool:
    return node.registration is not None and node.registration.absorbable


#: Pieces of memory, each as its first address and that after its last byte.
Spans = Sequence[tuple[int, int]]

#: Runs rounds of a loop, see `Joiner.loop`.
Rounds = Callable[[int, bool], int]

#: About the seconds that a joined thunk may take, since a run is stopped between thunks only.
LONGEST = 5e-3


class Touched(Row):
    """The memory that a node's step may touch, as address ranges (first byte, end).

    Attributes:
        reads: its inputs.
        writes: its outputs and scratch, and inputs that are variables.
    """

    reads: Spans
    writes: Spans


class StoredThunks(Row):
    """Fused steps in serialized form, for other processes.

    Attributes:
        restores: the "module:NAME" of the function that deserializes them: restore(facts, memory, arena, model) returns the steps, or None
            where they cannot run. Importing the module should import little else.
        facts: the data for that function: dictionaries, lists, numbers, strings and bytes.
        memory: the bytes that the steps use besides arena and model; the function gets a private copy, aligned to 64 bytes.
        offsets: the offsets in `memory` of the arrays that the joiner was given.
    """

    restores: str
    facts: Mapping[str, Any]
    memory: bytes
    offsets: Sequence[int]


class Joiner(Protocol):
    """Fuses steps (functions that run nodes) into one. One that can be fused has its package's joiner as attribute `joiner`.

    Steps that can be fused call nothing in Python, and always do the same with the same arrays. A fused step may raise an error
    of one of them after it has run all; the fused step's attribute `failed_at` is then the position of the failed one.

    Examples:
        >>> thunk.joiner = JOINER  # doctest: +SKIP
    """

    def adopt(self, thunk: Thunk) -> Thunk | None:
        """Convert another package's step to one that this joiner can fuse; None if that is impossible.

        Only `oplet.kernels.arrays.Copies` describe what they do, and can be converted.
        """

    def join(self, thunks: Sequence[Thunk], touched: Sequence[Touched] | None = None) -> Thunk:
        """Return one function that runs these steps in order; it keeps alive the objects that the steps reference.

        Args:
            thunks: the steps.
            touched: for each the memory that it reads and writes, given where kernels may use several threads: independent steps may
                run at the same time.
        """

    def loop(
        self, before: Thunk, condition: Sequence[Thunk], flag: Array, body: Sequence[Thunk], step: Thunk, after: Thunk
    ) -> Rounds | None:
        """Return a function that runs iterations of a loop, and keeps alive what it needs; None where it cannot be made.

        Its arguments are the largest number of iterations, and whether they are the first, before which it runs `before`. It returns the
        number of iterations that it ran: if they are fewer, the condition was false, and it ran `after`. When it raises, its attribute
        `failed_at` is the position of the step that failed, among those of the condition and then of the body.

        Args:
            before: copies the inputs of the first iteration.
            condition: the steps that compute `flag`.
            flag: one value of BOOL: whether there is another iteration.
            body: the steps of an iteration.
            step: copies the inputs of the next iteration.
            after: copies the results, when the condition is false.
        """

    def store(self, runs: Sequence[Sequence[Thunk]], arena: Array, model: Array, arrays: Sequence[Array]) -> StoredThunks | None:
        """Serialize the fused step of each run of steps; None where that is impossible.

        Args:
            runs: groups of steps, each to be fused into one; a step that cannot be fused is a group of its own.
            arena: the memory that tensors share, bytes that the other process has as well.
            model: the model's bytes, which it has, too.
            arrays: arrays outside of these that the runtime needs, too.
        """


def looped(
    before: Thunk, condition: Sequence[Thunk], flag: Array, body: Sequence[Thunk], step: Thunk, after: Thunk
) -> Rounds | None:
    """Return a function that runs a loop as compiled code (see `Joiner.loop`); None if one of its steps cannot be fused."""
    thunks = *condition, *body
    joiner = _joiner_of(thunks)
    if joiner is None:
        return None
    own = [thunk if getattr(thunk, "joiner", None) is joiner else joiner.adopt(thunk) for thunk in thunks]
    copies = [joiner.adopt(some) for some in (before, step, after)]
    if any(thunk is None for thunk in (*own, *copies)):
        return None
    before, step, after = copies
    count = len(condition)
    made: Rounds | None = joiner.loop(before, own[:count], flag, own[count:], step, after)
    return made


class _Run(Row):
    """Neighbouring steps that are fused into one.

    Attributes:
        first: the position of the first one.
        thunks: the steps as the joiner takes them; empty where the one at `first` cannot be fused.
    """

    first: int
    thunks: list[Thunk]


def _runs(thunks: Sequence[Thunk], seconds: Sequence[float], joiner: Any) -> list[_Run]:
    """Group steps into runs of neighbours, each of which is fused into one step."""
    found: list[_Run] = []
    spent = 0.0
    ends = True
    for position, (thunk, duration) in enumerate(zip(thunks, seconds)):
        own: Thunk | None = thunk if getattr(thunk, "joiner", None) is joiner else joiner.adopt(thunk)
        if own is None:
            found.append(_Run(position, []))
            ends = True
            continue
        if ends or spent + duration > LONGEST:
            found.append(_Run(position, []))
            spent, ends = 0.0, False
        found[-1].thunks.append(own)
        spent += duration
    return found


def _joiner_of(thunks: Sequence[Thunk]) -> Any:
    return next((found for thunk in thunks if (found := getattr(thunk, "joiner", None)) is not None), None)


def joined(
    thunks: Sequence[Thunk], seconds: Sequence[float], touched: Callable[[int], Touched] | None = None
) -> tuple[list[Thunk], list[int]]:
    """Fuse neighbouring steps; return the new steps, and for each the position of the first of its nodes.

    Args:
        thunks: a step (function that runs a node) per node.
        seconds: the approximate duration of each.
        touched: returns the memory that the step at a position reads and writes; given where kernels may use several threads.
    """
    joiner = _joiner_of(thunks)
    if joiner is None:
        return list(thunks), list(range(len(thunks)))
    steps: list[Thunk] = []
    runs = _runs(thunks, seconds, joiner)
    for first, run in runs:
        if len(run) < 2:
            steps.append(thunks[first])
        elif touched is None:
            steps.append(joiner.join(run))
        else:
            steps.append(joiner.join(run, [touched(number) for number in range(first, first + len(run))]))
    return steps, [run.first for run in runs]


def storable(
    thunks: Sequence[Thunk], seconds: Sequence[float], arena: Array, model: Array, arrays: Sequence[Array]
) -> StoredThunks | None:
    """Serialize the fused steps of a graph; None where one cannot be serialized, or nothing fuses them.

    Args:
        thunks: a step per node.
        seconds: the approximate duration of each.
        arena: the memory that tensors share, bytes that the other process has as well.
        model: the model's bytes, which it has, too.
        arrays: arrays outside of these that the runtime needs, too.
    """
    joiner = _joiner_of(thunks)
    if joiner is None:
        return None
    runs = [run.thunks or [thunks[run.first]] for run in _runs(thunks, seconds, joiner)]
    found: StoredThunks | None = joiner.store(runs, arena, model, arrays)
    return found
