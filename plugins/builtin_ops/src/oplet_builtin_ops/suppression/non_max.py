"""NON_MAX_SUPPRESSION_V4 and _V5: selects boxes by score, without those that overlap a better one.

V5 can also lower the scores of boxes that overlap ("soft": a Gaussian of the overlap), in place of dropping them.

Numerics: tflite/kernels/internal/reference/non_max_suppression.h, whose selection among equal scores depends on the order of C++'s
priority queue.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, Registration, TensorType, charge, checkpoint, ensure, ensure_type
from oplet.kernels.arrays import Array, Thunk
from oplet.kernels.axes import read_int
from oplet.kernels.operands import ensure_operands
from oplet_builtin_ops.suppression.boxes import Boxes, choose_in_order
from oplet_builtin_ops.suppression.priority_queue import PriorityQueue

__all__ = ["TYPES"]

TYPES = (TensorType.FLOAT32,)

Floats = NDArray[np.float32]
#: A box's score and its number.
Found = tuple[float, int]
#: An entry of the queue of soft suppression: the present score, the position among the leaders, and the number of selected boxes
#: that it was compared with.
Entry = tuple[float, int, int]

#: The least candidates that are considered.
_FEWEST_LEADERS = 64
#: The pairs of boxes that are compared at a time.
_PAIRS = 1 << 14
#: The most pairs of which overlaps are kept.
_KEPT = 1 << 22
#: Bytes of an entry of the queue, and of a candidate that is considered.
_ENTRY_BYTES, _LEADER_BYTES = 256, 96


def prepare_suppression(context: Context, node: Node) -> None:
    """Check a NON_MAX_SUPPRESSION_V4 or _V5 node (LiteRT has one kernel; a sixth input makes it soft NMS); set its output shapes."""
    soft = len(node.inputs) == 6
    ensure_operands(node, 6 if soft else 5, 3 if soft else 2)
    boxes, scores, most, *thresholds = node.inputs
    for tensor in (boxes, scores, *thresholds):
        ensure_type(tensor, *TYPES)
    ensure_type(most, TensorType.INT32)
    ensure(boxes.ndim == 2 and boxes.shape[1] == 4, f"{boxes} must have shape [boxes, 4].")
    ensure(scores.shape == boxes.shape[:1], f"{scores} must be a vector of {boxes.shape[0]} scores, one for each of {boxes}.")
    for tensor in (most, *thresholds):
        ensure(tensor.ndim == 0, f"{tensor} must be a scalar.")
    *chosen, number = node.outputs
    for tensor, type in zip(chosen, (TensorType.INT32, TensorType.FLOAT32)):
        context.set_type(tensor, type)
        if most.is_constant:
            context.resize_tensor(tensor, _shape(node))
        else:
            context.set_dynamic(tensor)
    context.set_type(number, TensorType.INT32)
    context.resize_tensor(number, ())


def bind_suppression(context: Context, node: Node) -> Thunk:
    """Return the function that runs NON_MAX_SUPPRESSION_V4 or _V5."""
    corners, scores, _, overlap, threshold, *sigmas = (tensor.data for tensor in node.inputs)
    *chosen, number = node.outputs
    resized = [tensor for tensor in chosen if tensor.is_dynamic]

    def run() -> None:
        shape = _shape(node)
        for tensor in resized:
            context.resize_tensor(tensor, shape)
        sigma = sigmas[0].item() if sigmas else 0.0
        ensure(sigma >= 0, f"the sigma of the soft suppression is {sigma:g} and must not be negative.")
        candidates = np.flatnonzero(scores > threshold)
        limit = min(len(candidates), shape[0])
        choose = partial(_choose_softly, sigma=sigma, threshold=threshold.item()) if sigma > 0 else _choose
        found = choose_among_best(corners, candidates, scores[candidates], limit, partial(choose, most_overlap=overlap.item()))
        number.data[...] = len(found)
        columns: tuple[Any, Any] = (candidates[[box for _, box in found]] if found else [], [score for score, _ in found])
        for tensor, values in zip(chosen, columns):
            tensor.data[: len(found)] = values
            tensor.data[len(found) :] = 0

    return run


def _shape(node: Node) -> tuple[int]:
    most = read_int(node.inputs[2])
    ensure(most >= 0, f"the maximal number of boxes is {most} and must not be negative.")
    return (most,)


class Leaders:
    """The candidate boxes with the best scores, in descending order.

    Attributes:
        floor: the score of the last of them; all other candidates have lower ones.
        numbers: their indices among all candidates.
        scores: their scores.
        boxes: their boxes.
        total: the number of all candidates, with those that are not in this list.
    """

    def __init__(self, corners: Floats, candidates: NDArray[np.intp], scores: Floats, count: int) -> None:
        self.total, self.floor = len(scores), -math.inf
        leaders = np.arange(self.total)
        if count < self.total:
            self.floor = np.partition(scores, self.total - count)[self.total - count].item()
            leaders = np.flatnonzero(scores >= self.floor)
        self.numbers = leaders[np.argsort(-scores[leaders], kind="stable")]
        self.scores = scores[self.numbers]
        self.boxes = Boxes.at_corners(corners.take(candidates[self.numbers], 0))

    def queue(self) -> PriorityQueue[Any]:
        """Return all candidates as a priority queue of (score, position, 0)."""
        charge(_ENTRY_BYTES * len(self.scores))
        queue: PriorityQueue[Any] = PriorityQueue()
        scores, numbers = self.scores.tolist(), self.numbers.tolist()
        for place in np.argsort(self.numbers).tolist():
            if not place & 0xFFF:
                checkpoint()
            queue.count = numbers[place]
            queue.append((scores[place], place, 0))
        queue.count = self.total
        return queue

    def row_of(self, rule: Callable[[Floats], Array]) -> Callable[[int], Array]:
        """Return a function that applies `rule` to the overlaps of the box with a given index with all boxes; results are cached."""
        height = 1 + _PAIRS // len(self.scores)

        @lru_cache(max(1, _KEPT // (height * len(self.scores))))
        def block(number: int) -> Array:
            return rule(self.boxes[number * height : (number + 1) * height].overlaps(self.boxes))

        def row(place: int) -> Array:
            number, line = divmod(place, height)
            values: Array = block(number)[line]
            return values

        return row


def choose_among_best(
    corners: Floats, candidates: NDArray[np.intp], scores: Floats, limit: int, choose: Callable[[Leaders, int], list[Found]]
) -> list[Found]:
    """Select up to `limit` boxes by `choose` among the best candidates; retry with four times as many while it finds too few.

    Args:
        corners: the boxes.
        candidates: the indices of the candidates among the boxes.
        scores: the scores of the candidates.
        limit: the most boxes to select.
        choose: selects boxes among the leading candidates; returns (score, index) pairs.
    """
    count = max(_FEWEST_LEADERS, 3 * limit)
    while limit:
        charge(_LEADER_BYTES * min(count, len(scores)))
        leaders = Leaders(corners, candidates, scores, count)
        found = choose(leaders, limit)
        if len(found) == limit or count >= leaders.total:
            return [(score, int(leaders.numbers[place])) for score, place in found]
        count *= 4
    return []


def _choose(leaders: Leaders, limit: int, most_overlap: float) -> list[Found]:
    if (leaders.scores[1:] == leaders.scores[:-1]).any():
        return _choose_among_equals(leaders, limit, most_overlap)
    # LiteRT puts a selected box back into the queue, where it suppresses itself; one without an area is selected again.
    order = np.arange(len(leaders.scores))
    found = choose_in_order(leaders.boxes, order, limit, lambda overlaps: overlaps >= most_overlap, again=True)
    return list(zip(leaders.scores[found].tolist(), found))


def _choose_among_equals(leaders: Leaders, limit: int, most_overlap: float) -> list[Found]:
    """Select boxes of which some have equal scores, by a queue that returns these in LiteRT's order."""
    queue = leaders.queue()
    row_of = leaders.row_of(lambda overlaps: overlaps >= most_overlap)
    suppressed = np.zeros(len(leaders.scores), np.bool_)
    found: list[Found] = []
    while len(found) < limit and queue:
        checkpoint()
        entry = queue.pop()
        score, place, _ = entry
        if not suppressed[place]:
            found.append((score, place))
            np.logical_or(suppressed, row_of(place), suppressed)
            queue.append(entry)
    return found


class _Table:
    """Table of score decay factors (soft NMS): for each selected box, computed for all candidates at selection."""

    def __init__(self, leaders: Leaders, limit: int, rule: Callable[[Floats], Floats]) -> None:
        self._limit, self._row_of = limit, leaders.row_of(rule)
        self._factors = np.empty((len(leaders.scores), limit), np.float32)

    def choose(self, place: int, number: int) -> None:
        """Select a box as the `number`th one, and compute its factors."""
        self._factors[:, self._limit - number] = self._row_of(place)

    def of(self, place: int, begin: int, end: int) -> Floats:
        """Return a candidate's score factors by the selected boxes `begin` to `end`, last selected first, LiteRT's order."""
        return self._factors[place, self._limit - end : self._limit - begin]


class _Chosen:
    """Score decay factors as in `_Table`, but computed on demand: a table would need candidates times `limit` values."""

    def __init__(self, leaders: Leaders, limit: int, rule: Callable[[Floats], Floats]) -> None:
        self._boxes, self._limit, self._rule = leaders.boxes, limit, rule
        self._places = np.empty(limit, np.intp)

    def choose(self, place: int, number: int) -> None:
        self._places[self._limit - number] = place

    def of(self, place: int, begin: int, end: int) -> Floats:
        these = self._boxes[self._places[self._limit - end : self._limit - begin]]
        return self._rule(these.overlaps(self._boxes[place : place + 1])).reshape(-1)


class _Tied(Exception):
    """Raised when two queue entries have the same score."""


class _Distinct:
    """A `PriorityQueue` of entries with distinct scores only; the order of equal ones would depend on heap moves.

    Attributes:
        count: the number of all candidates, which a `PriorityQueue` has too; it has no effect here.
    """

    def __init__(self, leaders: Leaders) -> None:
        charge(_ENTRY_BYTES * len(leaders.scores))
        self.count = leaders.total
        # By descending score, which is a heap.
        self._heap = [(-score, place, 0) for place, score in enumerate(leaders.scores.tolist())]

    def __bool__(self) -> bool:
        return bool(self._heap)

    def append(self, entry: Entry) -> None:
        """Add an entry."""
        score, place, compared = entry
        heappush(self._heap, (-score, place, compared))

    def pop(self) -> Entry:
        """Remove and return the entry with the highest score.

        Raises:
            _Tied: there is another one of that score.
        """
        least, place, compared = heappop(self._heap)
        if self._heap and self._heap[0][0] == least:
            raise _Tied
        return -least, place, compared


def _choose_softly(leaders: Leaders, limit: int, most_overlap: float, threshold: float, sigma: float) -> list[Found]:
    scale = np.float32(-0.5 / sigma)

    def factors_of(overlaps: Floats) -> Floats:
        factors: Floats = np.exp(scale * overlaps * overlaps)
        factors[overlaps >= most_overlap] = np.nan  # NaN, which is above no threshold
        return factors

    def choose(queue: _Distinct | PriorityQueue[Any]) -> list[Found]:
        found: list[Found] = []
        table = len(leaders.scores) * limit <= _KEPT
        shares = _Table(leaders, limit, factors_of) if table else _Chosen(leaders, limit, factors_of)
        while len(found) < limit and queue:
            checkpoint()
            before, place, begin = queue.pop()
            compared = len(found)
            score = before
            if begin < compared:
                score = product(shares.of(place, begin, compared), initial=before).item()
            if score == before:
                found.append((score, place))
                shares.choose(place, len(found))
            if score > threshold:
                if score >= floor:
                    queue.append((score, place, compared))
                else:
                    queue.count += 1
        return found

    floor, product = leaders.floor, np.multiply.reduce
    try:
        return choose(_Distinct(leaders))
    except _Tied:
        return choose(leaders.queue())


NON_MAX_SUPPRESSION_V4 = Registration(prepare=prepare_suppression, bind=bind_suppression, pure=True, types=TYPES)
NON_MAX_SUPPRESSION_V5 = NON_MAX_SUPPRESSION_V4
