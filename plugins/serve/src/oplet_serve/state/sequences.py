"""Sequences: requests that go on where the one before ended. What a step leaves to the next stays here, in arrays of the sequence."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from prometheus_client import Gauge

from oplet.errors import OpletError
from oplet_serve.options import Options
from oplet_serve.queueing import RequestQueue
from oplet_serve.refusals import BUSY, CONFLICT, UNKNOWN, Refusal
from oplet_serve.served_model import ServedModel
from oplet_serve.state.runner import State, StateRunners
from oplet_serve.values.tensors import TensorSpec, stated_sizes

__all__ = ["PARAMETERS", "Sequences", "Step", "step_of"]

Array = NDArray[Any]

#: The parameters of a request that say of which sequence it is, as Triton has them.
PARAMETERS = ("sequence_id", "sequence_start", "sequence_end")
_LONGEST_ID = 128

_KEPT = Gauge("oplet_sequences", "Sequences whose state is kept")
_BYTES = Gauge("oplet_sequence_bytes", "Bytes of the state of sequences")


@dataclass(frozen=True)
class Step:
    """The sequence parameters of a request: the sequence's id, and whether the request is its first or last one."""

    id: int | str
    start: bool
    end: bool

    def __str__(self) -> str:
        return f"The sequence {self.id!r}"


def step_of(parameters: object) -> Step | None:
    """Return the sequence parameters of a request; None if it belongs to no sequence (id 0 or "", as in Triton).

    Raises:
        Refusal: a parameter has a wrong type.
    """
    found, start, end = (getattr(parameters, name, None) for name in PARAMETERS)
    found = 0 if found is None else found
    whole = isinstance(found, int) and not isinstance(found, bool) and -(1 << 63) <= found < 1 << 64
    text = isinstance(found, str) and len(found) <= _LONGEST_ID
    if not (whole or text) or not {type(start), type(end)} <= {bool, type(None)}:
        raise Refusal(
            f"A sequence_id is a whole number of 64 bits or a text of up to {_LONGEST_ID} characters, and sequence_start and sequence_end are "
            "true or false."
        )
    if not found and (start or end):
        raise Refusal("The request has a sequence_start or sequence_end, but no sequence_id.")
    return Step(found, bool(start), bool(end)) if found else None


@dataclass(eq=False)
class _Kept(State):
    """The state of a sequence, and what of it is counted."""

    id: int | str = 0
    nbytes: int = 0
    busy: bool = False
    timer: asyncio.TimerHandle | None = None


class Sequences:
    """The stateful sequences of one model file. Its signatures share them: one may read a prompt, and another continue.

    Args:
        key: the key under which `of` finds this object.
        options: the limits of number, size and idle time of sequences.
    """

    def __init__(self, key: object, options: Options) -> None:
        self._key = key
        self._options = options
        self._kept: dict[int | str, _Kept] = {}
        self._nbytes = 0
        self._runners = StateRunners()

    @classmethod
    def of(cls, path: str, options: Options, model: ServedModel) -> Sequences:
        """Return the `Sequences` of a model's file, made for its first served signature, and register `model` as a user."""
        file = os.stat(path)
        key = (path, file.st_ino, file.st_size, file.st_mtime_ns, replace(options, signature=None))
        found = _OF_FILES.setdefault(key, cls(key, options))
        found._runners.users.add(model)
        return found

    def leave(self, model: ServedModel) -> None:
        """Unregister a signature and close its interpreters; after the last one all sequences end."""
        self._runners.close(model)
        if not self._runners.users:
            del _OF_FILES[self._key]
            for state in list(self._kept.values()):
                self._drop(state)

    async def run(
        self, step: Step, model: ServedModel, given: Mapping[str, Array], wanted: Sequence[str], queue: RequestQueue, large: bool
    ) -> dict[str, Array]:
        """Run a step of a sequence in one of the queue's threads; return its outputs. If it fails or the client disconnects, the
        sequence ends.

        Args:
            given: the inputs by name; in the first step perhaps also initial values of state inputs, which are zeros otherwise.
            wanted: the outputs to return.

        Raises:
            Refusal: there is no such sequence, it is busy, or there are too many sequences.
            OpletError: the inputs do not fit, or the model fails.
        """
        state = self._entered(step, model, given)
        try:
            made = await queue.in_thread(self._runners.run, state, model, given, wanted, large=large)
        except BaseException as error:
            self._drop(state)
            if isinstance(error, OpletError):
                error.args = (f"{step} ends: {error}",)
            raise
        if step.end:
            self._drop(state)
        else:
            state.busy = False
            state.timer = asyncio.get_running_loop().call_later(self._options.sequence_seconds, self._drop, state)
        return made

    def _entered(self, step: Step, model: ServedModel, given: Mapping[str, Array]) -> _Kept:
        """Return the state that a step begins with, which is its own until it ends; a step that is refused changes nothing."""
        bounds, before = self._options, self._kept.get(step.id)
        if not model.states:
            raise Refusal(
                "The model keeps no state for sequences: no input has an output of its name, type and shape; see --state."
            )
        if before is not None and before.busy:
            raise Refusal(f"{step} is busy with its last step; send the next one after the answer.", CONFLICT)
        if before is None and not step.start:
            raise Refusal(
                f"{step} is not known: it has ended, or had no request for {bounds.sequence_seconds:g} s; begin one with sequence_start.",
                UNKNOWN,
            )
        state = _Kept(id=step.id) if before is None or step.start else before
        new = {}
        for name in model.states:
            spec, array = model.inputs[name], state.arrays.get(name)
            if array is None:
                new[name] = self._first_shape(model, spec, given)
            elif name in given:
                raise Refusal(f"The input '{name}' is state that the server keeps; give it with sequence_start alone.")
            else:
                stated_sizes(spec, TensorSpec(name, array.dtype, ()).datatype, array.shape)
        more = sum(math.prod(shape) * model.inputs[name].dtype.itemsize for name, shape in new.items())
        freed = before if before is not None and step.start else None
        count, nbytes = len(self._kept) + (before is None), self._nbytes + more - (freed.nbytes if freed else 0)
        if count > bounds.max_sequences or nbytes > bounds.max_sequence_bytes:
            raise Refusal(
                f"{step} would be number {count} of {bounds.max_sequences}, with {nbytes} of {bounds.max_sequence_bytes} bytes for all; end "
                "others, or try again later.",
                BUSY,
            )
        arrays = state.arrays | {name: np.zeros(shape, model.inputs[name].dtype) for name, shape in new.items()}
        model.rows_of({**{name: arrays[name] for name in model.states}, **given})
        if freed is not None:
            self._drop(freed)
        if state.timer is not None:
            state.timer.cancel()
        if state is not before:
            self._kept[step.id] = state
            _KEPT.inc()
        state.arrays, state.busy = arrays, True
        self._count(state, more)
        return state

    def _first_shape(self, model: ServedModel, spec: TensorSpec, given: Mapping[str, Array]) -> tuple[int, ...]:
        shape = given[spec.name].shape if spec.name in given else spec.shape
        if model.takes_rows and shape[0] < 0:
            shape = (next((len(value) for value in given.values()), 1), *shape[1:])
        if min(shape, default=0) < 0:
            raise Refusal(f"The state '{spec.name}' may have any shape {list(shape)}; give its first value with sequence_start.")
        return shape

    def _count(self, state: _Kept, nbytes: int) -> None:
        state.nbytes += nbytes
        self._nbytes += nbytes
        _BYTES.inc(nbytes)

    def _drop(self, state: _Kept) -> None:
        """End a sequence; its memory is free when no step runs in it."""
        if state.timer is not None:
            state.timer.cancel()
        if not state.ended:
            state.ended = True
            del self._kept[state.id]
            _KEPT.dec()
            self._count(state, -state.nbytes)
            asyncio.get_running_loop().run_in_executor(None, self._runners.let_go)


#: Those of the files that are served.
_OF_FILES: dict[object, Sequences] = {}
