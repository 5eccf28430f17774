"""NON_MAX_SUPPRESSION_V4 and _V5: boxes chosen by score, without those that overlap a better one.

V5 can also lower the scores of boxes that overlap ("soft": a Gaussian of the overlap) in place of dropping them.
Numerics: tflite/kernels/internal/reference/non_max_suppression.h, whose choice among equal scores follows from the order in
which C++'s priority queue gives them out.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Context, Node, TensorType, checkpoint, ensure, ensure_type
from oplet_builtin_ops.shaping.priority_queue import PriorityQueue
from oplet_builtin_ops.shaping.shapes import Thunk, ensure_operands, read_int

__all__ = ["TYPES", "bind_suppression", "prepare_suppression"]

TYPES = (TensorType.FLOAT32,)

Floats = NDArray[np.float32]
#: A box's score and its number among the candidates.
Found = tuple[float, int]


def prepare_suppression(context: Context, node: Node) -> None:
    """Check a node of either op (LiteRT serves both with one kernel: a sixth input makes it soft) and size its outputs."""
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
    """The thunk of a node of either op."""
    boxes, scores, _, overlap, threshold, *sigmas = (tensor.data for tensor in node.inputs)
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
        found = choose(_Boxes(boxes[candidates]), scores[candidates], limit, overlap.item())
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


class _Boxes:
    """Boxes given by any two opposite corners (y, x, y, x)."""

    def __init__(self, corners: Floats) -> None:
        low = np.minimum(corners[:, :2], corners[:, 2:])
        high = np.maximum(corners[:, :2], corners[:, 2:])
        # Of each edge an array of its own, which numpy goes through much faster than through columns.
        self._top, self._left, self._bottom, self._right = (edge.copy() for edge in (*low.T, *high.T))
        self._areas = (self._bottom - self._top) * (self._right - self._left)
        self._flat = np.flatnonzero(self._areas <= 0)
        self._zero = np.zeros(1, np.float32)

    def overlaps(self, box: int) -> Floats:
        """What each box has in common with one, relative to what the two cover; 0 where a box has no area."""
        at = slice(box, box + 1)
        areas, zero = self._areas, self._zero
        height, width = np.minimum(self._bottom, self._bottom[at]), np.minimum(self._right, self._right[at])
        height -= np.maximum(self._top, self._top[at])
        width -= np.maximum(self._left, self._left[at])
        common = np.maximum(height, zero, out=height)
        common *= np.maximum(width, zero, out=width)
        together = areas + areas[at]
        together -= common
        common /= together
        if areas[box] <= 0:
            common.fill(0)
        common[self._flat] = 0
        shares: Floats = common
        return shares


def _choose(boxes: _Boxes, scores: Floats, limit: int, most_overlap: float) -> list[Found]:
    entries = [(score, box) for box, score in enumerate(scores.tolist())]
    # Without equal scores a sorted list does what the queue does: the one taken out last goes back to its end.
    queue: PriorityQueue[Found] | list[Found]
    queue = PriorityQueue(entries) if len({score for score, _ in entries}) < len(entries) else sorted(entries)
    suppressed = np.zeros(len(scores), np.bool_)
    found: list[Found] = []
    while len(found) < limit and queue:
        checkpoint()
        entry = queue.pop()
        if not suppressed[entry[1]]:
            found.append(entry)
            suppressed |= boxes.overlaps(entry[1]) >= most_overlap
            # LiteRT puts it back, to be suppressed by itself: unless it has no area, when it is chosen again.
            queue.append(entry)
    return found


def _choose_softly(
    boxes: _Boxes, scores: Floats, limit: int, most_overlap: float, *, threshold: float, sigma: float
) -> list[Found]:
    # Entries: the present score, the box, and how many of the chosen ones it has been compared with.
    queue = PriorityQueue((score, box, 0) for box, score in enumerate(scores))
    found: list[Found] = []
    overlaps: list[Floats] = []
    factors: list[Floats] = []
    scale = np.float32(-0.5 / sigma)
    while len(found) < limit and queue:
        checkpoint()
        before, box, begin = queue.pop()
        score, dropped = before, False
        for other in range(len(found) - 1, begin - 1, -1):
            dropped = bool(overlaps[other][box] >= most_overlap)
            if dropped:
                break
            score = score * factors[other][box]
            if score <= threshold:
                break
        if dropped:
            continue
        compared = len(found)
        if score == before:
            found.append((score, box))
            overlaps.append(boxes.overlaps(box))
            factors.append(np.exp(scale * overlaps[-1] * overlaps[-1]))
        if score > threshold:
            queue.append((score, box, compared))
    return found
