"""Runs of a model whose state lies in arrays that one run leaves to the next: read and written in place, or swapped with the result."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from prometheus_client import Counter

from oplet.errors import InvokeError
from oplet.toolkit import SubgraphRunner, single_threaded_blas
from oplet_serve.served_model import ServedModel

__all__ = ["State", "StateRunners"]

Array = NDArray[Any]

_COPIED = Counter(
    "oplet_state_bytes_copied", "Bytes of state that steps of sequences copied, as a model could not leave them in place"
)


@dataclass(eq=False)
class State:
    """The state of a sequence: arrays by the names of the inputs that they are values of, and whether the sequence has ended."""

    arrays: dict[str, Array] = field(default_factory=dict)
    ended: bool = False


class _Runner:
    """An interpreter of one signature, which lies in the state that it ran on last.

    Args:
        model: the signature.
    """

    def __init__(self, model: ServedModel) -> None:
        self.model = model
        #: The state that its inputs and outputs lie in.
        self.state: State | None = None
        self._interpreter, index = model.open()
        self._runner = SubgraphRunner(self._interpreter, index)
        self._generation = -1
        self._in_place: set[str] = set()
        self._spares: dict[str, Array] = {}
        self._where: dict[int, Array] = {}
        self._placed: set[int] = set()

    def run(self, state: State, given: Mapping[str, Array], wanted: Sequence[str]) -> dict[str, Array]:
        """Run a step on a state, which is then that of the next step; return copies of outputs.

        Raises:
            OpletError: the model fails, and the state is of no use any more.
        """
        model, runner, arrays = self.model, self._runner, state.arrays
        values = {model.input_index[name]: value for name, value in given.items()}
        values |= {model.input_index[name]: arrays[name] for name in model.states}
        tensors = runner.subgraph.tensors
        for index, value in values.items():
            if tensors[index].shape != value.shape:
                runner.resize(index, value.shape)
        runner.allocate()
        self._lie_in(arrays)
        self.state = state
        for index, value in values.items():
            if index not in self._placed:
                runner.set(index, value)
        self._interpreter.reset_all_variables()
        with single_threaded_blas():
            runner.invoke()
        made = {name: runner.tensor(model.output_index[name]).data for name in {*wanted, *model.states.values()}}
        copied = sum(arrays[name].nbytes for name in model.states if model.input_index[name] not in self._placed)
        for name, output in model.states.items():
            if made[output].shape != arrays[name].shape:
                raise InvokeError(f"The state '{name}' went from the shape {arrays[name].shape} to {made[output].shape}.")
            if made[output] is self._spares.get(name):
                arrays[name], self._spares[name] = made[output], arrays[name]
            elif made[output] is not arrays[name]:
                np.copyto(arrays[name], made[output])
                copied += arrays[name].nbytes
        _COPIED.inc(copied)
        return {name: np.array(made[name]) for name in wanted}

    def _lie_in(self, arrays: Mapping[str, Array]) -> None:
        """Let the state's inputs lie in these arrays, and its outputs there too, or where that cannot be in spare ones of their shape."""
        model, runner = self.model, self._runner
        ends = {name: (model.input_index[name], model.output_index[output]) for name, output in model.states.items()}
        if anew := self._generation != runner.subgraph.generation:
            self._in_place = {name for name, (source, target) in ends.items() if runner.can_overwrite(source, target)}
            self._spares = {name: np.empty_like(arrays[name]) for name in ends.keys() - self._in_place}
        where = {source: arrays[name] for name, (source, _) in ends.items()}
        where |= {target: arrays[name] if name in self._in_place else self._spares[name] for name, (_, target) in ends.items()}
        if anew or any(self._where[index] is not array for index, array in where.items()):
            self._placed = set(runner.use_memory(where))
            self._where, self._generation = where, runner.subgraph.generation

    def let_go_if_ended(self) -> None:
        """Lie in memory of its own again if the state has ended."""
        if self.state is not None and self.state.ended:
            self._runner.use_memory(dict.fromkeys(self._where))
            self.state, self._generation, self._where = None, -1, {}

    def close(self) -> None:
        """Close the interpreter."""
        self._interpreter.close()


class StateRunners:
    """Interpreters for stateful sequences of one model file, one for each step that runs at the same time. A step prefers a free
    interpreter that is bound to its state's arrays already.

    Attributes:
        users: the served signatures that share these interpreters.
    """

    def __init__(self) -> None:
        self.users: set[ServedModel] = set()
        self._lock = threading.Lock()
        self._free: list[_Runner] = []

    def run(self, state: State, model: ServedModel, given: Mapping[str, Array], wanted: Sequence[str]) -> dict[str, Array]:
        """Run a step of a sequence, in any thread; return the `wanted` outputs. State inputs that are `given` replace their state."""
        for name in model.states.keys() & given.keys():
            np.copyto(state.arrays[name], given[name])
        with self._lock:
            mine = [each for each in self._free if each.model is model]
            runner = next((each for each in mine if each.state is state), mine[0] if mine else None)
            if runner is not None:
                self._free.remove(runner)
        runner = runner or _Runner(model)
        try:
            return runner.run(state, given, wanted)
        finally:
            with self._lock:
                runner.let_go_if_ended()
                if model in self.users:
                    self._free.append(runner)
                else:
                    runner.close()

    def let_go(self) -> None:
        """Release the memory of sequences that have ended; a step that still runs does so at its end."""
        with self._lock:
            for runner in self._free:
                runner.let_go_if_ended()

    def close(self, model: ServedModel) -> None:
        """Close the interpreters of a signature that is no longer served."""
        with self._lock:
            self.users.discard(model)
            for runner in self._free:
                if runner.model is model:
                    runner.close()
            self._free = [runner for runner in self._free if runner.model is not model]
