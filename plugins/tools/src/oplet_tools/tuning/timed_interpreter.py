"""An interpreter of a candidate, for measuring its time and outputs."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oplet_tools.tuning.random_inputs import perturbed_input
from oplet_tools.tuning.sensitivity import output_sensitivity

if TYPE_CHECKING:
    from oplet import Interpreter

__all__ = ["TimedInterpreter"]

Array = NDArray[Any]

#: Linux counts there: nanoseconds on a core, nanoseconds of waiting for one, and turns.
_COUNTS = "/proc/thread-self/schedstat"


class TimedInterpreter:
    """The interpreter of a candidate (an engine with its settings), allocated, with inputs set, and run once; `outputs` and
    `first` have that run's outputs and seconds.
    """

    def __init__(self, interpreter: Interpreter, inputs: dict[int, Array]) -> None:
        self.interpreter = interpreter
        interpreter.allocate_tensors()
        if any(tuple(d["shape"]) != inputs[d["index"]].shape for d in interpreter.get_input_details() if d["index"] in inputs):
            for index, value in inputs.items():
                interpreter.resize_tensor_input(index, value.shape)
            interpreter.allocate_tensors()
        for index, value in inputs.items():
            interpreter.set_tensor(index, value)
        self.first = self.time()
        self.details = interpreter.get_output_details()
        self.outputs = [np.array(interpreter.get_tensor(d["index"])) for d in self.details]

    def time(self) -> float:
        """Invoke once; return the seconds that it took."""
        return _seconds_of(self.interpreter.invoke)

    def sensitivities(self) -> list[float]:
        """Return the error that each output may have, as a fraction of its largest magnitude: twice its change under perturbed inputs."""
        random_free = {
            d["index"]: np.array(self.interpreter.get_tensor(d["index"])) for d in self.interpreter.get_input_details()
        }
        details = {d["index"]: d for d in self.interpreter.get_input_details()}

        def answers(random: np.random.Generator | None) -> list[dict[int, Array]]:
            self.interpreter.reset_all_variables()
            for index, value in random_free.items():
                self.interpreter.set_tensor(index, value if random is None else perturbed_input(value, details[index], random))
            self.interpreter.invoke()
            return [{place: np.array(self.interpreter.get_tensor(d["index"])) for place, d in enumerate(self.details)}]

        found = output_sensitivity(answers, {place: d["quantization"] for place, d in enumerate(self.details)})
        answers(None)
        return list(found.values())

    def close(self) -> None:
        self.interpreter.close()


def _waited() -> float:
    """Return the seconds that this thread has waited for a core since it began; 0 where the system does not count them."""
    with suppress(OSError, ValueError, IndexError), open(_COUNTS, encoding="ascii") as counts:
        return int(counts.read().split()[1]) * 1e-9
    return 0.0


def _seconds_of(call: Callable[[], object]) -> float:
    """Call a function; return the seconds that it took, without most of those in which this thread waited for a core.

    Threads that the call waits for may wait as well; that counts.
    """
    begun = time.perf_counter()
    before = _waited()
    start = time.perf_counter()
    call()
    end = time.perf_counter()
    delay = _waited() - before
    # The thread may have waited while it looked at the counts, so that they are part of the time that the delay is taken from.
    return min(end - start, time.perf_counter() - begun - delay)
