"""Bisection: the first node, in the order of the plan, whose output differs by more than the tolerance ("departs").

Each node runs by itself on the candidate's values, so that a difference is the node's own. If no node departs but the model does, there are
two cases. The differences of many nodes may add up; then their growth is shown. Or nodes may go wrong only together in a partition; then
the delegate is given fewer and fewer nodes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.schema.enums import TensorType
from oplet_tools.comparing.interpreters import claimed_nodes
from oplet_tools.comparing.lockstep import Setting, run_in_lockstep
from oplet_tools.comparing.references import litert_answers
from oplet_tools.running.model_runner import ModelRunner
from oplet_tools.tuning.node_comparison import NodeComparer, NodeDifference, Place, Values

__all__ = ["Bisection", "Growth", "bisect_nodes", "bisect_with_litert"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Growth:
    """The differences of a tensor: the one that its own node makes, and the accumulated one."""

    #: The difference that the tensor's node makes by itself, on equal inputs; None if the node was not run by itself.
    entry: NodeDifference | None
    together: NodeDifference  #: The difference of the tensor where errors accumulate, of this node and all before it.


@dataclass(frozen=True)
class Bisection:
    """The result of a bisection: the first node that departs (its output differs by more than the tolerance), and how."""

    first: NodeDifference | None  #: The first node that departs, None if there is none.
    #: "alone" if it departs on the same values, "together" if it departs only in one partition with nodes before it, "gradual" if
    #: no node departs and the differences add up, "" if nothing departs.
    how: str
    growth: list[Growth] = field(default_factory=list)  #: The differences of the tensors, in execution order.
    #: The number of tensors that were compared where each node of the baseline got the candidate's values as inputs.
    judged: int = 0
    #: Whether every tested node was compared; not all values of large models, or of called subgraphs, are kept.
    complete: bool = True


def bisect_nodes(setting: Setting, passed: bool) -> Bisection:
    """Find the first node whose output in the candidate differs from the baseline's by more than the tolerance; `passed` says whether
    the outputs of the whole model agree.
    """
    alone = run_in_lockstep(setting, alone=True)
    adding = run_in_lockstep(setting, alone=True, forced=False)
    own = {(e.subgraph, e.node, e.tensor): e for e in alone.judged()}
    growth = [Growth(own.get((e.subgraph, e.node, e.tensor)), e) for e in adding.judged()]
    first = next((e for e in own.values() if not e.difference.passed), None)
    claimed = claimed_nodes(run_in_lockstep(replace(setting, feeds=())).interpreter)
    judged = {(e.subgraph, e.node) for e in own.values()}
    complete = not alone.full and set(claimed_nodes(alone.interpreter)) <= judged
    if first is not None:
        return Bisection(first, "alone", growth, len(own), complete)
    if claimed and not passed:
        parts = {(e.subgraph, e.node): e.difference.max_part for e in own.values()}
        together = _together(setting, claimed, parts)
        if together is not None:
            return Bisection(together, "together", growth, len(own), complete)
    return Bisection(None, "" if passed else "gradual", growth, len(own), complete)


def _together(setting: Setting, claimed: Sequence[Place], own: Mapping[Place, float]) -> NodeDifference | None:
    """Find the least number of claimed nodes, from the first on, that as one partition differ by more than the tolerance; return
    the difference under the name of the last of them. None if there is none, or if the differences add up gradually.

    Args:
        claimed: the nodes that delegates claim, in the order in which they run.
        own: the difference that each of them makes by itself, as a fraction of its tensor's largest magnitude.
    """

    def departs(count: int) -> NodeDifference | None:
        found = run_in_lockstep(setting, only=set(claimed[:count])).judged()
        heights[count] = max((entry.difference.max_part for entry in found), default=0.0)
        return next((entry for entry in found if not entry.difference.passed), None)

    heights: dict[int, float] = {0: 0.0}

    low, high = 0, len(claimed)
    found = departs(high)
    if found is None:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        wrong = departs(middle)
        if wrong is None:
            low = middle
        else:
            high, found = middle, wrong
    subgraph, node = claimed[high - 1]
    jump = heights[high] - heights[low]
    if jump < heights[high] / 2 or own.get((subgraph, node), 0.0) >= jump / 2:
        return None  # nearly as far off without the node, or by the node alone: the differences add up
    interpreter = run_in_lockstep(replace(setting, feeds=())).interpreter
    op = interpreter.subgraphs[subgraph].nodes[node].op_name
    interpreter.close()
    return replace(found, subgraph=subgraph, node=node, op=op)


def bisect_with_litert(way: str, setting: Setting, runner: ModelRunner, passed: bool) -> Bisection:
    """Find the first node of subgraph 0 that departs from LiteRT (by more than the tolerance) on LiteRT's inputs to the node.

    Args:
        way: LiteRT's kernel set, one of `oplet_tools.comparing.references.LITERT`.
        setting: opens the candidate, and judges.
        runner: the model with its inputs and outputs.
        passed: whether the outputs of the whole model agree.
    """
    nodes = runner.interpreter.subgraphs[0].nodes
    unreadable = (TensorType.RESOURCE, TensorType.VARIANT)
    tensors = sorted({t.index for node in nodes for t in node.outputs if t.type not in unreadable and not t.is_variable})
    _, recorded = litert_answers(
        way,
        setting.interpreters.model,
        setting.feeds,
        runner.inputs,
        runner.outputs,
        signature=runner.signature,
        tensors=tensors,
        num_threads=setting.interpreters.num_threads,
    )

    def follow(forced: bool) -> list[NodeDifference]:
        follower = NodeComparer(setting.choose, forced=forced, recorded_is_wanted=True)
        interpreter = setting.interpreters.open_candidate(follower)
        follower.attach(interpreter)
        model = ModelRunner(interpreter, setting.signature)
        for run, (values, theirs) in enumerate(zip(setting.feeds, recorded)):
            follower.expect(_once(theirs), None, run)
            model(values)
        return follower.judged()

    own = {(e.node, e.tensor): e for e in follow(forced=True)}
    growth = [Growth(own.get((e.node, e.tensor)), e) for e in follow(forced=False)]
    first = next((e for e in own.values() if not e.difference.passed), None)
    how = "alone" if first is not None else ("" if passed else "gradual")
    return Bisection(first, how, growth, len(own), len(own) >= len(tensors))


def _once(values: Mapping[int, Array]) -> Values:
    return {(0, index): deque([np.asarray(value)]) for index, value in values.items()}
