"""CTC beam search for the likeliest label sequences: a beam of prefixes with their probabilities of ending in a label or a blank.

Numerics: tensorflow/core/util/ctc/{ctc_beam_search.h,ctc_beam_entry.h}
"""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np

from oplet import charge, checkpoint
from oplet.kernels.arrays import Array
from oplet.kernels.limits import paced

__all__ = ["BeamSearch"]

_ZERO = -math.inf


def _add(a: Array, b: Array) -> Any:
    """Return log(exp(a) + exp(b)) in the arrays' precision; minus infinity is probability 0."""
    highest, lowest = np.maximum(a, b), np.minimum(a, b)
    with np.errstate(invalid="ignore"):
        return np.where(lowest == _ZERO, highest, highest + np.log1p(np.exp(lowest - highest)))


class _Entry:
    """A label prefix in the beam.

    Attributes:
        parent: the prefix without its last label; None for the empty one.
        label: the last label.
        children: the prefixes with one label more, by label.
        total, blank, labelled: logarithms of the probabilities after this step: of the prefix, of it with a blank or a label last.
        old_total, old_blank: those after the step before.
    """

    __slots__ = ("blank", "children", "label", "labelled", "old_blank", "old_total", "parent", "total")

    def __init__(self, parent: _Entry | None, label: int) -> None:
        self.parent, self.label = parent, label
        self.children: dict[int, _Entry] = {}
        self.total = self.blank = self.labelled = self.old_total = self.old_blank = _ZERO

    def reset(self) -> None:
        """Drop this prefix from the beam by zeroing its probabilities."""
        self.total = self.blank = self.labelled = _ZERO

    def forget(self) -> None:
        """Drop this prefix for good, so that it also cannot be extended in this step."""
        self.reset()
        self.old_total = self.old_blank = _ZERO

    @property
    def active(self) -> bool:
        return self.total != _ZERO


class BeamSearch:
    """A CTC prefix beam search that is fed one time step after the other.

    Args:
        width: the number of prefixes to keep.
        classes: the number of classes; the last is the blank.
    """

    def __init__(self, width: int, classes: int) -> None:
        self._width, self._blank = width, classes - 1
        self._made = 0  # entries that ever came into the beam
        root = _Entry(None, -1)
        root.total = root.blank = 0.0
        self._leaves: list[_Entry] = [root]

    def step(self, logits: Array) -> None:
        """Advance by one time step; `logits` has shape (classes,), and its type is the search's precision."""
        charge(512 * (self._made + 2 * len(self._leaves)) + 64 * logits.size)
        highest = logits.max()
        with np.errstate(all="ignore"):
            # summed one after the other, as TensorFlow does
            offset = highest + np.log(np.add.accumulate(np.exp(logits - highest))[-1])
            scores = logits - offset
        branches = sorted(paced(self._leaves), key=lambda entry: -entry.total)
        for entry in paced(branches):
            entry.old_total, entry.old_blank = entry.total, entry.blank
        self._pass_on(branches, logits, offset)
        # A heap with the worst entry first; the numbers keep entries from being compared.
        beam = [(entry.total, -number, entry) for number, entry in enumerate(paced(branches), self._made + 1)]
        self._made += len(branches)
        heapq.heapify(beam)
        for entry in branches:
            checkpoint()
            self._grow(beam, entry, scores)
        self._leaves = [entry for _, _, entry in beam]

    def _pass_on(self, branches: list[_Entry], logits: Array, offset: Any) -> None:
        """Update each prefix's probabilities for a step that adds no label: a blank, or its last label repeated.

        `offset` is subtracted from the logits to make them log probabilities.
        """
        before = [
            (
                _ZERO
                if parent is None or not parent.active
                else parent.old_blank
                if entry.label == parent.label
                else parent.old_total
            )
            for entry in paced(branches)
            for parent in (entry.parent,)
        ]
        dtype = logits.dtype
        own = np.array([entry.labelled for entry in paced(branches)], dtype)
        labels = np.array([entry.label for entry in paced(branches)])
        with np.errstate(all="ignore"):
            labelled = _add(own, np.array(before, dtype)) + (logits[labels] - offset)
            labelled = np.where(labels < 0, own, labelled)
            blank = np.array([entry.old_total for entry in paced(branches)], dtype) + logits[self._blank] - offset
            total = _add(blank, labelled)
        for entry, *found in zip(paced(branches), labelled.tolist(), blank.tolist(), total.tolist()):
            entry.labelled, entry.blank, entry.total = found

    def _grow(self, beam: list[tuple[float, int, _Entry]], entry: _Entry, scores: Array) -> None:
        """Extend the prefix `entry` by each label, of log probability `scores`, and add what is likely enough to the beam."""
        if not self._is_candidate(beam, entry.old_total):
            return
        totals = scores[:-1] + scores.dtype.type(entry.old_total)
        if 0 <= entry.label < self._blank:
            totals[entry.label] = scores[entry.label] + scores.dtype.type(entry.old_blank)
        floor = beam[0][0] if len(beam) >= self._width else _ZERO
        # What cannot come into the beam is passed over, but for what was there before.
        places = (totals > floor).nonzero()[0]
        charge(512 * self._made + 160 * (places.size + len(entry.children)))
        for label in paced(sorted({*places.tolist(), *entry.children})):
            child = entry.children.get(label)
            if child is not None and child.active:
                continue
            total = float(totals[label])
            if self._is_candidate(beam, total):
                if child is None:
                    child = entry.children[label] = _Entry(entry, label)
                child.blank, child.labelled, child.total = _ZERO, total, total
                self._made += 1
                item = (total, -self._made, child)  # of equals the first stays
                if len(beam) >= self._width:
                    heapq.heappushpop(beam, item)[2].reset()
                else:
                    heapq.heappush(beam, item)
            elif child is not None:
                child.forget()

    def _is_candidate(self, beam: list[tuple[float, int, _Entry]], total: float) -> bool:
        return total > _ZERO and (len(beam) < self._width or total > beam[0][0])

    def best(self, count: int, merge: bool) -> list[tuple[list[int], float]]:
        """Return the likeliest label sequences with their log probabilities, best first.

        Args:
            count: the most sequences to return.
            merge: whether repeated labels in a sequence are merged.
        """
        found = []
        for leaf in sorted(self._leaves, key=lambda entry: -entry.total)[:count]:
            labels: list[int] = []
            entry, before = leaf, -1
            checkpoint()
            while entry.parent is not None:
                if not merge or entry.label != before:
                    labels.append(entry.label)
                entry, before = entry.parent, entry.label
            found.append((labels[::-1], leaf.total))
        return found
