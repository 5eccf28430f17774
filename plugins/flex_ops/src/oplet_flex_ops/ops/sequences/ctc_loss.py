"""CTCLoss: the negative log-likelihood of label sequences, and its gradient.

Numerics: tensorflow/core/kernels/ctc_loss_op.cc, tensorflow/core/util/ctc/{ctc_loss_calculator.h,ctc_loss_calculator.cc}
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oplet import Node, TensorType, checkpoint, ensure
from oplet.kernels.arrays import Array, Shape
from oplet.kernels.limits import paced
from oplet_flex_ops.attributes import Attributes
from oplet_flex_ops.kernel import filled, reserve
from oplet_flex_ops.ops.sequences.ctc_decoding import ensure_lengths

_Doubles = NDArray[np.float64]


class _Settings(NamedTuple):
    collapse: bool
    merge: bool
    ignore: bool


def _settings(attributes: Attributes) -> _Settings:
    return _Settings(
        attributes.flag("preprocess_collapse_repeated", default=False),
        attributes.flag("ctc_merge_repeated", default=True),
        attributes.flag("ignore_longer_outputs_than_inputs", default=False),
    )


def _shapes(node: Node, given: _Settings) -> list[Shape]:
    inputs = node.inputs[0]
    return [(inputs.shape[1],), inputs.shape]


@filled(
    "CTCLoss",
    "inputs: T[3], labels_indices: INT64[2], labels_values: INT32[1], sequence_length: INT32[1] -> loss: T, gradient: T",
    _shapes,
    _settings,
    T=(TensorType.FLOAT32, TensorType.FLOAT64),
)
def CTCLOSS(given: _Settings, outputs: list[Array], inputs: Array, indices: Array, values: Array, lengths: Array) -> None:
    """Compute CTC losses and gradients for a batch; the blank is the last class."""
    ensure_lengths(inputs, lengths)
    _, batch, classes = inputs.shape
    ensure(indices.shape == (values.size, 2), f"indices of shape {list(indices.shape)} do not fit {values.size} labels.")
    rows = indices[:, 0]
    ensure(bool(((rows >= 0) & (rows < batch)).all()) and bool((indices[:, 1] >= 0).all()), "a label is outside of the batch.")
    ensure(bool((rows[1:] >= rows[:-1]).all()), "the labels are not in the order of their sequences.")
    ensure(bool(((values >= 0) & (values < classes - 1)).all()), f"a label is not in 0 to {classes - 2}.")
    losses, gradients = outputs
    losses.fill(0)
    gradients.fill(0)
    for number, length in enumerate(lengths.tolist()):
        checkpoint()
        labels = values[rows == number].astype(np.int64)
        ensure(labels.size > 0, f"sequence {number} has no labels.")
        ensure(
            given.ignore or labels.size <= length,
            f"sequence {number} has {length} steps, not enough for its {labels.size} labels; set "
            "ignore_longer_outputs_than_inputs to leave it out.",
        )
        if labels.size > length:
            continue
        if given.collapse:
            labels = labels[np.concatenate(([True], labels[1:] != labels[:-1]))]
        loss, gradient = _one(inputs[:length, number].astype(np.float64), labels, classes - 1, given.merge)
        losses[number], gradients[:length, number] = loss, gradient


def _one(logits: _Doubles, labels: NDArray[np.int64], blank: int, merge: bool) -> tuple[float, _Doubles]:
    """Compute one sequence's CTC loss, and its gradient for the logits; `merge`: whether repeated labels count as one."""
    states = np.full(2 * labels.size + 1, blank, np.int64)
    states[1::2] = labels
    time, count = len(logits), states.size
    reserve((time, 6 * count + 5 * logits.shape[1]), 8)
    with np.errstate(all="ignore"):
        logs = logits - logits.max(1, keepdims=True)
        logs -= np.log(np.exp(logs).sum(1, keepdims=True))
        stays = np.ones(count, np.bool_) if merge else states == blank
        skips = np.zeros(count, np.bool_)
        skips[2:] = (states[2:] != blank) & ~(merge & (states[2:] == states[:-2]))
        alpha = _forward(logs[:, states], stays, skips)
        # Backwards, a state is left where it is entered forwards.
        ahead = np.zeros(count, np.bool_)
        ahead[: count - 2] = skips[2:]
        beta = _forward(logs[::-1, states[::-1]], stays[::-1], ahead[::-1])[::-1, ::-1] - logs[:, states]
        joint = alpha + beta
        total = np.logaddexp.reduce(joint[0])
        softmax = np.exp(logs)
        if total == -np.inf:
            return float("inf"), softmax
        gradient = softmax
        shares = np.exp(joint - total)
        for state, label in enumerate(paced(states.tolist(), 16)):
            gradient[:, label] -= shares[:, state]
    return float(-total), gradient


def _forward(logs: _Doubles, stays: NDArray[np.bool_], skips: NDArray[np.bool_]) -> _Doubles:
    """Run the forward algorithm: log probabilities of all paths reaching each state at each step, starting in state 0 or 1.

    Args:
        logs: the log probability of each state's label, of shape (time, states).
        stays: the states in which a path may stay for another step.
        skips: the states that a path may enter from two states before.
    """
    time, count = logs.shape
    found = np.full((time, count), -np.inf)
    found[0, :2] = logs[0, :2]
    for step in paced(range(1, time), 16):
        before = found[step - 1]
        reached = np.where(stays, before, -np.inf)
        reached[1:] = np.logaddexp(reached[1:], before[:-1])
        reached[2:] = np.where(skips[2:], np.logaddexp(reached[2:], before[:-2]), reached[2:])
        found[step] = reached + logs[step]
    return found
