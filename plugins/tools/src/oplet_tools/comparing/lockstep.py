"""Lockstep runs: the candidate's tensors are recorded, and the baseline computes each node again from the recorded values.

So each difference is that of one node or partition, not of all before it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from oplet_tools.comparing.interpreters import InterpreterPair, kernels_of
from oplet_tools.running.model_runner import ModelRunner
from oplet_tools.tuning.node_comparison import Choose, NodeComparer, NodeDifference, Place, TensorRecorder

__all__ = ["Lockstep", "Setting", "run_in_lockstep"]

Array = NDArray[Any]
Values = Mapping[str, Array]


@dataclass(frozen=True)
class Setting:
    """What all runs of a comparison share."""

    interpreters: InterpreterPair  #: Opens candidate (tested) and baseline (trusted).
    feeds: Sequence[Values]  #: For each run, the inputs' values by name.
    choose: Choose  #: Returns the tolerance for a dtype, given whether it is quantized.
    signature: str | None  #: The key of the signature to run.


class Lockstep:
    """Runs two interpreters on the same inputs: the tested candidate, then the baseline node by node, comparing what each node writes.

    Attributes:
        interpreter: the candidate's interpreter.
        full: whether recording reached its memory limit, so that the last nodes of the model were not compared.

    Args:
        setting: opens the baseline, and judges.
        candidate: runs the candidate on inputs by name.
        recorder: the candidate's profiler, which records its tensors.
        forced: whether each node of the baseline reads the candidate's values; otherwise differences accumulate.
    """

    def __init__(self, setting: Setting, candidate: ModelRunner, recorder: TensorRecorder, *, forced: bool = True) -> None:
        self.interpreter = candidate.interpreter
        self._tried = candidate
        self._recorder = recorder
        self._follower = NodeComparer(setting.choose, forced=forced)
        self._forced = forced
        baseline = setting.interpreters.open_baseline(self._follower, self.interpreter)
        self._follower.attach(baseline)
        self._plain = ModelRunner(baseline, setting.signature)
        self.full = False

    def step(self, values: Values, run: int, *, judge: bool = True) -> dict[str, Array]:
        """Run candidate and baseline on the same inputs.

        Args:
            values: the inputs' values, by name.
            run: the number of the run, which differences are reported with.
            judge: whether the baseline runs too, and is compared.

        Returns:
            The candidate's outputs, by name.
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
        """Return the difference of each compared tensor, over all runs."""
        return self._follower.judged()

    def partition_of(self, entry: NodeDifference) -> set[Place]:
        """Return the (subgraph, node) pairs of the partition that wrote a compared tensor; the node itself if it is in no partition."""
        for subgraph, kernel in kernels_of(self.interpreter):
            if subgraph == entry.subgraph and any(tensor.index == entry.tensor for tensor in kernel.outputs):
                return {(subgraph, node.index) for node in kernel.prepared.nodes}
        return {(entry.subgraph, entry.node)}

    def _written(self) -> Collection[Place] | None:
        """Return the tensors that delegate kernels write; None, for all tensors, if there are no delegate kernels."""
        kernels = kernels_of(self.interpreter)
        if not kernels:
            return None
        return {(subgraph, tensor.index) for subgraph, kernel in kernels for tensor in kernel.outputs}


def run_in_lockstep(
    setting: Setting, *, alone: bool = False, forced: bool = True, only: Collection[Place] | None = None
) -> Lockstep:
    """Run candidate and baseline in lockstep: the baseline computes each node again from the candidate's recorded values.

    Args:
        setting: the interpreters, and what they run on.
        alone: whether each partition of a delegate has only one node.
        forced: whether each node of the baseline reads the candidate's values; otherwise differences accumulate.
        only: the nodes that delegates may claim, as pairs of subgraph and node; all if None.
    """
    recorder = TensorRecorder()
    interpreter = setting.interpreters.open_candidate(recorder, alone=alone, only=only)
    recorder.attach(interpreter)
    lockstep = Lockstep(setting, ModelRunner(interpreter, setting.signature), recorder, forced=forced)
    for run, values in enumerate(setting.feeds):
        lockstep.step(values, run)
    return lockstep
