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
from oplet_builtin_ops.shaping.boxes import Boxes, choose_in_order
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
        found = choose(Boxes.at_corners(boxes.take(candidates, 0)), scores[candidates], limit, overlap.item())
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


def _choose(boxes: Boxes, scores: Floats, limit: int, most_overlap: float) -> list[Found]:
    order = np.argsort(-scores)
    ordered = scores[order]
    if (ordered[1:] == ordered[:-1]).any():
        return _choose_among_equals(boxes, scores, limit, most_overlap)
    # LiteRT puts a chosen box back, to be suppressed by itself: unless it has no area, when it is chosen again.
    found = choose_in_order(boxes, order, limit, lambda overlaps: overlaps >= most_overlap, again=True)
    return list(zip(scores[found].tolist(), found))


def _choose_among_equals(boxes: Boxes, scores: Floats, limit: int, most_overlap: float) -> list[Found]:
    """As `_choose`, where the queue decides which of several boxes with the same score comes first."""
    queue: PriorityQueue[Found] = PriorityQueue((score, box) for box, score in enumerate(scores.tolist()))
    suppressed = np.zeros(len(scores), np.bool_)
    found: list[Found] = []
    while len(found) < limit and queue:
        checkpoint()
        entry = queue.pop()
        if not suppressed[entry[1]]:
            found.append(entry)
            suppressed |= boxes[entry[1] : entry[1] + 1].overlaps(boxes)[0] >= most_overlap
            queue.append(entry)
    return found


def _choose_softly(
    boxes: Boxes, scores: Floats, limit: int, most_overlap: float, *, threshold: float, sigma: float
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
            overlaps.append(boxes[box : box + 1].overlaps(boxes)[0])
            factors.append(np.exp(scale * overlaps[-1] * overlaps[-1]))
        if score > threshold:
            queue.append((score, box, compared))
    return found
