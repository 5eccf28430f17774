"""The first node that departs, in the order of the plan.

Each node runs by itself on the values of the side that is tried, so that the first difference is that node's own. Where no node departs
and the whole does, either the differences of many nodes add up, which is shown as it grows, or nodes go wrong only together in a
partition: then the delegate gets fewer and fewer of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet.schema.enums import TensorType
from oplet.tools.comparing.references import litert_answers
from oplet.tools.comparing.sides import Sides, claimed_nodes
from oplet.tools.comparing.walk import walk
from oplet.tools.running.named_model import NamedModel
from oplet.tuning.node_comparison import Choose, NodeComparer, NodeDifference, Place, Values

__all__ = ["Bisection", "Growth", "bisected", "bisected_by_litert"]

Array = NDArray[Any]
Feeds = Sequence[Mapping[str, Array]]


@dataclass(frozen=True)
class Growth:
    """A tensor, and how far it is off by its own node and by all before.

    Attributes:
        entry: the tensor, with the difference that its node makes by itself; None where the node was not run by itself.
        together: the same tensor with the differences of all nodes before.
    """

    entry: NodeDifference | None
    together: NodeDifference


@dataclass(frozen=True)
class Bisection:
    """Where it begins.

    Attributes:
        first: what departs first, None if nothing does by itself.
        how: "alone" if it departs on the same values, "together" if the node departs only in one partition with nodes before it,
            "gradual" if no node departs and the differences add up, "" if nothing departs.
        growth: the tensors in the order of the plan.
        judged: how many tensors were compared on the same values.
        complete: whether every node that was tried was; the values of large models, or of subgraphs that a kernel runs, are not all kept.
    """

    first: NodeDifference | None
    how: str
    growth: list[Growth] = field(default_factory=list)
    judged: int = 0
    complete: bool = True


def bisected(sides: Sides, feeds: Feeds, choose: Choose, signature: str | None, passed: bool) -> Bisection:
    """The first node whose output departs on the side that is tried.

    Args:
        sides: opens both sides.
        feeds: a value per input for each run.
        choose: gives the tolerance for a type and whether it is quantized.
        signature: which signature runs.
        passed: whether the model as a whole gives the same answer.
    """
    alone = walk(sides, feeds, choose, signature, alone=True)
    adding = walk(sides, feeds, choose, signature, alone=True, forced=False)
    own = {(e.subgraph, e.node, e.tensor): e for e in alone.judged()}
    growth = [Growth(own.get((e.subgraph, e.node, e.tensor)), e) for e in adding.judged()]
    first = next((e for e in own.values() if not e.difference.passed), None)
    claimed = claimed_nodes(walk(sides, [], choose, signature).interpreter)
    judged = {(e.subgraph, e.node) for e in own.values()}
    complete = not alone.full and set(claimed_nodes(alone.interpreter)) <= judged
    if first is not None:
        return Bisection(first, "alone", growth, len(own), complete)
    if claimed and not passed:
        parts = {(e.subgraph, e.node): e.difference.max_part for e in own.values()}
        together = _together(sides, feeds, choose, signature, claimed, parts)
        if together is not None:
            return Bisection(together, "together", growth, len(own), complete)
    return Bisection(None, "" if passed else "gradual", growth, len(own), complete)


def _together(
    sides: Sides, feeds: Feeds, choose: Choose, signature: str | None, claimed: Sequence[Place], own: Mapping[Place, float]
) -> NodeDifference | None:
    """The node with which a partition goes wrong that was right without it: the fewest of the first nodes that depart."""

    def departs(count: int) -> NodeDifference | None:
        found = walk(sides, feeds, choose, signature, only=set(claimed[:count])).judged()
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
        return None  # it was nearly as far off without the node, or is by what the node does by itself: the differences add up
    interpreter = sides.plain()
    op = interpreter._subgraphs[subgraph].nodes[node].op_name
    interpreter.close()
    return replace(found, subgraph=subgraph, node=node, op=op)


def bisected_by_litert(
    way: str, sides: Sides, feeds: Feeds, choose: Choose, named: NamedModel, signature: str | None, passed: bool
) -> Bisection:
    """The first node of the first subgraph that departs from LiteRT's on LiteRT's own values.

    Args:
        way: one of LiteRT's ways.
        sides: opens the side that is tried.
        feeds: a value per input for each run.
        choose: gives the tolerance for a type and whether it is quantized.
        named: the model with its inputs and outputs.
        signature: which signature runs.
        passed: whether the model as a whole gives the same answer.
    """
    nodes = named.interpreter._subgraphs[0].nodes
    unreadable = (TensorType.RESOURCE, TensorType.VARIANT)
    tensors = sorted({t.index for node in nodes for t in node.outputs if t.type not in unreadable and not t.is_variable})
    _, recorded = litert_answers(
        way,
        sides.model,
        feeds,
        named.inputs,
        named.outputs,
        signature=named.signature,
        tensors=tensors,
        num_threads=sides.num_threads,
    )

    def follow(forced: bool) -> list[NodeDifference]:
        follower = NodeComparer(choose, forced=forced, recorded_is_wanted=True)
        interpreter = sides.tried(follower)
        follower.attach(interpreter)
        model = NamedModel(interpreter, signature)
        for run, (values, theirs) in enumerate(zip(feeds, recorded)):
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
