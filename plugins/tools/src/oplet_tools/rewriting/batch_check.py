"""Checks a changed batch size: the model runs at the old and at the new size on the same examples, and the outputs are
compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oplet import Interpreter, Model
from oplet.errors import InvokeError
from oplet_tools.rewriting.batch_constants import changed_axes
from oplet_tools.rewriting.stripping import indices
from oplet_tools.tuning.random_inputs import random_input

__all__ = ["Array", "EntryPoint", "Recording", "record"]

Array = NDArray[Any]
Values = dict[int, Array]

#: Most runs that are recorded at the old batch size; a larger new batch repeats their examples.
_RUNS = 3
#: Tolerance as a fraction of the largest value, as sums may be computed in another order; and in steps of quantized values.
_TOLERANCE = 1e-3
_STEPS = 2


class EntryPoint:
    """A subgraph that callers run: the first one, or that of a signature.

    Attributes:
        index: the subgraph's index.
        inputs: its input tensors.
        batched: the inputs whose first dimension is the batch: those whose shape signature leaves it free, or if there are none, all
            inputs that are not scalars.
        outputs: its output tensors.
    """

    def __init__(self, model: Model, index: int) -> None:
        subgraph = (model.root.subgraphs or [])[index]
        self.index = index
        self._tensors = subgraph.tensors or ()
        self._signature = next((s for s in model.root.signature_defs or [] if index and s.subgraph_index == index), None)
        if self._signature is None:
            self.inputs = list(dict.fromkeys(indices(subgraph.inputs)))
            self.outputs = list(dict.fromkeys(indices(subgraph.outputs)))
        else:
            self.inputs = [entry.tensor_index for entry in self._signature.inputs or []]
            self.outputs = [entry.tensor_index for entry in self._signature.outputs or []]
        with_dimensions = [i for i in self.inputs if indices(self._tensors[i].shape)]
        marked = [i for i in with_dimensions if indices(self._tensors[i].shape_signature)[:1] == [-1]]
        self.batched = marked or with_dimensions

    def sizes(self) -> set[int]:
        """Return the set of first dimensions of the batched inputs; one element if they agree on a batch size."""
        return {indices(self._tensors[i].shape)[0] for i in self.batched}

    def described(self) -> str:
        """Describe the batched inputs and their shapes, as text."""
        return ", ".join(f"'{self._tensors[i].name or i}' {indices(self._tensors[i].shape)}" for i in self.batched)

    def run(self, interpreter: Interpreter, values: Values) -> list[Array]:
        """Run the subgraph on inputs by tensor index, of any batch size; return its outputs."""
        if self._signature is not None:
            runner = interpreter.get_signature_runner(self._signature.signature_key)
            result = runner(**{entry.name or "": values[entry.tensor_index] for entry in self._signature.inputs or []})
            return [np.asarray(result[entry.name or ""]) for entry in self._signature.outputs or []]
        for index, value in values.items():
            interpreter.resize_tensor_input(index, value.shape)
        interpreter.allocate_tensors()
        for index, value in values.items():
            interpreter.set_tensor(index, value)
        interpreter.invoke()
        return [np.asarray(interpreter.get_tensor(index)) for index in self.outputs]


@dataclass(eq=False)
class Recording:
    """Recorded runs of an entry point (a subgraph that callers run) at the old batch size."""

    entry: EntryPoint
    size: int  #: The old batch size.
    runs: list[Values]  #: The inputs of each run, by tensor index.
    outputs: list[list[Array]]  #: The outputs of each run.
    complete: bool  #: Whether the runs succeeded; if not, `outputs` is empty and nothing can be compared.

    def values(self, batch: int) -> Values:
        """Return inputs of `batch` examples: those of all runs one after the other, repeated as often as needed."""
        joined = dict(self.runs[0])
        rows = np.arange(batch) % (self.size * len(self.runs))
        for index in self.entry.batched:
            joined[index] = np.concatenate([run[index] for run in self.runs])[rows]
        return joined

    def wrong_outputs(self, outputs: list[Array], batch: int) -> list[int]:
        """Return the indices of output tensors whose examples differ from the recorded ones; empty if nothing was recorded."""
        return [
            tensor
            for place, tensor in enumerate(self.entry.outputs)
            if self.complete and outputs and not _agree([run[place] for run in self.outputs], outputs[place], self.size, batch)
        ]

    def first_wrong(
        self, before: Callable[[], Interpreter], after: Interpreter, nodes: Sequence[Sequence[int]], batch: int
    ) -> int | None:
        """Return the index of the first node whose outputs in the new model differ from those in the old one; None if there is none.

        Args:
            before: makes interpreters of the old model that preserve all tensors.
            after: an interpreter of the new model that preserves all tensors.
            nodes: for each node the indices of its output tensors.
            batch: the batch size at which `after` ran.
        """
        olds = []
        for values in self.runs:
            olds.append(before())
            self.entry.run(olds[-1], values)
        self.entry.run(after, self.values(batch))
        where = self.entry.index
        for number, outputs in enumerate(nodes):
            for tensor in outputs:
                old = [np.asarray(interpreter.get_tensor(tensor, where)) for interpreter in olds]
                if not _agree(old, np.asarray(after.get_tensor(tensor, where)), self.size, batch):
                    return number
        return None


def record(entry: EntryPoint, make: Callable[[], Interpreter], size: int, batch: int) -> tuple[Recording, Interpreter]:
    """Run a subgraph at its batch size on random values, or on zeros if random values make a node fail; record the results.

    Args:
        make: makes interpreters of the model.
        size: the model's batch size.
        batch: the new batch size, which will be compared.
        entry: the subgraph to run.

    Returns:
        The recording, and an interpreter after a run, whose tensors have their shapes.
    """
    runs: list[Values] = []
    interpreter = make()
    for blank in (False, True):
        outputs = []
        runs = _values(entry, interpreter, size, min(_RUNS, -(-batch // size)), blank)
        try:
            for values in runs:
                interpreter = make()
                outputs.append(entry.run(interpreter, values))
            return Recording(entry, size, runs, outputs, True), interpreter
        except InvokeError:
            continue
    return Recording(entry, size, runs, [], False), interpreter


def _values(entry: EntryPoint, interpreter: Interpreter, size: int, runs: int, blank: bool) -> list[Values]:
    random = np.random.default_rng(0)
    details = interpreter.get_tensor_details(entry.index)
    first = {index: random_input(details[index], random) for index in entry.inputs}
    made = [first]
    for _ in range(runs - 1):
        made.append(first | {index: random_input(details[index], random) for index in entry.batched})
    return [{index: np.zeros_like(value) for index, value in run.items()} for run in made] if blank else made


def _agree(old: list[Array], new: Array, size: int, batch: int) -> bool:
    """Return whether `new`, an output of `batch` examples, has along some dimension the examples of `old`, outputs of `size`
    examples each; or, if it has no batch dimension, the same value.
    """
    axes = changed_axes(old[0].shape, new.shape)
    if axes is None or any(run.shape != old[0].shape for run in old):
        return False
    if not axes:
        return all(_close(run, new) for run in old)
    axis = axes[0]
    many, left = divmod(old[0].shape[axis], size)
    if len(axes) > 1 or left or new.shape[axis] != many * batch:
        return False
    rows = np.arange(batch) % (size * len(old))
    examples = np.moveaxis(np.concatenate(old, axis), axis, 0)
    examples = examples.reshape(size * len(old), many, *examples.shape[1:])
    moved = np.moveaxis(new, axis, 0)
    return _close(examples[rows], moved.reshape(batch, many, *moved.shape[1:]))


def _close(a: Array, b: Array) -> bool:
    if a.dtype.kind in "fc":
        finite = np.abs(a[np.isfinite(a)])
        scale = float(finite.max()) if finite.size else 0.0
        return bool(np.allclose(a, b, rtol=_TOLERANCE, atol=_TOLERANCE * scale, equal_nan=True))
    if a.dtype in (
        np.int8,
        np.uint8,
        np.int16,
    ):  # mostly quantized: a value between two steps may have been rounded the other way
        return not a.size or int(np.abs(a.astype(np.int64) - b).max()) <= _STEPS
    return bool(np.array_equal(a, b))
