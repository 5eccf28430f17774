"""One side runs and is recorded, the other follows on the same values: what nodes and partitions get wrong by themselves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from oplet.tools.comparing.sides import Sides, kernels_of
from oplet.tools.running.named_model import NamedModel
from oplet.tuning.node_comparison import Choose, NodeComparer, NodeDifference, Place, TensorRecorder

__all__ = ["Walk", "walk"]

Array = NDArray[Any]
Values = Mapping[str, Array]


class Walk:
    """A side that is tried, and the other one that follows it.

    Attributes:
        interpreter: the side that is tried.
        full: whether there was more to record than is kept, so that the end of the model was not compared.

    Args:
        sides: opens the side that follows.
        choose: gives the tolerance for a type and whether it is quantized.
        tried: the side that is tried.
        recorder: its profiler.
        signature: which signature runs.
        forced: whether the other side goes on with the values of the side that is tried; otherwise differences add up.
    """

    def __init__(
        self,
        sides: Sides,
        choose: Choose,
        tried: NamedModel,
        recorder: TensorRecorder,
        signature: str | None,
        *,
        forced: bool = True,
    ) -> None:
        self.interpreter = tried.interpreter
        self._tried = tried
        self._recorder = recorder
        self._follower = NodeComparer(choose, forced=forced)
        self._forced = forced
        plain = sides.plain(self._follower)
        self._follower.attach(plain)
        self._plain = NamedModel(plain, signature)
        self.full = False

    def step(self, values: Values, run: int, *, judge: bool = True) -> dict[str, Array]:
        """Run both on the same values.

        Args:
            values: a value per input.
            run: the number of the run.
            judge: whether the other side follows.

        Returns:
            The outputs of the side that is tried.
        """
        self._recorder.clear()
        outputs = self._tried(values)
        if judge:
            written = self._written() if self._forced else None
            self._follower.expect(self._recorder.values, written, run)
            self._plain(values)
            self.full = self.full or self._recorder.full
        return outputs

    def judged(self) -> list[NodeDifference]:
        """What was found of each tensor that was compared."""
        return self._follower.judged()

    def partition_of(self, entry: NodeDifference) -> set[Place]:
        """The nodes that the kernel which wrote a tensor replaces; the node itself where no kernel did."""
        for subgraph, kernel in kernels_of(self.interpreter):
            if subgraph == entry.subgraph and any(tensor.index == entry.tensor for tensor in kernel.outputs):
                return {(subgraph, node.index) for node in kernel.prepared.nodes}
        return {(entry.subgraph, entry.node)}

    def _written(self) -> Collection[Place] | None:
        """What delegates' kernels write; everything where there are none."""
        kernels = kernels_of(self.interpreter)
        if not kernels:
            return None
        return {(subgraph, tensor.index) for subgraph, kernel in kernels for tensor in kernel.outputs}


def walk(
    sides: Sides,
    feeds: Sequence[Values],
    choose: Choose,
    signature: str | None,
    *,
    alone: bool = False,
    forced: bool = True,
    only: Collection[Place] | None = None,
) -> Walk:
    """Run all runs on both sides.

    Args:
        sides: opens them.
        feeds: a value per input for each run.
        choose: gives the tolerance for a type and whether it is quantized.
        signature: which signature runs.
        alone: whether delegates run each node by itself.
        forced: see `Walk`.
        only: the nodes that delegates may claim, each with its subgraph; all if None.
    """
    recorder = TensorRecorder()
    interpreter = sides.tried(recorder, alone=alone, only=only)
    recorder.attach(interpreter)
    walked = Walk(sides, choose, NamedModel(interpreter, signature), recorder, signature, forced=forced)
    for run, values in enumerate(feeds):
        walked.step(values, run)
    return walked
